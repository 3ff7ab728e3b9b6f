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

const ink = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/** Diverging colours that colour-blind people can tell apart: red for fewer rows, blue for more. */
export const DIVERGING = ["#2166ac", "#67a9cf", "#d1e5f0", "#f7f7f7", "#fddbc7", "#ef8a62", "#b2182b"];

function config() {
  const words = { labelColor: ink("--ink"), titleColor: ink("--ink"), labelFontSize: 12, titleFontSize: 12, titleFontWeight: "normal", labelLimit: 210 };
  return {
    background: null, font: "system-ui, Liberation Sans, Arial, sans-serif", view: { stroke: null },
    axis: { ...words, gridColor: ink("--line"), domainColor: ink("--bar"), tickColor: ink("--bar") },
    legend: words, title: { color: ink("--ink") }, text: { color: ink("--ink") }, rule: { color: ink("--ink") },
  };
}

/** Draw a chart, or give the present one new data. `spec` is a function, called when it is compiled. */
export async function draw(id, spec, data, { key = "" } = {}) {
  const place = document.getElementById(id);
  const theme = ink("--scheme");
  const known = views.get(id);
  if (known && known.key === key && known.theme === theme) {
    const view = await known.view;
    for (const [name, values] of Object.entries(data)) view.data(name, values);
    await view.runAsync();
    return view;
  }
  const made = loaded.then(async (embed) => {
    const full = { $schema: "https://vega.github.io/schema/vega-lite/v6.json", ...spec(Math.max(120, place.clientWidth - 245)), config: config() };
    full.datasets = data;
    const { view } = await embed(place, full, { actions: false, ast: true, renderer: "svg", defaultStyle: false, tooltip: showTip });
    return view;
  });
  if (known) known.view.then((view) => view.finalize());
  views.set(id, { view: made, key, theme, again: () => draw(id, spec, data, { key }) });
  return made;
}

addEventListener("themechange", () => { for (const each of [...views.values()]) each.again(); });

export const view = (id) => views.get(id)?.view;

function showTip(_, event, item, value) {
  if (value === null || value === undefined || value === "") { tip.hidden = true; return; }
  tip.textContent = typeof value === "object" ? Object.values(value).join(", ") : value;
  tip.hidden = false;
  tip.style.left = Math.min(event.clientX + 12, innerWidth - 280) + "px";
  tip.style.top = event.clientY + 14 + "px";
}
