// Shows frames at an even pace while Python waits, and asks for the next once all have been painted.

const REST = 30; // ms between the last frame and the question, for clicks to come through
const EARLY = 8; // ms before its time that a frame may be shown: half of the browser's own
const SELDOM = 300; // ms at least between two addresses
const QUIET = 150; // ms of rest, after what a hand did, before the text goes on
const OURS = "\u2060"; // at the end of words that are not Python's: it has no width
const players = new WeakMap(); // the component's root -> player
let last = 0; // when a frame was to be shown
let noted = 0; // when the address was written
let busy = -Infinity; // when Python was last at work, or a hand, since the hand did something

function begin(root) {
  const player = { drawing: 0, chips: [] };
  players.set(root, player);
  return player;
}

// What the page has drawn since is what was shown: until then the chips stay.
function take(player, { drawing, pace, frames, address }) {
  const { chips } = player;
  requestAnimationFrame(() => chips.forEach((chip) => chip.remove()));
  const owed = (frames.length * 1000) / pace - (performance.now() - last); // drawing the page took some of it
  const wait = Math.min(1000 / pace, Math.max(0, owed / frames.length));
  Object.assign(player, { drawing, frames, address, wait, at: 0, chips: [], asked: false });
}

function next(player) {
  cancel(player);
  player.frame = requestAnimationFrame((now) => {
    const { frames, wait } = player;
    while (player.at < frames.length && !frames[player.at]) player.at += 1; // nothing to show
    if (player.at === frames.length) {
      player.timer = setTimeout(() => ask(player), REST);
      return;
    }
    if (last + wait - now < EARLY && !held(now)) show(player, frames[player.at]);
    next(player);
  });
}

function show(player, { label, hover, classes, length, pictures }) {
  player.at += 1;
  last = Math.max(last + player.wait, performance.now() - player.wait / 2); // one that is late does not delay the rest
  const strip = document.querySelector(".gptviz-chips");
  if (strip) {
    const chip = document.createElement("span");
    chip.setAttribute("role", "listitem");
    chip.className = classes;
    chip.title = hover;
    chip.textContent = label;
    strip.append(chip);
    player.chips.push(chip);
    say(player, length);
  }
  for (const [plot, text] of Object.entries(pictures)) {
    document.dispatchEvent(new CustomEvent("gptviz-frame", { detail: { plot, text } }));
  }
  note(player);
}

// In React's own text node, where it will set what Python says next, unless that is what it said last.
function say(player, words) {
  const node = document.querySelector(".st-key-text_length p")?.firstChild;
  if (!node) return;
  if (!node.nodeValue.endsWith(OURS)) player.said = { node, python: node.nodeValue };
  node.nodeValue = words + OURS;
}

function unsay({ said }) {
  if (said?.node.nodeValue.endsWith(OURS)) said.node.nodeValue = said.python;
}

// Without an entry in the browser's history: for one who reloads.
function note({ address, frames, at }) {
  if (!address || performance.now() - noted < SELDOM) return;
  noted = performance.now();
  const ids = address.split(".");
  const url = new URL(location.href);
  url.searchParams.set("generated", ids.slice(0, ids.length - (frames.length - at)).join("."));
  history.replaceState(history.state, "", url);
}

// What a hand did may end all this, or change what is to be shown: until that is settled, nothing is.
function held(now) {
  if (busy === -Infinity) return false;
  const app = document.querySelector("[data-testid=stApp]");
  if (app?.dataset.testScriptState === "running") busy = now;
  if (now - busy < QUIET) return true;
  busy = -Infinity;
  return false;
}

// Once for each time that Python has drawn.
function ask(player) {
  cancel(player);
  if (player.asked) return;
  player.asked = true;
  player.send(player.at);
}

// Others learn from the class that it plays, and from this event that it is over.
function end(player) {
  player.chips.forEach((chip) => chip.remove());
  unsay(player);
  document.documentElement.classList.remove("gptviz-playing");
  document.dispatchEvent(new CustomEvent("gptviz-played"));
}

function cancel(player) {
  cancelAnimationFrame(player.frame);
  clearTimeout(player.timer);
}

export default function ({ data, parentElement, setStateValue }) {
  const player = players.get(parentElement) ?? begin(parentElement);
  const known = JSON.parse(new TextDecoder().decode(data));
  player.send = (frames) => setStateValue("shown", { drawing: player.drawing, frames }); // goes along with every later message
  if (known.drawing !== player.drawing) take(player, known);
  document.documentElement.classList.add("gptviz-playing");
  if (!player.asked) next(player);
  // Whatever a hand does next is about the text as it is on screen: Python hears of that first.
  const hand = new AbortController();
  const touch = () => {
    busy = performance.now();
    ask(player);
  };
  const options = { capture: true, signal: hand.signal };
  for (const name of ["pointerdown", "click", "keydown"]) document.addEventListener(name, touch, options);
  return () => {
    cancel(player);
    hand.abort();
    setTimeout(() => parentElement.isConnected || end(player));
  };
}
