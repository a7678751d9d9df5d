// Asks for one place at a time: the next only once the page has drawn the last, however fast the hand is.

const scrubbers = new WeakMap(); // the component's root element -> scrubber
const PATIENCE = 3000; // milliseconds after which an answer is no longer waited for

function element(name, parent) {
  const made = document.createElement(name);
  parent.append(made);
  return made;
}

function start(root) {
  const frame = element("div", root);
  frame.className = "scrubber";
  const button = element("button", frame);
  const range = element("input", frame);
  Object.assign(button, { type: "button" });
  Object.assign(range, { type: "range", min: 0, step: 1 });
  const scrubber = { frame, button, range, output: element("output", frame) };
  range.addEventListener("input", () => {
    stop(scrubber);
    move(scrubber);
  });
  button.addEventListener("click", () => (scrubber.timer ? stop(scrubber) : play(scrubber)));
  scrubbers.set(root, scrubber);
  return scrubber;
}

function name(scrubber) {
  const words = scrubber.known.words[Number(scrubber.range.value)];
  scrubber.range.setAttribute("aria-valuetext", words);
  scrubber.range.style.setProperty("--done", `${(100 * scrubber.range.value) / Math.max(1, scrubber.range.max)}%`);
  scrubber.output.textContent = `${scrubber.known.label} ${words}`;
  scrubber.button.textContent = scrubber.timer ? "■ Stop" : "▶ Play";
  scrubber.button.setAttribute("aria-label", scrubber.timer ? "Stop" : "Play");
}

// A reel may have the place's charts: until Python has drawn it, they show that, and nothing that comes late.
function move(scrubber) {
  const { range, known } = scrubber;
  const at = Number(range.value);
  const place = new CustomEvent("gptviz-place", { detail: { scrubber: known.key, at }, cancelable: true });
  const shown = !document.dispatchEvent(place);
  if (shown && at !== known.at) document.documentElement.classList.add("gptviz-ahead");
  ask(scrubber);
}

// Once the charts of the same run have been given theirs, too.
function arrived({ known, range }) {
  if (range.isConnected && known.at !== Number(range.value)) return; // the hand has gone on
  document.documentElement.classList.remove("gptviz-ahead");
  document.dispatchEvent(new CustomEvent("gptviz-arrived"));
}

function ask(scrubber) {
  name(scrubber);
  const at = Number(scrubber.range.value);
  if (scrubber.waiting || at === scrubber.known.at) return;
  scrubber.asked = at;
  scrubber.waiting = setTimeout(() => {
    scrubber.waiting = undefined;
    ask(scrubber);
  }, PATIENCE);
  scrubber.send(at);
}

function play(scrubber) {
  const { range, known } = scrubber;
  if (range.value === range.max) range.value = 0;
  scrubber.timer = setInterval(() => step(scrubber), known.interval * 1000);
  move(scrubber);
}

function step(scrubber) {
  const { range } = scrubber;
  if (!range.isConnected) return stop(scrubber);
  if (scrubber.waiting) return; // the page is still drawing: no place is passed over
  range.value = Number(range.value) + 1;
  if (range.value === range.max) stop(scrubber);
  move(scrubber);
}

function stop(scrubber) {
  clearInterval(scrubber.timer);
  scrubber.timer = undefined;
  name(scrubber);
}

function update(scrubber, known) {
  const { range } = scrubber;
  clearTimeout(scrubber.waiting);
  const elsewhere = !scrubber.known || known.at !== scrubber.asked; // moved by something else than this hand
  Object.assign(scrubber, { known, waiting: undefined });
  range.max = known.words.length - 1;
  range.disabled = scrubber.button.disabled = known.words.length < 2;
  range.setAttribute("aria-label", known.label);
  if (elsewhere) {
    range.value = known.at;
    scrubber.asked = known.at;
  }
  requestAnimationFrame(() => arrived(scrubber));
  ask(scrubber);
}

export default function ({ data, parentElement, setTriggerValue }) {
  const scrubber = scrubbers.get(parentElement) ?? start(parentElement);
  scrubber.send = (at) => setTriggerValue("move", at);
  update(scrubber, JSON.parse(new TextDecoder().decode(data)));
  return () => setTimeout(() => parentElement.isConnected || arrived(scrubber));
}
