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

const COLOURS = () => [ink("--more"), ink("--fewer"), "#b8860b", "#4d9b6d", "#a06fc4", ink("--soft"), "#d16ba5", "#3a9dab", "#8c6d4a"];
const DASHES = [[1, 0], [6, 3], [2, 2], [8, 2, 2, 2]];

/** Time across: milliseconds of the clock that is shown, or the places of periods side by side. */
function time({ even, ticks, format }) {
  const axis = { title: null, grid: false, labelOverlap: true, labelSeparation: 8, labelFlush: 20, tickCount: 5 };
  if (format) axis.format = format;
  if (ticks) Object.assign(axis, written(ticks));
  // A scale of times would read single numbers as years.
  return even && !ticks
    ? { field: "t", type: "temporal", scale: { type: "utc", nice: false }, axis }
    : { field: "t", type: "quantitative", scale: { nice: false, zero: false }, axis };
}

/** What is written at some places of an axis. */
function written(ticks) {
  const values = ticks.map((each) => each.at);
  return { values, labelExpr: `${JSON.stringify(ticks.map((each) => each.text))}[indexof(${JSON.stringify(values)}, datum.value)]` };
}

/** Nothing to see: it gives all charts the same times, also one with gaps. */
const ends = (made) => ({ data: { name: "span" }, mark: { type: "rule", opacity: 0, aria: false }, encoding: { x: time(made) } });

function span({ span: [first, last], even }) {
  const room = even ? 0.01 * (last - first) : 0.6;
  return [{ t: first - room }, { t: last + room }];
}

const PARTS = ["band", "limits", "window", "points", "breaks", "alarms"];

function biases(shown, lines) {
  const figure = document.getElementById("biases").closest("figure");
  figure.hidden = !lines.length;
  if (!lines.length) return;
  const group = shown.group?.pattern;
  document.getElementById("cap-biases").textContent = group ? `UB of ${group} over time` : "UB over time of the groups with alerts and the most evidence";
  document.getElementById("about-biases").textContent = shown.charts.captions.biases;
  // Charts beside each other have their names at one height.
  const alarms = lines.some((line) => line.alarms.length);
  const data = { zero: [{ at: 0 }], span: span(lines[0]) };
  lines.forEach((line, i) => { for (const part of PARTS) if (line[part].length) data[`${part}${i}`] = line[part].map((each) => ({ ...each, pattern: line.pattern })); });
  draw("biases", (width) => {
    const columns = width > 640 && lines.length > 1 ? 2 : 1;
    const each = Math.max(110, columns === 2 ? (width - 110) / 2 : width);
    return { columns, spacing: 24, concat: lines.map((line, i) => bias(line, i, each, alarms)) };
  }, data, { key: JSON.stringify(lines.map((line) => [line.name, line.domain, line.ticks, line.format, alarms, PARTS.map((part) => line[part].length > 0)])) }).then((view) => picks(view));
}

/** A name in as many lines as it needs, since names often differ at their ends only. */
function wrapped(name, width) {
  const lines = [];
  for (const word of name.split(" ")) {
    if (lines.length && 7.6 * (lines.at(-1).length + word.length + 1) <= width) lines[lines.length - 1] += ` ${word}`;
    else lines.push(word);
  }
  return lines;
}

/** One group and label: what is drawn first lies below. */
function bias(line, i, width, alarms) {
  const x = time(line);
  const scale = { domain: line.domain, nice: false };
  const y = (field) => ({ field, type: "quantitative", scale, axis: { title: "UB", format: "+.2~f", labelExpr: "datum.value === 0 ? '0' : datum.label", tickCount: 4 } });
  // A scale warns of data that are empty.
  const layer = (part, mark, encoding) => line[part].length ? [{ data: { name: `${part}${i}` }, mark, encoding }] : [];
  const about = { tooltip: { field: "about" }, description: { field: "about" } };
  return {
    width, height: 130, title: { text: wrapped(line.name, width), anchor: "start", frame: "group", fontWeight: "normal", fontSize: 13, limit: width, offset: alarms ? 18 : 6 },
    layer: [
      ends(line),
      ...layer("band", { type: "area", color: ink("--more"), opacity: 0.18, clip: true, aria: false }, { x, y: y("low"), y2: { field: "high" }, detail: { field: "piece" } }),
      { data: { name: "zero" }, mark: { type: "rule", color: ink("--bar"), opacity: 0.6, aria: false }, encoding: { y: y("at") } },
      ...layer("limits", { type: "rule", strokeDash: [5, 4], color: ink("--soft"), aria: false }, { y: y("limit") }),
      ...layer("window", { type: "line", color: ink("--more"), strokeWidth: 2, clip: true, aria: false }, { x, y: y("ub") }),
      ...layer("points", { type: "point", filled: true, size: 18, color: ink("--more"), opacity: 0.6, clip: true, cursor: "pointer" }, { x, y: y("ub"), ...about }),
      ...layer("breaks", { type: "rule", color: ink("--soft"), strokeWidth: 1 }, { x, ...about }),
      ...layer("alarms", { type: "rule", color: ink("--fewer"), strokeWidth: 2 }, { x, ...about }),
      // Above the chart the word lies on nothing, and at its ends it stays inside.
      ...layer("alarms", { type: "text", align: { expr: "datum.share < 0.1 ? 'left' : datum.share > 0.9 ? 'right' : 'center'" }, color: ink("--fewer"), aria: false }, { x, y: { value: -8 }, text: { field: "word" } }),
      // The same room where no word is, so that names beside each other are at one height.
      ...(alarms && !line.alarms.length ? [{ data: { values: [{}] }, mark: { type: "text", opacity: 0, aria: false }, encoding: { x: { value: 0 }, y: { value: -8 }, text: { value: "alert" } } }] : []),
    ],
  };
}

function evidence(shown, made) {
  const figure = document.getElementById("evidence").closest("figure");
  figure.hidden = !made.points.length;
  if (!made.points.length) return;
  document.getElementById("about-evidence").textContent = shown.charts.captions.evidence;
  const scale = { domain: made.domain, nice: false, zero: false };
  const y = (field) => ({ field, type: "quantitative", scale, axis: { title: "e-value (logarithmic)", ...written(made.powers) } });
  const words = (field, dy) => ({ data: { name: "thresholds" }, mark: { type: "text", align: "right", dx: -4, dy, aria: false }, encoding: { x: { value: "width" }, y: y("at"), text: { field } } });
  draw("evidence", (width) => ({
    width, height: 220,
    layer: [
      ends(made),
      ...(made.breaks.length ? [{ data: { name: "breaks" }, mark: { type: "rule", color: ink("--soft"), strokeWidth: 1 }, encoding: { x: time(made), tooltip: { field: "about" }, description: { field: "about" } } }] : []),
      { data: { name: "thresholds" }, mark: { type: "rule", strokeDash: [5, 4], color: ink("--soft"), aria: false }, encoding: { y: y("at") } },
      { data: { name: "points" }, mark: { type: "line", strokeWidth: 2, tooltip: true }, encoding: { x: time(made), detail: { field: "piece" }, y: y("log10_e"), ...named(made.names, width), tooltip: { field: "about" }, description: { field: "name" } } },
      words("above", -8),
      words("below", 10),
    ],
  }), { points: made.points, thresholds: made.thresholds, span: span(made), ...(made.breaks.length ? { breaks: made.breaks } : {}) }, { key: JSON.stringify([made.names, made.ticks, made.format, made.domain, made.breaks.length > 0]) });
}

/** Colours and dashes of lines, so that nobody has to tell colours apart. */
function named(names, width) {
  const legend = { title: null, orient: "bottom", direction: "vertical", columns: 1, symbolType: "stroke", symbolSize: 300, labelLimit: 0, ...written(names.map((name) => ({ at: name, text: wrapped(name, width - 20) }))) };
  const colours = COLOURS();
  return {
    color: { field: "name", type: "nominal", scale: { domain: names, range: names.map((_, i) => colours[i % colours.length]) }, legend },
    strokeDash: { field: "name", type: "nominal", scale: { domain: names, range: names.map((_, i) => DASHES[i % DASHES.length]) }, legend },
  };
}

function population({ charts: { captions } }, made) {
  document.getElementById("cap-rates").textContent = captions.rates;
  document.getElementById("cap-sizes").textContent = captions.sizes;
  shares("rates", made.rates, made.labels, made);
  shares("sizes", made.sizes, made.groups, made);
  draw("distances", (width) => ({
    width, height: 220,
    layer: [
      ends(made),
      { data: { name: "dots" }, mark: { type: "line", color: ink("--soft"), strokeWidth: 2, aria: false }, encoding: { x: time(made), y: { field: "expected", type: "quantitative" } } },
      { data: { name: "dots" }, mark: { type: "point", filled: true, opacity: 0.85 }, encoding: { x: time(made), y: { field: "distance", type: "quantitative", axis: { title: "share of rows", format: "%", tickCount: 5 } }, color: { condition: { test: "datum.far", value: ink("--fewer") }, value: ink("--bar") }, size: { condition: { test: "datum.far", value: 60 }, value: 24 }, tooltip: { field: "about" }, description: { field: "about" } } },
    ],
  }), { dots: made.distances, span: span(made) }, { key: JSON.stringify([made.ticks, made.format]) });
}

function shares(id, points, names, made) {
  draw(id, (width) => ({
    width, height: 200,
    layer: [
      ends(made),
      { data: { name: "points" }, mark: { type: "line", strokeWidth: 1.8 }, encoding: { x: time(made), y: { field: "share", type: "quantitative", axis: { title: "share of rows", format: "%", tickCount: 5 } }, ...named(names, width), tooltip: { field: "about" }, description: { field: "name" } } },
    ],
  }), { points, span: span(made) }, { key: JSON.stringify([names, made.ticks, made.format]) });
}

const picked = new WeakSet();
function picks(view) {
  if (picked.has(view)) return;
  picked.add(view);
  view.addEventListener("click", (_, item) => { if (item?.datum?.pattern) { change({ group: item.datum.pattern }); fill(); } });
}
