// Once a page: before anyone else sees an input event, the field's text is made well formed.

const setters = new Map(
  [HTMLTextAreaElement, HTMLInputElement].map((kind) => [
    kind,
    Object.getOwnPropertyDescriptor(kind.prototype, "value").set, // past React's own, so that it notices the change
  ]),
);

function mend(event) {
  const field = event.target;
  const set = setters.get(field.constructor);
  if (set && field.value.isWellFormed?.() === false) set.call(field, field.value.toWellFormed());
}

export default function () {
  if (window.gptvizMends) return;
  window.gptvizMends = true;
  document.addEventListener("input", mend, { capture: true });
}
