// Hosts plotly.js: one figure in one node, redrawn in place.

const hosts = new WeakMap(); // the component's root element -> host
let library; // plotly.js, loaded once for the page

function fetchScript(source) {
  return new Promise((resolve, reject) => {
    const script = document.createElement("script");
    const failed = `plotly.js could not be loaded from ${source}: is server.enableStaticServing on?`;
    script.src = new URL(source, document.baseURI).href;
    // Streamlit answers an unknown address with its own page, which loads and defines nothing.
    script.onload = () => (window.Plotly ? resolve(window.Plotly) : reject(new Error(failed)));
    script.onerror = () => reject(new Error(failed));
    document.head.append(script);
  });
}

function load(source) {
  library ??= fetchScript(source).catch((error) => {
    library = undefined; // so that the next run tries again
    throw error;
  });
  return library;
}

function start(root) {
  const frame = document.createElement("div");
  const node = document.createElement("div");
  const message = document.createElement("p");
  frame.className = "gptviz-plot";
  message.className = "message";
  message.setAttribute("role", "status");
  node.setAttribute("role", "img");
  frame.append(node, message);
  root.append(frame);
  const host = { frame, node, message, turn: 0, era: 0 };
  const { signal } = (host.gone = new AbortController());
  document.addEventListener("gptviz-values", ({ detail }) => replace(host, detail), { signal });
  document.addEventListener("gptviz-frame", ({ detail }) => turn(host, detail), { signal });
  host.observer = new ResizeObserver(() => requestAnimationFrame(() => resize(host)));
  host.observer.observe(frame);
  host.sight = new IntersectionObserver(([{ isIntersecting }]) => {
    host.inSight = isIntersecting;
    if (isIntersecting) host.wanted?.();
  });
  for (const over of ["gptviz-played", "gptviz-arrived"]) document.addEventListener(over, () => settle(host), { signal });
  host.sight.observe(frame);
  hosts.set(root, host);
  return host;
}

// React calls this when it hides the page for a moment, too, and then draws again: only what has left the page ends.
function leave(root) {
  setTimeout(() => root.isConnected || stop(root));
}

function stop(root) {
  const host = hosts.get(root);
  if (!host) return;
  hosts.delete(root);
  host.turn += 1;
  host.observer.disconnect();
  host.sight.disconnect();
  host.gone.abort();
  if (host.Plotly) host.Plotly.purge(host.node);
  host.frame.remove();
}

function resize(host) {
  const width = host.frame.clientWidth;
  if (!host.drawn || host.fixed || width === 0 || width === host.width) return;
  host.width = width;
  host.Plotly.Plots.resize(host.node);
}

// The page's colours, as a layout. A figure's own layout wins over it, its template does not: colours follow the
// theme even when it is switched without a rerun.
function themed(node) {
  const style = getComputedStyle(node);
  const colour = (name) => style.getPropertyValue(`--st-${name}`).trim();
  const text = colour("text-color");
  const page = colour("background-color");
  const font = { color: text, family: colour("font") };
  const line = colour("border-color");
  const clear = "rgba(0,0,0,0)";
  const axis = { gridcolor: line, zerolinecolor: line, linecolor: line, tickcolor: line };
  const axis3d = { ...axis, backgroundcolor: clear, color: text };
  return {
    paper_bgcolor: clear,
    plot_bgcolor: clear,
    font,
    xaxis: axis,
    yaxis: axis,
    scene: { xaxis: axis3d, yaxis: axis3d, zaxis: axis3d },
    hoverlabel: { bgcolor: page, bordercolor: text, font },
    modebar: { bgcolor: page, color: text, activecolor: text },
  };
}

function merge(under, over) {
  const both = { ...under };
  for (const [name, value] of Object.entries(over)) {
    const nested = value?.constructor === Object && both[name]?.constructor === Object;
    both[name] = nested ? merge(both[name], value) : value;
  }
  return both;
}

function background(host) {
  return getComputedStyle(host.node).getPropertyValue("--st-background-color").trim();
}

// The player says so. Until it is over the text only grows, even where a late drawing is behind a frame.
function playing() {
  return document.documentElement.classList.contains("gptviz-playing");
}

// A scrubber says so: its place is shown already, and Python still draws one that it has left.
function isAhead() {
  return document.documentElement.classList.contains("gptviz-ahead");
}

// How far the axes go: a zoom lasts while a matrix grows, and ends where it might show what is gone.
function spans(layout) {
  const axes = Object.entries(layout).filter(([name]) => /^[xy]axis/.test(name));
  return Object.fromEntries(axes.map(([name, { range, maxallowed }]) => [name, { range: JSON.stringify(range), maxallowed }]));
}

function ended(before, after) {
  const changed = (name) => before[name].range !== after[name].range || after[name].maxallowed < before[name].maxallowed;
  return Object.keys(after).some((name) => before[name] && changed(name));
}

function layoutOf(host, figure, options) {
  const layout = { uirevision: "kept", ...figure.layout, height: options.height };
  const before = host.spans ?? {};
  host.spans = spans(figure.layout);
  if (!playing() && ended(before, host.spans)) host.era += 1;
  layout.uirevision += ` ${host.era}`;
  const template = layout.template ?? {};
  layout.template = { ...template, layout: merge(template.layout ?? {}, themed(host.node)) };
  layout.autosize = layout.width === undefined;
  if (matchMedia("(prefers-reduced-motion: reduce)").matches) layout.transition = { duration: 0 };
  return layout;
}

function download(host, format) {
  const { data, layout, clientWidth: width, clientHeight: height } = host.node;
  const figure = { data, layout: { ...layout, paper_bgcolor: background(host) } };
  return host.Plotly.downloadImage(figure, { format, width, height, scale: 3, filename: "gptviz" });
}

function configOf(host, layout) {
  const icons = host.Plotly.Icons;
  const save = (format, icon) => ({
    name: `download-${format}`,
    title: `Download as ${format.toUpperCase()}`,
    icon,
    click: () => download(host, format),
  });
  const reset = layout.scene ? "resetCameraDefault3d" : "resetScale2d";
  return {
    displaylogo: false,
    showSendToCloud: false,
    modeBarButtons: [[save("png", icons.camera), save("svg", icons.disk), reset]],
  };
}

function report(host, { points }) {
  if (!host.clickable) return;
  const { x, y, z, customdata, curveNumber: curve } = points[0];
  host.send({ x, y, z: z ?? null, customdata: customdata ?? null, curve });
}

// What nobody sees, or what takes long, lets the rest go first, until the browser has nothing else to do. While the
// text plays on, which is to say never, until somebody looks.
function rest(host) {
  if (host.drawn && playing()) {
    return new Promise((resolve) => (host.wanted = resolve));
  }
  const wait = window.requestIdleCallback ?? ((then) => setTimeout(then, 100));
  return new Promise((resolve) => wait(resolve, { timeout: 500 }));
}

async function draw(host, { figure, options }) {
  const turn = ++host.turn;
  host.node.style.height = `${options.height}px`;
  host.node.classList.toggle("clickable", options.clickable);
  host.clickable = options.clickable;
  host.key = options.key;
  host.Plotly = await load(options.source);
  if (host.inSight === false || (!host.drawn && figure.data.some(crowded))) await rest(host);
  if (turn !== host.turn) return; // a later run has overtaken this one, or the component is gone
  const layout = layoutOf(host, figure, options);
  host.background = background(host);
  host.fixed = !layout.autosize;
  host.width = host.frame.clientWidth;
  host.config ??= configOf(host, layout); // made once: react starts over, zoom lost, when the configuration differs
  await host.Plotly.react(host.node, figure.data, layout, host.config);
  host.node.setAttribute("aria-label", options.alt);
  if (!host.drawn) {
    host.node.on("plotly_click", (event) => report(host, event));
    const crowd = () => pool(host).catch(() => {}); // the picture then stays as plotly.js drew it
    host.node.on("plotly_afterplot", crowd);
    crowd();
  }
  host.drawn = true;
}

// ---- more cells than pixels: the browser would leave most of them out

const CROWDED = 256 * 256; // cells: smaller matrices have room

function crowded({ z }) {
  return Array.isArray(z) && z.length * (z[0]?.length ?? 0) > CROWDED;
}

// Of the cells that share a pixel the one farthest from the background is shown, so that a lone bright cell survives.
// plotly.js draws a pixel a cell and has the browser scale that; each zoom draws anew.
async function pool(host) {
  const image = host.node.querySelector(".heatmaplayer image");
  const source = image?.getAttribute("href");
  if (!source || source === host.pooled || !host.node.data.some(crowded)) return;
  const whole = await pixels(source);
  const width = Math.round(image.width.baseVal.value * devicePixelRatio);
  const height = Math.round(image.height.baseVal.value * devicePixelRatio);
  const stale = image.getAttribute("href") !== source;
  if (stale || width === 0 || (width >= whole.width && height >= whole.height)) return;
  const base = channels(background(host));
  const small = farthest(whole, Math.min(width, whole.width), Math.min(height, whole.height), base);
  host.pooled = picture(small);
  image.setAttribute("href", host.pooled);
}

async function pixels(source) {
  const image = new Image();
  image.src = source;
  await image.decode();
  const { naturalWidth: width, naturalHeight: height } = image;
  const context = new OffscreenCanvas(width, height).getContext("2d");
  context.drawImage(image, 0, 0);
  return context.getImageData(0, 0, width, height);
}

function picture(image) {
  const canvas = document.createElement("canvas");
  Object.assign(canvas, { width: image.width, height: image.height });
  canvas.getContext("2d").putImageData(image, 0, 0);
  return canvas.toDataURL();
}

function channels(colour) {
  const context = new OffscreenCanvas(1, 1).getContext("2d");
  context.fillStyle = colour;
  context.fillRect(0, 0, 1, 1);
  return context.getImageData(0, 0, 1, 1).data;
}

function farthest(whole, width, height, base) {
  const small = new ImageData(width, height);
  const [from, to] = [whole, small].map(({ data }) => new Uint32Array(data.buffer));
  const far = new Int32Array(to.length).fill(-1);
  const column = Uint16Array.from({ length: whole.width }, (_, x) => (x * width) / whole.width);
  for (let y = 0, i = 0; y < whole.height; y++) {
    const row = Math.floor((y * height) / whole.height) * width;
    for (let x = 0; x < whole.width; x++, i++) {
      if (!(from[i] >>> 24)) continue; // clear: no number
      const [red, green, blue] = [from[i] & 255, (from[i] >>> 8) & 255, (from[i] >>> 16) & 255];
      const distance = Math.abs(red - base[0]) + Math.abs(green - base[1]) + Math.abs(blue - base[2]);
      const at = row + column[x];
      if (distance > far[at]) [far[at], to[at]] = [distance, from[i]];
    }
  }
  return small;
}

// ---- data: a JSON document and, behind a zero byte, the arrays that are too large for text (payload.py)

const TYPES = {
  f4: Float32Array, f8: Float64Array, i1: Int8Array, u1: Uint8Array,
  i2: Int16Array, u2: Uint16Array, i4: Int32Array, u4: Uint32Array,
}; // prettier-ignore
const BLANK = 255; // the code of a cell without a number

function split(data) {
  const end = data.indexOf(0);
  const text = new TextDecoder().decode(end < 0 ? data : data.subarray(0, end));
  return { text, behind: end < 0 ? null : data.slice(end + 1) };
}

function parse({ text, behind }) {
  return JSON.parse(text, (name, value) => (value?.behind ? restore(value, behind) : value));
}

function restore({ dtype, shape, steps, behind: [start, length] }, bytes) {
  const own = bytes.slice(start, start + length);
  if (steps) return climb(own, shape, steps);
  const flat = new TYPES[dtype](own.buffer);
  return shape ? rows(flat, shape.split(",").map(Number)) : flat;
}

function rows(flat, [height, width]) {
  return Array.from({ length: height }, (_, row) => flat.subarray(row * width, (row + 1) * width));
}

// How much of each row there is, then the number of the step for each of its cells.
function climb(bytes, [height, width], steps) {
  const lengths = new Uint16Array(bytes.buffer, 0, height);
  const numbers = Float32Array.from({ length: BLANK + 1 }, (_, code) => steps[code] ?? NaN);
  let at = lengths.byteLength;
  return Array.from(lengths, (length) => {
    const row = new Float32Array(width).fill(NaN);
    for (let column = 0; column < length; column++) row[column] = numbers[bytes[at++]];
    return row;
  });
}

function same(left, right) {
  if (left === right) return true;
  if (left?.length !== right?.length) return false;
  for (let i = 0; i < left.length; i++) if (left[i] !== right[i]) return false;
  return true;
}

// ---- life

// Other values in the figure as it is, the text of which then is what Python will send: it need not be drawn again.
function replace(host, { plot, z, alt }) {
  if (!host.sent || host.sent.behind) return; // what is large is not sent ahead
  const { text } = host.sent;
  const { figure, options } = JSON.parse(text);
  if (plot !== options.key || z.length !== figure.data[0].z?.bdata?.length) return;
  const swap = (text, before, after) => text.replace(before, () => after);
  const other = swap(text, figure.data[0].z.bdata, z);
  show(host, { text: swap(other, JSON.stringify(options.alt), JSON.stringify(alt)), behind: null });
}

// The next frame, of a player or a reel: the figure that Python will send.
function turn(host, { plot, text }) {
  if (plot === host.key && host.inSight) show(host, { text, behind: null });
}

// That is over: what Python sent last is what holds.
function settle(host) {
  host.wanted?.();
  if (host.python) show(host, host.python);
}

function show(host, sent) {
  const before = host.sent;
  const known = before?.text === sent.text && same(before.behind, sent.behind);
  if (known && background(host) === host.background) return; // nothing to draw anew
  host.sent = sent;
  host.message.textContent = "";
  draw(host, parse(sent)).catch((error) => {
    host.message.textContent = error.message;
    host.background = undefined; // so that the next run tries again
    if (!host.drawn) host.node.style.height = "0";
  });
}

export default function ({ data, parentElement, setTriggerValue }) {
  const host = hosts.get(parentElement) ?? start(parentElement);
  host.send = (click) => setTriggerValue("click", click);
  host.python = split(data);
  if (!isAhead() || !host.drawn) show(host, host.python);
  return () => leave(parentElement);
}
