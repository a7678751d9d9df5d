// A grid of small pictures. The payload: u32 length, JSON header, then the pixels of every tile.

const MASKED = 255;
const SETTLE = 150; // ms of rest after an arrow key before the pick is reported
const ARROWS = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
const grids = new WeakMap(); // the component's root -> grid

function element(name, className, role) {
  const made = document.createElement(name);
  made.className = className;
  if (role) made.setAttribute("role", role);
  return made;
}

// ---- data

function decode(bytes) {
  const length = new DataView(bytes.buffer, bytes.byteOffset).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + length)));
  let at = 4 + length;
  for (const tile of header.rows.flatMap((row) => row.tiles)) {
    tile.pixels = bytes.subarray(at, (at += tile.height * tile.width));
  }
  return header;
}

function channels(hex) {
  return [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
}

// 256 colours as RGBA, one number each; the last one is clear.
function table(colours) {
  const stops = colours.map(channels);
  const rgba = new Uint8ClampedArray(1024);
  for (let value = 0; value < MASKED; value++) {
    const place = (value / (MASKED - 1)) * (stops.length - 1);
    const low = Math.min(Math.floor(place), Math.max(stops.length - 2, 0));
    const high = Math.min(low + 1, stops.length - 1);
    const mix = stops[low].map((from, i) => from + (stops[high][i] - from) * (place - low));
    rgba.set([...mix, 255], value * 4);
  }
  return new Uint32Array(rgba.buffer);
}

const tables = new Map(); // colours, joined -> table

function tableOf(ramp, colours) {
  if (!tables.has(ramp)) tables.set(ramp, table(colours));
  return tables.get(ramp);
}

function same(left, right) {
  if (left?.length !== right.length) return false;
  for (let i = 0; i < left.length; i++) if (left[i] !== right[i]) return false;
  return true;
}

// ---- drawing

function paint(entry, tile, colours) {
  const ramp = colours.join();
  if (entry.width === tile.width && entry.ramp === ramp && same(entry.pixels, tile.pixels)) return;
  const { canvas } = entry;
  canvas.width = tile.width;
  canvas.height = tile.height;
  const image = new ImageData(tile.width, tile.height);
  const target = new Uint32Array(image.data.buffer);
  const look = tableOf(ramp, colours);
  for (let i = 0; i < target.length; i++) target[i] = look[tile.pixels[i]];
  canvas.getContext("2d").putImageData(image, 0, 0);
  canvas.classList.toggle("masked", tile.pixels.includes(MASKED));
  Object.assign(entry, { width: tile.width, ramp, pixels: tile.pixels.slice() });
}

function makeTile(id) {
  const node = element("div", "tile", "option");
  const canvas = element("canvas", "picture");
  const label = element("div", "label");
  const detail = element("div", "detail");
  node.dataset.id = id;
  canvas.setAttribute("aria-hidden", "true");
  node.append(canvas, label, detail);
  return { node, canvas, label, detail };
}

function write(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

function updateTile(grid, entry, tile) {
  const shape = Math.min(Math.max(tile.width / tile.height, 0.25), 4);
  const { node, canvas } = entry;
  node.style.setProperty("--shape", shape);
  node.setAttribute("aria-label", tile.hover ? `${tile.title}. ${tile.hover}` : tile.title);
  write(entry.label, tile.label);
  write(entry.detail, tile.detail);
  canvas.classList.toggle("dense", tile.height > grid.header.size * devicePixelRatio);
  paint(entry, tile, grid.header.ramps[tile.ramp]);
  entry.tile = tile;
}

function makeRow(grid, row) {
  const node = element("div", "row", "group");
  const heading = element("div", "heading");
  const name = element("div", "name");
  const caption = element("div", "caption");
  const strip = element("div", "strip");
  node.setAttribute("aria-label", row.title);
  name.textContent = row.title;
  caption.textContent = row.caption;
  heading.append(name, caption);
  strip.append(...row.tiles.map((tile) => grid.entries.get(tile.id).node));
  node.append(heading, strip);
  return node;
}

// Rows are made anew only when they hold other tiles or words; the tiles themselves are kept.
function arrange(grid, rows) {
  const plan = JSON.stringify(rows.map((row) => [row.title, row.caption, row.tiles.map((tile) => tile.id)]));
  if (plan === grid.plan) return;
  grid.plan = plan;
  const old = grid.entries;
  const ids = rows.flatMap((row) => row.tiles.map((tile) => tile.id));
  const focused = grid.root.activeElement?.dataset?.id;
  grid.entries = new Map(ids.map((id) => [id, old.get(id) ?? makeTile(id)]));
  grid.list.replaceChildren(...rows.map((row) => makeRow(grid, row)));
  grid.entries.get(focused)?.node.focus({ preventScroll: true });
}

function update(grid, header) {
  grid.header = header;
  grid.list.style.setProperty("--size", header.size);
  grid.list.setAttribute("aria-label", header.alt);
  arrange(grid, header.rows);
  for (const tile of header.rows.flatMap((row) => row.tiles)) updateTile(grid, grid.entries.get(tile.id), tile);
  // Until Python has seen the last pick, its `selected` is older than what the hand has done.
  const current = grid.sent === undefined || header.settled === grid.sent;
  mark(grid, current ? header.selected : grid.selected);
  if (grid.over) describe(grid, grid.over);
}

// ---- selection

function mark(grid, id) {
  grid.selected = id;
  const home = grid.entries.has(id) ? id : grid.entries.keys().next().value;
  for (const [each, { node }] of grid.entries) {
    node.setAttribute("aria-selected", String(each === id));
    node.tabIndex = each === home ? 0 : -1;
  }
}

function pick(grid, id, delay = 0) {
  mark(grid, id);
  grid.sent = Math.max(Date.now(), (grid.sent ?? 0) + 1);
  clearTimeout(grid.timer);
  document.dispatchEvent(new CustomEvent("gptviz-pick", { detail: { tiles: grid.header.key, id } }));
  const report = () => grid.send({ id, at: grid.sent });
  if (delay) grid.timer = setTimeout(report, delay);
  else report();
}

function neighbour(grid, id, [down, right]) {
  const rows = grid.header.rows.map((row) => row.tiles.map((tile) => tile.id)).filter((ids) => ids.length);
  const from = rows.findIndex((ids) => ids.includes(id));
  const row = rows[Math.min(Math.max(from + down, 0), rows.length - 1)];
  const column = rows[from].indexOf(id) + right;
  return row[Math.min(Math.max(column, 0), row.length - 1)];
}

function move(grid, id) {
  const { node } = grid.entries.get(id);
  node.focus({ preventScroll: true });
  node.scrollIntoView({ block: "nearest", inline: "nearest" });
}

function onKey(grid, event) {
  const id = event.target.dataset?.id;
  if (!grid.entries.has(id) || event.altKey || event.ctrlKey || event.metaKey) return;
  const arrow = ARROWS[event.key];
  if (event.key === "Enter" || event.key === " ") pick(grid, id);
  else if (event.key === "Escape") hide(grid);
  else if (arrow) step(grid, id, neighbour(grid, id, arrow));
  else return;
  event.preventDefault();
  event.stopPropagation();
}

function step(grid, from, to) {
  if (from === to) return;
  move(grid, to);
  if (grid.header.arrows) pick(grid, to, SETTLE);
}

// ---- tooltip

function describe(grid, id) {
  const entry = grid.entries.get(id);
  if (!entry) return hide(grid);
  grid.over = id;
  write(grid.tip.firstChild, entry.tile.title);
  write(grid.tip.lastChild, entry.tile.hover);
  if (!grid.tip.matches(":popover-open")) grid.tip.showPopover();
  place(grid);
}

function place(grid) {
  const entry = grid.entries.get(grid.over);
  if (!entry) return;
  const box = entry.node.getBoundingClientRect();
  const { offsetWidth: width, offsetHeight: height } = grid.tip;
  const below = box.bottom + 4;
  const top = below + height < innerHeight ? below : box.top - height - 4;
  grid.tip.style.top = `${top}px`;
  grid.tip.style.left = `${Math.max(8, Math.min(box.left, innerWidth - width - 8))}px`;
}

function hide(grid) {
  grid.over = undefined;
  if (grid.tip.matches(":popover-open")) grid.tip.hidePopover();
}

// ---- life

function makeTip() {
  const tip = element("div", "tooltip", "tooltip");
  tip.popover = "manual";
  tip.append(element("div", "name"), element("div", "caption"));
  return tip;
}

function listen(grid) {
  const owner = (event) => event.target.closest?.(".tile")?.dataset.id;
  const { signal } = grid.gone;
  const on = (name, act) => grid.list.addEventListener(name, act, { signal });
  on("click", (event) => owner(event) !== undefined && pick(grid, owner(event)));
  on("keydown", (event) => onKey(grid, event));
  on("pointerover", (event) => (owner(event) === undefined ? hide(grid) : describe(grid, owner(event))));
  on("pointerleave", () => hide(grid));
  on("focusin", (event) => event.target.matches(":focus-visible") && describe(grid, owner(event)));
  on("focusout", () => hide(grid));
  document.addEventListener("scroll", () => place(grid), { capture: true, passive: true, signal });
}

function start(root) {
  const list = element("div", "rows", "listbox");
  const tip = makeTip();
  root.append(list, tip);
  const grid = { root, list, tip, entries: new Map(), gone: new AbortController() };
  listen(grid);
  grids.set(root, grid);
  return grid;
}

// React calls this when it hides the page for a moment, too, and then draws again: only what has left the page ends.
function leave(root) {
  setTimeout(() => root.isConnected || stop(root));
}

function stop(root) {
  const grid = grids.get(root);
  if (!grid) return;
  grids.delete(root);
  grid.gone.abort();
  clearTimeout(grid.timer);
  grid.list.remove();
  grid.tip.remove();
}

export default function ({ data, parentElement, setTriggerValue }) {
  const grid = grids.get(parentElement) ?? start(parentElement);
  grid.send = (value) => setTriggerValue("pick", value);
  update(grid, decode(data));
  return () => leave(parentElement);
}
