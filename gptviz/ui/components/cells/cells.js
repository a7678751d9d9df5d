// A table of tokens on coloured cells. The payload is one JSON document: see Table in __init__.py.

const SETTLE = 150; // ms of rest after an arrow key before the pick is reported
const ARROWS = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
const grids = new WeakMap(); // the component's root -> grid

function element(name, className, text = "") {
  const made = document.createElement(name);
  made.className = className;
  made.textContent = text;
  return made;
}

// ---- drawing

function header(text, scope, className) {
  const made = element("th", className, text);
  made.scope = scope;
  return made;
}

function cell(given, row, column) {
  const made = element("td", "cell", given.text[row][column]);
  const words = `${given.rows[row]}, ${given.columns[column]}: ‘${given.text[row][column]}’`;
  made.title = `${words}, ${given.measure} ${given.values[row][column]}`;
  made.style.backgroundColor = given.colours[given.levels[row][column]];
  made.dataset.at = `${row}.${column}`;
  return made;
}

function build(grid, given) {
  const head = element("tr", "");
  head.append(element("td", "corner"), ...given.columns.map((name) => header(name, "col", "column")));
  const rows = given.rows.map((name, row) => {
    const line = element("tr", "");
    line.append(header(name, "row", "name"), ...given.columns.map((_, column) => cell(given, row, column)));
    return line;
  });
  grid.table.replaceChildren(head, ...rows);
  grid.legend.replaceChildren(element("span", "", given.measure), element("span", "end", given.low));
  const bar = element("span", "bar");
  bar.style.background = `linear-gradient(to right, ${given.colours.join()})`;
  grid.legend.append(bar, element("span", "end", given.high));
}

function update(grid, text) {
  const given = JSON.parse(text);
  const { selected, settled, ...look } = given;
  const drawn = JSON.stringify(look);
  if (drawn !== grid.drawn) build(grid, given);
  grid.drawn = drawn;
  grid.given = given;
  grid.pane.style.maxHeight = `${given.height}px`;
  grid.pane.setAttribute("aria-label", given.alt);
  // Until Python has seen the last pick, its `selected` is older than what the hand has done.
  mark(grid, grid.sent === undefined || settled === grid.sent ? selected : grid.selected);
}

// ---- selection

function inside(grid, [row, column]) {
  const { rows, columns } = grid.given;
  const within = (value, count) => Math.min(Math.max(value, 0), count - 1);
  return [within(row, rows.length), within(column, columns.length)];
}

function mark(grid, wanted) {
  const at = inside(grid, wanted);
  grid.table.querySelector(".selected")?.classList.remove("selected");
  const node = grid.table.rows[at[0] + 1].cells[at[1] + 1];
  node.classList.add("selected");
  grid.selected = at;
  grid.status.textContent = node.title;
  if (String(at) === grid.shown) return;
  grid.shown = String(at);
  reveal(grid.pane, node, grid.table.rows[0].cells[0]);
}

// Scrolls the table alone, never the page.
function reveal(pane, node, corner) {
  const { clientHeight, clientWidth } = pane;
  const top = node.offsetTop - corner.offsetHeight;
  const left = node.offsetLeft - corner.offsetWidth;
  if (top < pane.scrollTop) pane.scrollTop = top;
  if (left < pane.scrollLeft) pane.scrollLeft = left;
  pane.scrollTop = Math.max(pane.scrollTop, node.offsetTop + node.offsetHeight - clientHeight);
  pane.scrollLeft = Math.max(pane.scrollLeft, node.offsetLeft + node.offsetWidth - clientWidth);
}

function pick(grid, at, delay = 0) {
  mark(grid, at);
  grid.sent = Math.max(Date.now(), (grid.sent ?? 0) + 1);
  clearTimeout(grid.timer);
  const [row, column] = grid.selected;
  const report = () => grid.send({ row, column, at: grid.sent });
  if (delay) grid.timer = setTimeout(report, delay);
  else report();
}

function onKey(grid, event) {
  const arrow = ARROWS[event.key];
  if (!arrow || event.altKey || event.ctrlKey || event.metaKey) return;
  pick(grid, [grid.selected[0] + arrow[0], grid.selected[1] + arrow[1]], SETTLE);
  event.preventDefault();
  event.stopPropagation();
}

// ---- life

function start(root) {
  const pane = element("div", "pane");
  const table = element("table", "table");
  const legend = element("div", "legend");
  const status = element("div", "status");
  pane.tabIndex = 0;
  pane.setAttribute("role", "group");
  status.setAttribute("role", "status");
  pane.append(table);
  root.append(pane, legend, status);
  const grid = { pane, table, legend, status };
  table.addEventListener("click", ({ target }) => {
    if (target.dataset.at) pick(grid, target.dataset.at.split(".").map(Number));
  });
  pane.addEventListener("keydown", (event) => onKey(grid, event));
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
  clearTimeout(grid.timer);
  for (const node of [grid.pane, grid.legend, grid.status]) node.remove();
}

export default function ({ data, parentElement, setTriggerValue }) {
  const grid = grids.get(parentElement) ?? start(parentElement);
  grid.send = (value) => setTriggerValue("pick", value);
  const text = new TextDecoder().decode(data);
  if (text !== grid.text || grid.sent !== undefined) update(grid, text);
  grid.text = text;
  return () => leave(parentElement);
}
