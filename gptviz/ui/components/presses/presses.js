// Counts presses, in their order. What is told goes along with the press itself: both leave the browser together.

// One for the document: on the way from page to page this may be there twice, or be left without being told.
const counter = (window.gptvizPresses ??= begin());

function begin() {
  const counter = { log: [], count: 0, keys: [], most: 0, send: null }; // log: [number, key], the last ones
  document.addEventListener("click", (event) => hear(counter, event), { capture: true });
  return counter;
}

function hear(counter, { target }) {
  const button = target.closest?.("button");
  const key = button && counter.keys.find((key) => button.closest(`.st-key-${key}`));
  if (!key) return;
  counter.log = [...counter.log, [++counter.count, key]].slice(-counter.most);
  counter.send?.(counter.log);
}

export default function ({ data, setStateValue }) {
  const send = (log) => setStateValue("log", log);
  Object.assign(counter, JSON.parse(new TextDecoder().decode(data)), { send });
  return () => {
    if (counter.send === send) counter.send = null;
  };
}
