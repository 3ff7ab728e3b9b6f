// The room of a stream: UB of its groups over time, the evidence, and the population.
import { start, change, fill, params, late } from "./room.js";
import { draw, ink } from "./charts.js";

start(show);

function show(shown) {
  const charts = shown?.charts;
  document.getElementById("charts").hidden = !charts;
  late();
  streams(shown?.streams ?? [], shown?.stream);
  if (!shown) return;
  const patterns = new Set([...shown.findings, ...(shown.group?.parents ?? []), ...(shown.group?.children ?? [])].map((each) => each.pattern));
  document.getElementById("groups").replaceChildren(...[...patterns].map((each) => new Option(each, each)));
  if (!charts) return;
  biases(shown, charts.biases);
  evidence(shown, charts.evidence);
  population(shown, charts.population);
}

/** Offer the streams of the store; the first of them needs no parameter. */
function streams(listed, now) {
  const field = document.getElementById("f-stream");
  const asked = params().get("stream") ?? "";
  const made = listed.map((each, i) => new Option(each.name, i || each.name === asked ? each.name : "", false, each.name === now));
  // Without an answer there is still a way to another stream.
  field.replaceChildren(...(made.length ? made : [new Option("the first one", ""), ...(asked ? [new Option(asked, asked, false, true)] : [])]));
}

const COLOURS = () => [ink("--more"), ink("--fewer"), "#b8860b", "#4d9b6d", "#a06fc4", ink("--soft"), "#d16ba5", "#3fa7b5", "#8c6d4a"];
const DASHES = [[1, 0], [6, 3], [2, 2], [8, 2, 2, 2]];

/** Time across; the data are milliseconds of the clock that is shown. */
const time = (ticks = 5) => ({ field: "t", type: "temporal", scale: { type: "utc", nice: false }, axis: { title: null, grid: false, labelOverlap: true, tickCount: ticks } });

/** Nothing to see: it gives all charts the same times, also one with a single period or with gaps. */
const ends = () => ({ data: { name: "span" }, mark: { type: "rule", opacity: 0, aria: false }, encoding: { x: time() } });

function span([first, last]) {
  const room = 0.01 * (last - first) || 43200000;
  return [{ t: first - room }, { t: last + room }];
}

const PARTS = ["band", "limits", "window", "points", "alarms"];
const single = (shown) => shown.periods.every((each) => each.batches === 1);

function biases(shown, lines) {
  const figure = document.getElementById("biases").closest("figure");
  figure.hidden = !lines.length;
  if (!lines.length) return;
  const group = shown.group?.pattern;
  document.getElementById("cap-biases").textContent = group ? `UB of ${group} over time` : "UB over time of the groups with alerts and the most evidence";
  document.getElementById("about-biases").textContent = `Dots: UB of each ${single(shown) ? "batch" : "period"}. Line: UB of ${shown.window} of them together, which describes and tests nothing. Band: the ${+(100 * (1 - shown.watched.alpha)).toFixed(2)} % confidence sequence, if the ratio of rates is the same in all batches. Dashed: limits. Red: an alert was raised.`;
  const data = { zero: [{ at: 0 }], span: span(lines[0].span) };
  lines.forEach((line, i) => { for (const part of PARTS) if (line[part].length) data[`${part}${i}`] = line[part].map((each) => ({ ...each, pattern: line.pattern })); });
  draw("biases", (width) => {
    const columns = width > 640 && lines.length > 1 ? 2 : 1;
    const each = Math.max(110, columns === 2 ? (width - 75) / 2 : width);
    return { columns, spacing: 24, concat: lines.map((line, i) => bias(line, i, each)) };
  }, data, { key: JSON.stringify(lines.map((line) => [line.name, line.domain, PARTS.map((part) => line[part].length > 0)])) }).then((view) => picks(view));
}

/** One group and label: what is drawn first lies below. */
function bias(line, i, width) {
  const x = time();
  const scale = { domain: line.domain, nice: false };
  const y = (field) => ({ field, type: "quantitative", scale, axis: { title: "UB", format: "+.2f", tickCount: 5 } });
  // A scale warns of data that are empty.
  const layer = (part, mark, encoding) => line[part].length ? [{ data: { name: `${part}${i}` }, mark, encoding }] : [];
  const about = { tooltip: { field: "about" }, description: { field: "about" } };
  return {
    width, height: 130, title: { text: line.name, anchor: "start", frame: "group", fontWeight: "normal", fontSize: 13, limit: width },
    layer: [
      ends(),
      ...layer("band", { type: "area", color: ink("--more"), opacity: 0.18, clip: true, aria: false }, { x, y: y("low"), y2: { field: "high" } }),
      { data: { name: "zero" }, mark: { type: "rule", color: ink("--bar"), opacity: 0.6, aria: false }, encoding: { y: y("at") } },
      ...layer("limits", { type: "rule", strokeDash: [5, 4], color: ink("--soft"), aria: false }, { y: y("limit") }),
      ...layer("window", { type: "line", color: ink("--more"), strokeWidth: 2, clip: true, aria: false }, { x, y: y("ub") }),
      ...layer("points", { type: "point", filled: true, size: 18, color: ink("--more"), opacity: 0.6, clip: true, cursor: "pointer" }, { x, y: y("ub"), ...about }),
      ...layer("alarms", { type: "rule", color: ink("--fewer"), strokeWidth: 2 }, { x, ...about }),
      ...layer("alarms", { type: "text", align: "left", dx: 5, color: ink("--fewer"), text: "alert", aria: false }, { x, y: { value: 8 } }),
    ],
  };
}

function evidence(shown, made) {
  const figure = document.getElementById("evidence").closest("figure");
  figure.hidden = !made.points.length;
  if (!made.points.length) return;
  const alpha = shown.watched.alpha;
  document.getElementById("about-evidence").textContent = `A group and label alone raise an alert above the lower dashed line, 1/${alpha}. Among ${shown.pairs.toLocaleString("en-US")} of them the first needs the upper one, ${shown.pairs.toLocaleString("en-US")}/${alpha}, and every further one less.`;
  const thresholds = [...new Set([made.threshold, made.first_threshold])].map((at) => ({ at }));
  draw("evidence", (width) => ({
    width, height: 220,
    layer: [
      ends(),
      { data: { name: "thresholds" }, mark: { type: "rule", strokeDash: [5, 4], color: ink("--soft"), aria: false }, encoding: { y: { field: "at", type: "quantitative" } } },
      { data: { name: "points" }, mark: { type: "line", strokeWidth: 2, tooltip: true }, encoding: { x: time(), y: { field: "log10_e", type: "quantitative", axis: { title: "evidence: 10 to the power of", tickCount: 5 } }, ...named(made.names), tooltip: { field: "about" }, description: { field: "name" } } },
    ],
  }), { points: made.points, thresholds, span: span(made.span) }, { key: JSON.stringify(made.names) });
}

/** Colours and dashes of lines, so that nobody has to tell colours apart. */
function named(names) {
  const legend = { title: null, orient: "bottom", direction: "vertical", columns: 1, symbolType: "stroke", symbolSize: 300, labelLimit: 340 };
  const colours = COLOURS();
  return {
    color: { field: "name", type: "nominal", scale: { domain: names, range: names.map((_, i) => colours[i % colours.length]) }, legend },
    strokeDash: { field: "name", type: "nominal", scale: { domain: names, range: names.map((_, i) => DASHES[i % DASHES.length]) }, legend },
  };
}

function population(shown, made) {
  document.getElementById("cap-rates").textContent = `Rates of ${made.label}`;
  shares("rates", made.rates, made.labels, made.span);
  shares("sizes", made.sizes, made.groups, made.span);
  const dots = made.distances.map((each) => ({ ...each, far: each.distance > 2 * each.expected }));
  draw("distances", (width) => ({
    width, height: 220,
    layer: [
      ends(),
      { data: { name: "dots" }, mark: { type: "line", color: ink("--soft"), strokeWidth: 2, aria: false }, encoding: { x: time(), y: { field: "expected", type: "quantitative" } } },
      { data: { name: "dots" }, mark: { type: "point", filled: true, opacity: 0.85 }, encoding: { x: time(), y: { field: "distance", type: "quantitative", axis: { title: "share of rows", format: "%", tickCount: 5 } }, color: { condition: { test: "datum.far", value: ink("--fewer") }, value: ink("--bar") }, size: { condition: { test: "datum.far", value: 60 }, value: 24 }, tooltip: { field: "about" }, description: { field: "about" } } },
    ],
  }), { dots, span: span(made.span) });
}

function shares(id, points, names, times) {
  draw(id, (width) => ({
    width, height: 200,
    layer: [
      ends(),
      { data: { name: "points" }, mark: { type: "line", strokeWidth: 1.8 }, encoding: { x: time(), y: { field: "share", type: "quantitative", axis: { title: "share of rows", format: "%", tickCount: 5 } }, ...named(names), tooltip: { field: "about" }, description: { field: "name" } } },
    ],
  }), { points, span: span(times) }, { key: JSON.stringify(names) });
}

const picked = new WeakSet();
function picks(view) {
  if (picked.has(view)) return;
  picked.add(view);
  view.addEventListener("click", (_, item) => { if (item?.datum?.pattern) { change({ group: item.datum.pattern }); fill(); } });
}
