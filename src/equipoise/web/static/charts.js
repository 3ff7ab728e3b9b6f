// Vega charts in the colours of the page. A chart is compiled once; then only its data changes.

const loaded = new Promise((done, failed) => {
  const script = document.createElement("script");
  script.src = "/static/vega.js";
  script.onload = () => done(window.vegaEmbed);
  script.onerror = () => failed(new Error("the charts cannot be loaded"));
  document.head.append(script);
});
const tip = document.getElementById("tip");
const views = new Map();

/** A colour of the page. */
export const ink = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/** Diverging colours that colour-blind people can tell apart: red for fewer rows, blue for more. */
export const DIVERGING = ["#2166ac", "#67a9cf", "#d1e5f0", "#f7f7f7", "#fddbc7", "#ef8a62", "#b2182b"];

function config() {
  const words = { labelColor: ink("--ink"), titleColor: ink("--ink"), labelFontSize: 12, titleFontSize: 12, titleFontWeight: "normal", labelLimit: 300 };
  return {
    background: null, font: "system-ui, Liberation Sans, Arial, sans-serif", view: { stroke: null },
    axis: { ...words, gridColor: ink("--line"), domainColor: ink("--bar"), tickColor: ink("--bar") },
    legend: words, title: { color: ink("--ink") }, text: { color: ink("--ink") }, rule: { color: ink("--ink") },
  };
}

const ruler = document.createElement("canvas").getContext("2d");

/** Pixels that the longest of some labels takes, in steps, so that few charts are compiled again. */
function breadth(names, place) {
  if (!names.length) return 0;
  ruler.font = "12px system-ui, Liberation Sans, Arial, sans-serif";
  const longest = Math.max(...names.map((name) => ruler.measureText(name).width));
  return Math.min(20 * Math.ceil(longest / 20), Math.floor(0.65 * place.clientWidth), 300);
}

/**
 * Draw a chart, or give the present one new data. `spec` is a function of the width that is left beside
 * the labels `names`, called when the chart is compiled.
 */
export async function draw(id, spec, data, { key: own = "", names = [] } = {}) {
  const place = document.getElementById(id);
  const words = breadth(names, place);
  const key = JSON.stringify([own, words, innerWidth]);
  const theme = ink("--scheme");
  const known = views.get(id);
  if (known && known.key === key && known.theme === theme) {
    known.again = () => draw(id, spec, data, { key: own, names });
    const view = await known.view;
    for (const [name, values] of Object.entries(data)) view.data(name, values);
    await view.runAsync();
    return view;
  }
  const made = loaded.then(async (embed) => {
    const full = { $schema: "https://vega.github.io/schema/vega-lite/v6.json", description: place.closest("figure")?.querySelector("figcaption")?.textContent ?? "chart", ...spec(Math.max(110, place.clientWidth - words - (words ? 40 : 75))), config: config() };
    full.config.axisY = { labelLimit: words || 300 };
    full.config.axisX = { labelFlush: false, labelSeparation: 6 };
    full.datasets = data;
    const { view } = await embed(place, full, { actions: false, ast: true, renderer: "svg", defaultStyle: false, tooltip: showTip });
    // What does not fit is scrolled, with the keyboard, too.
    if (place.scrollWidth > place.clientWidth) place.tabIndex = 0; else place.removeAttribute("tabindex");
    return view;
  });
  if (known) known.view.then((view) => view.finalize());
  views.set(id, { view: made, key, theme, again: () => draw(id, spec, data, { key: own, names }) });
  return made;
}

async function again() {
  await Promise.all([...views.values()].map((each) => each.again()));
  dispatchEvent(new Event("redrawn"));
}
addEventListener("themechange", again);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again);
let resized = null;
addEventListener("resize", () => { clearTimeout(resized); resized = setTimeout(again, 200); });

export const view = (id) => views.get(id)?.view;

function showTip(_, event, item, value) {
  if (value === null || value === undefined || value === "") { tip.hidden = true; return; }
  tip.textContent = typeof value === "object" ? Object.values(value).join(", ") : value;
  tip.hidden = false;
  tip.style.left = Math.min(event.clientX + 12, innerWidth - 280) + "px";
  tip.style.top = event.clientY + 14 + "px";
}
