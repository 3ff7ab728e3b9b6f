// The room of the bias: heat map, forest plot, and a list that draws only the rows in sight.
import { start, change, api, params, late, signed, whole, percent } from "./room.js";
import { draw, ink, DIVERGING } from "./charts.js";

const HEIGHT = 34;
const PIECE = 100;
const rows = document.getElementById("rows");
const space = document.getElementById("space");
let pieces = new Map();
let total = 0;
let active = 0;
let listed = null;
let explained = null;

start(show);

function show(shown) {
  for (const id of ["charts", "list"]) document.getElementById(id).hidden = !shown;
  late();
  if (!shown) return;
  offer("f-label_value", ["", ...shown.labels.map(String)], "all");
  offer("f-order", ["", ...Array.from({ length: shown.max_order }, (_, i) => String(i + 1))], "any number");
  heat(shown);
  forest(shown);
  pieces = new Map([[0, Promise.resolve(shown.rows)]]);
  total = shown.total;
  document.getElementById("total").textContent = `${total.toLocaleString("en-US")} of ${(shown.groups * shown.labels.length).toLocaleString("en-US")} pairs of a group and a label`;
  space.style.height = `${Math.min(total * HEIGHT, 15e6)}px`;
  const now = params();
  now.delete("at");
  if (listed !== now.toString()) { rows.scrollTop = 0; active = 0; }
  listed = now.toString();
  paint();
  // Why stands above the charts, and what was clicked may stand far below.
  if (explained && shown.at?.pattern === explained) document.getElementById("why").scrollIntoView({ block: "start" });
  explained = null;
}

function explain(pattern) {
  explained = pattern;
  change({ at: pattern });
}

function offer(id, values, first) {
  const field = document.getElementById(id);
  const name = field.name;
  const chosen = params().get(name) ?? "";
  field.replaceChildren(...values.map((value) => new Option(value || first, value, false, value === chosen)));
}

// --- charts ---

function heat(shown) {
  const made = shown.matrix;
  const figure = document.getElementById("matrix").closest("figure");
  figure.hidden = !made;
  if (!made) return;
  const pickers = document.getElementById("pickers");
  pickers.replaceChildren();
  if (shown.attributes.length > 2) {
    for (const [name, title, now] of [["down", "First attribute", made.row_name], ["across", "Second attribute", made.column_name]]) {
      const label = document.createElement("label");
      const select = document.createElement("select");
      select.replaceChildren(...shown.attributes.map((each) => new Option(each, each, false, each === now)));
      select.onchange = () => change({ down: made.row_name, across: made.column_name, [name]: select.value });
      label.append(title, select);
      pickers.append(label);
    }
  }
  document.getElementById("cap-matrix").textContent = `UB of ${made.labels.length ? `${shown.label} = ${shown.label_value}` : shown.label} by ${made.row_name}${made.labels.length ? ` and ${made.column_name}` : ""}; grey: too few rows to tell${Object.entries(made.left_out).map(([name, left]) => `; ${left} values of ${name} with fewer rows are left out`).join("")}`;
  const cells = made.cells.map((cell) => ({ ...cell, pattern: pattern(made, cell) }));
  draw("matrix", () => ({
    data: { name: "cells" }, width: { step: 74 }, height: { step: 30 },
    encoding: { x: { field: "column", type: "nominal", sort: made.columns, title: made.column_name, axis: { orient: "top", labelAngle: made.columns.length > 6 ? -40 : 0 } }, y: { field: "row", type: "nominal", sort: made.rows, title: made.row_name } },
    layer: [
      { mark: { type: "rect", cursor: "pointer", stroke: "#8a8f98", strokeWidth: 0.5 }, encoding: { color: { condition: { test: "datum.unsure || datum.ub === null", value: "#c9ced6" }, field: "ub", type: "quantitative", scale: { domain: [-made.bound, made.bound], range: DIVERGING, clamp: true }, legend: { title: "UB", format: "+.2f", orient: "bottom", gradientLength: 180 } }, tooltip: { field: "about" }, description: { field: "about" } } },
      { mark: { type: "text", fontSize: 11 }, encoding: { text: { field: "text" }, color: { condition: { test: `abs(datum.ub) > ${0.6 * made.bound} && !datum.unsure`, value: "#ffffff" }, value: "#1c2430" } } },
    ],
  }), { cells }, { key: JSON.stringify([made.row_name, made.column_name, made.bound, made.rows, made.columns]) }).then((view) => picks(view));
}

function pattern(made, cell) {
  const parts = [];
  if (cell.row !== "*") parts.push(`${made.row_name}=${cell.row}`);
  if (made.labels.length && cell.column !== "*") parts.push(`${made.column_name}=${cell.column}`);
  return parts.join(", ");
}

function forest(shown) {
  const bars = shown.forest.map((row) => ({ name: row.pattern, pattern: row.pattern, ub: row.ub, low: row.ub_low ?? row.ub, high: row.ub_high ?? row.ub, side: row.side, about: `${row.pattern}, ${shown.label}=${row.label}: UB ${signed(row.ub)}, interval ${signed(row.ub_low)} … ${signed(row.ub_high)}, ${whole(row.n_cell)} of ${whole(row.n_group)} rows` }));
  const figure = document.getElementById("forest").closest("figure");
  figure.hidden = !bars.length;
  if (!bars.length) return;
  const limits = [{ at: shown.limit }, { at: -shown.limit }];
  document.getElementById("cap-forest").textContent = `Groups with the largest |UB| of ${shown.label} = ${shown.label_value} and enough rows to tell, with intervals`;
  const colour = () => ({ field: "side", type: "nominal", scale: { domain: ["fewer", "more", "inside", "unsure"], range: ["--fewer", "--more", "--soft", "--bar"].map(ink) }, legend: null });
  draw("forest", (width) => ({
    width, height: { step: 20 },
    layer: [
      { data: { name: "limits" }, mark: { type: "rule", strokeDash: [4, 3], opacity: 0.7 }, encoding: { x: { field: "at", type: "quantitative", title: "← more rows · UB · fewer rows →" } } },
      { data: { name: "bars" }, mark: { type: "rule", strokeWidth: 2 }, encoding: { y: { field: "name", type: "nominal", sort: null, title: null }, x: { field: "low", type: "quantitative" }, x2: { field: "high" }, color: colour() } },
      { data: { name: "bars" }, mark: { type: "point", filled: true, size: 70, opacity: 1, cursor: "pointer" }, encoding: { y: { field: "name", type: "nominal", sort: null }, x: { field: "ub", type: "quantitative" }, color: colour(), tooltip: { field: "about" }, description: { field: "about" } } },
    ],
  }), { bars, limits }, { names: bars.map((bar) => bar.name) }).then((view) => picks(view));
}

const picked = new WeakSet();
function picks(view) {
  if (picked.has(view)) return;
  picked.add(view);
  view.addEventListener("click", (_, item) => { if (item?.datum?.pattern) explain(item.datum.pattern); });
}

// --- the list ---

rows.addEventListener("scroll", paint);
rows.addEventListener("keydown", (event) => {
  const to = { ArrowDown: active + 1, ArrowUp: active - 1, PageDown: active + 10, PageUp: active - 10, Home: 0, End: total - 1 }[event.key];
  if (to !== undefined) { event.preventDefault(); reach(to); }
  if (event.key === "Enter" || event.key === " ") { event.preventDefault(); document.getElementById(`row-${active}`)?.click(); }
});

const scaled = () => total * HEIGHT > 15e6 ? (total * HEIGHT) / 15e6 : 1;

/** Make a row the active one, which the list tells to screen readers, and bring it into sight. */
function reach(at) {
  active = Math.min(Math.max(at, 0), Math.max(total - 1, 0));
  const y = (active * HEIGHT) / scaled();
  if (y < rows.scrollTop) rows.scrollTop = y;
  else if (y + HEIGHT > rows.scrollTop + rows.clientHeight) rows.scrollTop = y + HEIGHT - rows.clientHeight;
  paint();
}

function piece(number) {
  if (!pieces.has(number)) {
    const asked = params();
    asked.set("offset", number * PIECE);
    asked.set("rows_only", "true");
    asked.delete("at");
    pieces.set(number, api(`/api/bias?${asked}`).then((told) => told.rows).catch(() => { pieces.delete(number); return []; }));
  }
  return pieces.get(number);
}

let painting = 0;
async function paint() {
  const turn = ++painting;
  const scale = scaled();
  const top = rows.scrollTop;
  const first = Math.max(0, Math.floor((top * scale) / HEIGHT) - 3);
  const last = Math.min(total - 1, first + Math.ceil(rows.clientHeight / HEIGHT) + 6);
  const found = [];
  for (let number = Math.floor(first / PIECE); number <= Math.floor(Math.max(last, 0) / PIECE); number++) {
    const part = await piece(number);
    part.forEach((row, i) => { const at = number * PIECE + i; if (at >= first && at <= last) found.push([at, row]); });
  }
  if (turn !== painting) return;
  const chosen = params().get("at");
  space.replaceChildren(...found.map(([at, row]) => line(at, row, chosen, scale === 1 ? at * HEIGHT : top + (at - first) * HEIGHT)));
  if (document.getElementById(`row-${active}`)) rows.setAttribute("aria-activedescendant", `row-${active}`); else rows.removeAttribute("aria-activedescendant");
}

function line(at, row, chosen, y) {
  const made = document.createElement("div");
  made.className = at === active ? "row active" : "row";
  made.id = `row-${at}`;
  made.setAttribute("role", "option");
  made.setAttribute("aria-selected", row.pattern === chosen);
  made.setAttribute("aria-setsize", total);
  made.setAttribute("aria-posinset", at + 1);
  made.style.top = `${y}px`;
  const cells = [row.pattern, String(row.label ?? "missing"), `${whole(row.n_cell)} of ${whole(row.n_group)}`, percent(row.rate), signed(row.ub), row.ub_low === null ? "–" : `${signed(row.ub_low)} … ${signed(row.ub_high)}`, whole(row.missing_rows)];
  cells.forEach((text, i) => {
    const span = document.createElement("span");
    span.textContent = text;
    if (i > 1) span.className = "number";
    if (i === 4) span.classList.add(row.side);
    if (i === 0) span.title = row.note ? `${text}: ${row.note}` : text;
    made.append(span);
  });
  made.addEventListener("click", () => { active = at; explain(row.pattern); });
  return made;
}
