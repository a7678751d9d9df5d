// Tokens in two columns, joined by attention. The payload: u32 length, JSON header, then the weights, 16 bits each.

const FULL = 65535;
const ROW = 20; // pixels; linker.css has the same
const NAMED = 3; // partners that are named in words
const STRIP = ".gptviz-chips"; // the prompt's tokens, which ui/chips.py draws
const linkers = new WeakMap(); // the component's root -> linker

function element(name, className, role) {
  const made = document.createElement(name);
  made.className = className;
  if (role) made.setAttribute("role", role);
  return made;
}

function write(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

// ---- data

function decode(bytes) {
  const length = new DataView(bytes.buffer, bytes.byteOffset).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + length)));
  header.weights = new Uint16Array(bytes.slice(4 + length).buffer); // a copy, as 16 bits must begin at an even byte
  return header;
}

function weight({ weights, triangle, labels }, slot, query, key) {
  const size = labels.length;
  if (!triangle) return weights[(slot * size + query) * size + key] / FULL;
  if (key > query) return 0;
  return weights[(slot * size * (size + 1) + query * (query + 1)) / 2 + key] / FULL;
}

// A place is a token in one of the columns: { side: "query" or "key", at }. The weight between it and one beyond.
function between({ header }, slot, { side, at }, other) {
  return side === "query" ? weight(header, slot, at, other) : weight(header, slot, other, at);
}

// Token of the other column -> the head that joins it most, of those that are shown, and how much.
function strongest(linker, place) {
  const { labels, cut } = linker.header;
  const found = new Map();
  for (const slot of slots(linker)) {
    for (let other = 0; other < labels.length; other++) {
      const value = between(linker, slot, place, other);
      if (value >= cut && value > (found.get(other)?.value ?? 0)) found.set(other, { slot, value });
    }
  }
  return found;
}

function slots({ header, shown }) {
  return header.heads.map((_, slot) => slot).filter((slot) => shown.has(header.heads[slot]));
}

function written(value) {
  return String(Number(value.toPrecision(2)));
}

// By the square root, so that weak attention can be seen.
function tint({ header }, { slot, value }) {
  return `color-mix(in srgb, ${header.colours[slot]} ${Math.round(60 * Math.sqrt(value))}%, transparent)`;
}

// ---- lines

function redraw(linker) {
  linker.frame ??= requestAnimationFrame(() => {
    linker.frame = undefined;
    draw(linker);
  });
}

function draw(linker) {
  const { canvas, view, header } = linker;
  const width = canvas.clientWidth;
  const height = Math.min(view.clientHeight, header.labels.length * ROW);
  fit(canvas, width, height);
  const pen = canvas.getContext("2d");
  pen.setTransform(devicePixelRatio, 0, 0, devicePixelRatio, 0, 0);
  pen.clearRect(0, 0, width, height);
  const paper = { pen, width, height, top: view.scrollTop };
  if (linker.place) drawPlace(linker, paper);
  else if (header.faint !== null) drawFaint(linker, paper);
}

function fit(canvas, width, height) {
  const [wide, high] = [width, height].map((length) => Math.round(length * devicePixelRatio));
  canvas.style.height = `${height}px`;
  if (canvas.width !== wide) canvas.width = wide;
  if (canvas.height !== high) canvas.height = high;
}

function drawPlace(linker, paper) {
  const { header, place } = linker;
  const drawn = slots(linker);
  drawn.forEach((slot, i) => {
    paper.pen.strokeStyle = header.colours[slot];
    const shift = (i - (drawn.length - 1) / 2) * Math.min(3, 12 / drawn.length); // side by side, not one over another
    for (let other = 0; other < header.labels.length; other++) {
      const value = between(linker, slot, place, other);
      if (value < header.cut) continue;
      const [query, key] = place.side === "query" ? [place.at, other] : [other, place.at];
      line(paper, query, key, 0.25 + 0.75 * Math.sqrt(value), 1 + 3 * value, shift);
    }
  });
}

function drawFaint(linker, paper) {
  const { header } = linker;
  const size = header.labels.length;
  for (const slot of slots(linker)) {
    paper.pen.strokeStyle = header.colours[slot];
    for (let query = 0; query < size; query++) {
      for (let key = 0; key < (header.triangle ? query + 1 : size); key++) {
        const value = weight(header, slot, query, key);
        if (value >= header.faint) line(paper, query, key, 0.15 + 0.35 * value, 1, 0);
      }
    }
  }
}

function line({ pen, width, height, top }, query, key, opacity, thickness, shift) {
  const [left, right] = [query, key].map((at) => (at + 0.5) * ROW - top + shift);
  if (Math.max(left, right) < 0 || Math.min(left, right) > height) return; // scrolled out of sight
  pen.globalAlpha = opacity;
  pen.lineWidth = thickness;
  pen.beginPath();
  pen.moveTo(0, left);
  pen.lineTo(width, right);
  pen.stroke();
}

// ---- tokens

function makeToken(side, at) {
  const node = element("div", "token", "option");
  const position = element("span", "position");
  const number = element("span", "number");
  const label = element("bdi", "label");
  Object.assign(node.dataset, { side, at });
  node.setAttribute("aria-selected", "false");
  node.tabIndex = at === 0 ? 0 : -1;
  position.textContent = at;
  node.append(...(side === "query" ? [position, number, label] : [label, number, position]));
  return { node, number, label };
}

// Tokens are kept, so that nothing flickers and the focus stays as the text grows.
function arrange(linker, side) {
  const { columns, entries, header } = linker;
  const tokens = entries[side];
  while (tokens.length > header.labels.length) tokens.pop().node.remove();
  const made = header.labels.slice(tokens.length).map((_, i) => makeToken(side, tokens.length + i));
  columns[side].append(...made.map(({ node }) => node));
  tokens.push(...made);
  tokens.forEach(({ node, label }, at) => {
    if (label.textContent === header.labels[at]) return;
    label.textContent = header.labels[at];
    node.setAttribute("aria-label", `‘${header.labels[at]}’ (${at})`);
  });
  if (tokens.length && !tokens.some(({ node }) => node.tabIndex === 0)) tokens[0].node.tabIndex = 0;
}

function markTokens(linker) {
  const { place, found } = linker;
  for (const side of ["query", "key"]) {
    linker.entries[side].forEach((entry, at) => {
      markToken(linker, entry, side === place?.side ? undefined : found.get(at));
      entry.node.classList.toggle("chosen", place?.side === side && place.at === at);
      entry.node.setAttribute("aria-selected", String(same(linker.pinned, { side, at })));
    });
  }
}

function markToken(linker, entry, link) {
  const colour = link ? tint(linker, link) : "";
  if (entry.colour !== colour) entry.label.style.background = entry.colour = colour;
  write(entry.number, link ? written(link.value) : "");
}

function same(one, other) {
  return one?.side === other?.side && one?.at === other?.at;
}

// ---- words

function named({ header }, at) {
  const label = element("bdi", "name");
  label.textContent = header.labels[at];
  return ["‘", label, `’ (${at})`];
}

function say(linker) {
  const { place, found, header, shown } = linker;
  const plan = JSON.stringify(place && [place, [...found], [...shown], header.labels]);
  if (plan === linker.said) return;
  linker.said = plan;
  if (!place) return linker.words.replaceChildren("No token is chosen.");
  const most = [...found].sort(([, one], [, other]) => other.value - one.value).slice(0, NAMED);
  const verb = place.side === "query" ? " attends to " : " is attended to by ";
  const partners = most.flatMap(([at, { slot, value }], i) => {
    const head = shown.size > 1 ? ` in head ${header.heads[slot]}` : "";
    return [i ? ", " : "", ...named(linker, at), `: ${written(value)}${head}`];
  });
  const rest = found.size > most.length ? `, and ${found.size - most.length} more` : "";
  linker.words.replaceChildren(...named(linker, place.at), verb, ...(most.length ? partners : ["nothing"]), rest, ".");
}

// ---- the prompt's chips

function chipsOf(strip) {
  return strip ? [...strip.querySelectorAll(".chip")] : [];
}

// A token is outlined, what it is joined with is tinted; Streamlit may have made the chips anew.
function tintChips(linker) {
  const strip = document.querySelector(STRIP);
  const { place, found } = linker;
  if (linker.strip !== strip) clearChips(linker);
  linker.strip = strip;
  strip?.classList.add("linked");
  strip?.classList.toggle("tinted", Boolean(place));
  chipsOf(strip).forEach((chip, at) => {
    const link = found.get(at);
    if (link) chip.style.setProperty("--tint", tint(linker, link));
    else chip.style.removeProperty("--tint");
    chip.classList.toggle("chosen", place?.at === at);
    if (!chip.hasAttribute("tabindex")) chip.tabIndex = at === 0 ? 0 : -1;
  });
}

function clearChips({ strip }) {
  strip?.classList.remove("linked", "tinted");
  for (const chip of chipsOf(strip)) {
    chip.style.removeProperty("--tint");
    chip.classList.remove("chosen");
    chip.removeAttribute("tabindex");
  }
}

function chipPlace(linker, event) {
  const chip = event.target.closest?.(`${STRIP} .chip`);
  const at = chip ? chipsOf(linker.strip).indexOf(chip) : -1;
  return at >= 0 && at < linker.header.labels.length ? { side: "query", at } : undefined;
}

function onChipKey(linker, event) {
  const place = chipPlace(linker, event);
  const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  if (!place || event.altKey || event.ctrlKey || event.metaKey) return;
  if (event.key === "Enter" || event.key === " ") pin(linker, place);
  else if (step) rove(chipsOf(linker.strip), place.at + step);
  else return;
  event.preventDefault();
  event.stopPropagation();
}

// ---- choosing a token

function render(linker) {
  linker.place = linker.pinned ?? linker.hovered;
  linker.found = linker.place ? strongest(linker, linker.place) : new Map();
  markTokens(linker);
  say(linker);
  tintChips(linker);
  redraw(linker);
}

// by: what the hand or the focus is on, "token" or "chip"; only what it has left is let go.
function hover(linker, place, by) {
  if (!place && linker.by !== by) return;
  linker.by = by;
  if (same(linker.hovered, place)) return;
  linker.hovered = place;
  if (linker.pinned) return;
  if (place && by === "chip") reveal(linker, place);
  render(linker);
}

function pin(linker, place) {
  linker.pinned = same(linker.pinned, place) ? undefined : place;
  render(linker);
}

function release(linker) {
  if (!linker.pinned && !linker.hovered) return;
  linker.pinned = linker.hovered = undefined;
  render(linker);
}

// Scrolls the columns, never the page.
function reveal({ view }, { at }) {
  const top = at * ROW;
  if (top < view.scrollTop) view.scrollTop = top;
  else if (top + ROW > view.scrollTop + view.clientHeight) view.scrollTop = top + ROW - view.clientHeight;
}

function rove(nodes, at) {
  const node = nodes[Math.max(0, Math.min(at, nodes.length - 1))];
  for (const each of nodes) each.tabIndex = each === node ? 0 : -1;
  node?.focus({ preventScroll: true });
  node?.scrollIntoView({ block: "nearest" });
}

function tokenPlace(event) {
  const token = event.target.closest?.(".token");
  return token ? { side: token.dataset.side, at: Number(token.dataset.at) } : undefined;
}

function onTokenKey(linker, event) {
  const place = tokenPlace(event);
  if (!place || event.altKey || event.ctrlKey || event.metaKey) return;
  const last = linker.header.labels.length - 1;
  const to = { ArrowUp: place.at - 1, ArrowDown: place.at + 1, Home: 0, End: last }[event.key];
  const side = { ArrowLeft: "query", ArrowRight: "key" }[event.key];
  if (event.key === "Enter" || event.key === " ") pin(linker, place);
  else if (to !== undefined || side) rove(nodes(linker, side ?? place.side), to ?? place.at);
  else return;
  event.preventDefault();
  event.stopPropagation();
}

function nodes(linker, side) {
  return linker.entries[side].map(({ node }) => node);
}

// ---- heads

function makeSwitch(linker, head, slot) {
  const button = element("button", "head");
  const square = element("span", "square");
  button.type = "button";
  square.style.setProperty("--colour", linker.header.colours[slot]);
  button.append(square, `head ${head}`);
  button.addEventListener("click", () => toggle(linker, head));
  return button;
}

function makeSwitches(linker) {
  const { heads, colours } = linker.header;
  const plan = JSON.stringify([heads, colours]);
  if (plan === linker.plan) return;
  linker.plan = plan;
  const all = element("button", "all");
  all.type = "button";
  all.hidden = heads.length < 2;
  all.addEventListener("click", () => toggleAll(linker));
  linker.switches.replaceChildren(...heads.map((head, slot) => makeSwitch(linker, head, slot)), all);
}

function markSwitches({ switches, header, shown }) {
  header.heads.forEach((head, slot) => {
    const button = switches.children[slot];
    const on = shown.has(head);
    button.setAttribute("aria-pressed", String(on));
    button.setAttribute("aria-disabled", String(on && shown.size === 1)); // one stays
  });
  const all = shown.size === header.heads.length;
  write(switches.lastChild, all ? `only head ${header.chosen}` : "all heads");
}

function show(linker, heads) {
  linker.shown = new Set(heads);
  markSwitches(linker);
  render(linker);
}

function toggle(linker, head) {
  const heads = new Set(linker.shown);
  if (!heads.delete(head)) heads.add(head);
  if (heads.size) show(linker, heads);
}

function toggleAll(linker) {
  const { heads, chosen } = linker.header;
  show(linker, linker.shown.size === heads.length ? [chosen] : heads);
}

// The page's head alone, until the hand has chosen others: these stay, and the page's head comes to them.
function headsToShow({ shown }, before, { heads, chosen }) {
  if (!shown || (shown.size === 1 && shown.has(before?.chosen))) return [chosen];
  const kept = heads.filter((head) => shown.has(head));
  return chosen === before.chosen && kept.length ? kept : [...kept, chosen];
}

// ---- life

function update(linker, header) {
  const heads = headsToShow(linker, linker.header, header);
  linker.header = header;
  linker.frameNode.setAttribute("aria-label", header.alt);
  arrange(linker, "query");
  arrange(linker, "key");
  if (linker.pinned?.at >= header.labels.length) linker.pinned = undefined;
  if (linker.hovered?.at >= header.labels.length) linker.hovered = undefined;
  makeSwitches(linker);
  show(linker, heads);
}

function listen(linker) {
  const { signal } = linker.gone;
  const on = (node, name, act) => node.addEventListener(name, act, { signal });
  on(linker.view, "pointerover", (event) => hover(linker, tokenPlace(event), "token"));
  on(linker.view, "pointerleave", () => hover(linker, undefined, "token"));
  on(linker.view, "focusin", (event) => event.target.matches(":focus-visible") && hover(linker, tokenPlace(event), "token"));
  on(linker.view, "focusout", () => hover(linker, undefined, "token"));
  on(linker.view, "click", (event) => tokenPlace(event) && pin(linker, tokenPlace(event)));
  on(linker.view, "keydown", (event) => onTokenKey(linker, event));
  linker.view.addEventListener("scroll", () => redraw(linker), { passive: true, signal });
  on(document, "keydown", (event) => event.key === "Escape" && release(linker));
}

function listenToChips(linker) {
  const { signal } = linker.gone;
  const on = (name, act) => document.addEventListener(name, act, { signal });
  on("pointerover", (event) => hover(linker, chipPlace(linker, event), "chip"));
  on("focusin", (event) => event.target.matches?.(":focus-visible") && hover(linker, chipPlace(linker, event), "chip"));
  on("focusout", () => hover(linker, undefined, "chip"));
  on("click", (event) => chipPlace(linker, event) && pin(linker, chipPlace(linker, event)));
  on("keydown", (event) => onChipKey(linker, event));
  document.documentElement.addEventListener("pointerleave", () => hover(linker, undefined, "chip"), { signal });
}

function watch(linker) {
  linker.resized = new ResizeObserver(() => redraw(linker));
  linker.resized.observe(linker.view);
  linker.replaced = new MutationObserver(() => linker.strip?.isConnected || tintChips(linker));
  linker.replaced.observe(document.body, { childList: true, subtree: true });
}

function makeColumn(side, name) {
  const column = element("div", `column ${side}`, "listbox");
  column.setAttribute("aria-label", name);
  return column;
}

function start(root) {
  const frameNode = element("div", "linker", "group");
  const switches = element("div", "heads", "group");
  const titles = element("div", "titles");
  const view = element("div", "view");
  const canvas = element("canvas", "lines");
  const words = element("p", "words", "status");
  const columns = { query: makeColumn("query", "attending"), key: makeColumn("key", "attended to") };
  switches.setAttribute("aria-label", "heads shown");
  canvas.setAttribute("aria-hidden", "true");
  titles.append(...["attending (query)", "attended to (key)"].map((text) => Object.assign(element("div", ""), { textContent: text })));
  view.append(columns.query, canvas, columns.key);
  frameNode.append(switches, titles, view, words);
  root.append(frameNode);
  const entries = { query: [], key: [] };
  const linker = { frameNode, switches, view, canvas, words, columns, entries, gone: new AbortController() };
  linkers.set(root, linker);
  listen(linker);
  listenToChips(linker);
  watch(linker);
  return linker;
}

// React calls this when it hides the page for a moment, too, and then draws again: only what has left the page ends.
function leave(root) {
  setTimeout(() => root.isConnected || stop(root));
}

function stop(root) {
  const linker = linkers.get(root);
  if (!linker) return;
  linkers.delete(root);
  linker.gone.abort();
  linker.resized.disconnect();
  linker.replaced.disconnect();
  cancelAnimationFrame(linker.frame);
  clearChips(linker);
  linker.frameNode.remove();
}

export default function ({ data, parentElement }) {
  const linker = linkers.get(parentElement) ?? start(parentElement);
  update(linker, decode(data));
  return () => leave(parentElement);
}
