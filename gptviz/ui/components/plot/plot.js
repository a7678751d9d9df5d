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
  const host = { frame, node, message, turn: 0 };
  const { signal } = (host.gone = new AbortController());
  document.addEventListener("gptviz-values", ({ detail }) => replace(host, detail), { signal });
  host.observer = new ResizeObserver(() => requestAnimationFrame(() => resize(host)));
  host.observer.observe(frame);
  host.sight = new IntersectionObserver(([{ isIntersecting }]) => (host.inSight = isIntersecting));
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

function layoutOf(host, figure, options) {
  const layout = { uirevision: "kept", ...figure.layout, height: options.height };
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

// Once the browser has nothing else to do: what nobody sees yet lets the rest go first.
function rest() {
  const wait = window.requestIdleCallback ?? ((then) => setTimeout(then, 100));
  return new Promise((resolve) => wait(resolve, { timeout: 500 }));
}

async function draw(host, { figure, options }) {
  const turn = ++host.turn;
  host.node.style.height = `${options.height}px`;
  host.node.classList.toggle("clickable", options.clickable);
  host.clickable = options.clickable;
  host.Plotly = await load(options.source);
  if (host.inSight === false) await rest();
  if (turn !== host.turn) return; // a later run has overtaken this one, or the component is gone
  const layout = layoutOf(host, figure, options);
  host.background = background(host);
  host.fixed = !layout.autosize;
  host.width = host.frame.clientWidth;
  host.config ??= configOf(host, layout); // made once: react starts over, zoom lost, when the configuration differs
  await host.Plotly.react(host.node, figure.data, layout, host.config);
  host.node.setAttribute("aria-label", options.alt);
  if (!host.drawn) host.node.on("plotly_click", (event) => report(host, event));
  host.drawn = true;
}

// Other values in the figure as it is, the text of which then is what Python will send: it need not be drawn again.
function replace(host, { plot, z, alt }) {
  if (!host.text) return;
  const { figure, options } = JSON.parse(host.text);
  if (plot !== options.key || z.length !== figure.data[0].z?.bdata?.length) return;
  const swap = (text, before, after) => text.replace(before, () => after);
  const text = swap(host.text, figure.data[0].z.bdata, z);
  show(host, swap(text, JSON.stringify(options.alt), JSON.stringify(alt)));
}

function show(host, text) {
  if (text === host.text && background(host) === host.background) return; // nothing to draw anew
  host.text = text;
  host.message.textContent = "";
  draw(host, JSON.parse(text)).catch((error) => {
    host.message.textContent = error.message;
    host.background = undefined; // so that the next run tries again
    if (!host.drawn) host.node.style.height = "0";
  });
}

export default function ({ data, parentElement, setTriggerValue }) {
  const host = hosts.get(parentElement) ?? start(parentElement);
  host.send = (click) => setTriggerValue("click", click);
  show(host, new TextDecoder().decode(data));
  return () => leave(parentElement);
}
