// A form in one element: numbers, choices and switches, folded into groups, each field with its meaning.

const forms = new WeakMap(); // the component's root element -> form

function create(tag, properties = {}, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}

function start(root) {
  const frame = create("div", { className: "form" });
  const tip = create("div", { className: "tip", popover: "manual" });
  tip.setAttribute("role", "tooltip");
  root.append(frame, tip);
  const form = { frame, tip, edits: {}, inputs: new Map() };
  forms.set(root, form);
  return form;
}

function stop(root) {
  const form = forms.get(root);
  forms.delete(root);
  form.frame.remove();
  form.tip.remove();
}

function read({ input, field }) {
  if (field.kind === "switch") return input.checked;
  if (field.kind === "choice") return input.value;
  if (input.value === "") return null;
  const number = Number(input.value);
  return Number.isFinite(number) ? number : input.value; // too large for a number: as it was written
}

function write({ input, field }, value) {
  if (field.kind === "switch") input.checked = value;
  else input.value = value ?? "";
}

// Replaced, not pushed: Back leaves the page instead of undoing edits one by one.
function address(form) {
  const url = new URL(location.href);
  for (const [name, one] of form.inputs) {
    const value = read(one);
    if (value === one.field.start) url.searchParams.delete(name);
    else url.searchParams.set(name, value ?? "");
  }
  if (url.href !== location.href) history.replaceState(history.state, "", url);
}

function changed(form) {
  address(form);
  const apart = [...form.inputs.values()].some((one) => one.field.startable && read(one) !== one.field.start);
  form.reset?.classList.toggle("hidden", !apart);
}

// The time makes every message another one: the same edit may be made again after the form was drawn anew.
function send(form, edits) {
  Object.assign(form.edits, edits);
  changed(form);
  form.tell({ edits: form.edits, time: performance.now() });
}

function showTip(form, button, text) {
  form.tip.textContent = text;
  form.tip.showPopover();
  const at = button.getBoundingClientRect();
  const { width, height } = form.tip.getBoundingClientRect();
  const above = at.top - height - 8;
  form.tip.style.left = `${Math.max(8, Math.min(at.left - 16, innerWidth - width - 8))}px`;
  form.tip.style.top = `${above > 0 ? above : at.bottom + 8}px`;
}

function question(form, one) {
  const mark = create("button", { type: "button", className: "question", textContent: "?", tabIndex: -1 });
  mark.setAttribute("aria-label", `What is ${one.field.label}?`);
  const show = () => showTip(form, mark, one.field.help);
  const hide = () => form.tip.hidePopover();
  mark.addEventListener("pointerenter", show);
  mark.addEventListener("click", show);
  mark.addEventListener("pointerleave", hide);
  mark.addEventListener("blur", hide);
  return mark;
}

function inputOf(field) {
  if (field.kind === "choice") {
    return create("select", {}, ...field.options.map((option) => create("option", { textContent: option })));
  }
  if (field.kind === "switch") return create("input", { type: "checkbox" });
  return create("input", { type: "number", step: field.step, autocomplete: "off" });
}

function fieldOf(form, field) {
  const one = { field, input: inputOf(field) };
  const name = create("span", { className: "name", textContent: field.label });
  const order = field.kind === "switch" ? [one.input, name] : [name, one.input];
  const label = create("label", {}, ...order);
  form.inputs.set(field.name, one);
  one.input.addEventListener("change", () => send(form, { [field.name]: read(one) }));
  return create("div", { className: `field ${field.kind}` }, label, question(form, one));
}

function groupOf(form, { title, fields }, open) {
  const grid = create("div", { className: "fields" }, ...fields.map((field) => fieldOf(form, field)));
  if (!title) return grid;
  return create("details", { open }, create("summary", { textContent: title }), grid);
}

function startAgain(form) {
  const edits = {};
  for (const [name, one] of form.inputs) {
    if (!one.field.startable || read(one) === one.field.start) continue;
    write(one, one.field.start);
    edits[name] = one.field.start;
  }
  send(form, edits);
}

function build(form, { groups, width, reset }) {
  const opened = new Set([...form.frame.querySelectorAll("details[open] summary")].map((node) => node.textContent));
  const focused = [...form.inputs].find(([, one]) => one.input === form.frame.getRootNode().activeElement)?.[0];
  form.inputs.clear();
  form.frame.style.setProperty("--width", `${width}px`);
  form.frame.replaceChildren(...groups.map((group) => groupOf(form, group, opened.has(group.title))));
  form.reset = reset === "" ? null : create("button", { type: "button", className: "reset", textContent: reset });
  form.reset?.addEventListener("click", () => startAgain(form));
  if (form.reset) form.frame.append(form.reset);
  form.inputs.get(focused)?.input.focus();
}

function update(form, field) {
  const one = form.inputs.get(field.name);
  one.field = field;
  one.input.disabled = field.disabled;
  one.input.placeholder = field.placeholder;
  one.input.setAttribute("aria-description", field.help);
  if (read(one) !== field.value) write(one, field.value);
}

function draw(form, data) {
  const fields = data.groups.flatMap((group) => group.fields);
  const shape = JSON.stringify([data.reset, fields.map(({ name, kind, options }) => [name, kind, options])]);
  if (shape !== form.shape) build(form, data);
  form.shape = shape;
  fields.forEach((field) => update(form, field));
  changed(form);
}

export default function ({ data, parentElement, setStateValue }) {
  const form = forms.get(parentElement) ?? start(parentElement);
  form.tell = (edits) => setStateValue("edits", edits);
  const text = new TextDecoder().decode(data);
  if (text !== form.look) draw(form, JSON.parse(text));
  form.look = text;
  return () => stop(parentElement);
}
