// The room of the policy map: a point that is dragged over the bias of two moves.
import { start, change, api, params, data, signed, whole } from "./room.js";
import { draw, DIVERGING, view as drawn } from "./charts.js";

let chart = null;
let handle = null;
let view = null;

for (const id of ["f-x", "f-y"]) document.getElementById(id).setAttribute("list", "moves");
start(show);
addEventListener("redrawn", async () => { view = await drawn("map"); if (view && data()) place(data().point); });

async function show(shown) {
  document.getElementById("charts").hidden = !shown;
  if (!shown) return;
  chart = shown.chart;
  document.getElementById("moves").replaceChildren(...shown.moves.map((move) => new Option(move)));
  for (const [id, most] of [["f-at_x", shown.x_max], ["f-at_y", shown.y_max]]) {
    const range = document.querySelector(`input[data-for=${id}]`);
    range.max = Math.floor(most);
    if (shown.point) range.value = shown.point[id.slice(-1)];
  }
  for (const [id, move] of [["f-x", shown.x], ["f-y", shown.y]]) if (!document.getElementById(id).value) document.getElementById(id).placeholder = move;
  document.getElementById("cap-map").textContent = `${shown.heading}; white line: UB 0, outline: inside all limits`;
  view = await draw("map", () => spec(shown), layers(shown), { key: JSON.stringify([chart.x_max, chart.y_max, chart.bound, chart.x_title, chart.y_title]) });
  place(shown.point);
}

function layers(shown) {
  const lines = (list) => list.flatMap((line, number) => line.map(([x, y], i) => ({ x, y, number, i })));
  return {
    cells: chart.cells,
    zero: lines(chart.zero),
    tolerated: lines(chart.tolerated),
    limits: chart.limits.flatMap((limit) => limit.ends.map(([x, y], i) => ({ x, y, text: limit.text, i }))),
    named: chart.limits.map((limit) => ({ x: limit.ends[1][0], y: limit.ends[1][1], text: limit.text })),
    feasible: chart.feasible.length ? [...chart.feasible, chart.feasible[0]].map(([x, y], i) => ({ x: Math.min(x, chart.x_max), y: Math.min(y, chart.y_max), i })) : [],
    best: chart.best ? [chart.best] : [],
  };
}

function spec(shown) {
  const room = document.getElementById("map").clientWidth;
  const wide = Math.max(200, Math.min(620, room < 560 ? room - 75 : room - 160));
  const x = { field: "x", type: "quantitative", title: chart.x_title, scale: { domain: [0, chart.x_max], nice: false }, axis: { grid: false, tickCount: 6 } };
  const y = { field: "y", type: "quantitative", title: chart.y_title, scale: { domain: [0, chart.y_max], nice: false }, axis: { grid: false, tickCount: 6 } };
  return {
    width: wide, height: Math.min(420, wide),
    layer: [
      { data: { name: "cells" }, mark: { type: "rect", clip: true }, encoding: { x, x2: { field: "x2" }, y, y2: { field: "y2" }, color: { field: "ub", type: "quantitative", scale: { domain: [-chart.bound, chart.bound], range: DIVERGING, clamp: true }, legend: { title: "UB", format: "+.2f", ...(wide < 420 ? { orient: "bottom", gradientLength: 160 } : {}) } } } },
      { data: { name: "feasible" }, mark: { type: "line", clip: true, color: "#1c2430", strokeWidth: 1.5, strokeDash: [2, 2] }, encoding: { x, y, order: { field: "i" } } },
      { data: { name: "tolerated" }, mark: { type: "line", clip: true, color: "#1c2430", strokeWidth: 1, strokeDash: [5, 3] }, encoding: { x, y, detail: { field: "number" }, order: { field: "i" } } },
      { data: { name: "zero" }, mark: { type: "line", clip: true, color: "#1c2430", strokeWidth: 5 }, encoding: { x, y, detail: { field: "number" }, order: { field: "i" } } },
      { data: { name: "zero" }, mark: { type: "line", clip: true, color: "#ffffff", strokeWidth: 2.5 }, encoding: { x, y, detail: { field: "number" }, order: { field: "i" } } },
      { data: { name: "limits" }, mark: { type: "line", clip: true, color: "#7a3b00", strokeWidth: 2 }, encoding: { x, y, detail: { field: "text" }, order: { field: "i" } } },
      { data: { name: "named" }, mark: { type: "text", align: "right", dx: -4, dy: -6, fontSize: 11, color: "#7a3b00", fontWeight: "bold", clip: true }, encoding: { x, y, text: { field: "text" } } },
      { data: { name: "best" }, mark: { type: "point", shape: "diamond", filled: true, size: 140, color: "#ffffff", stroke: "#1c2430", opacity: 1 }, encoding: { x, y, tooltip: { field: "about" }, description: { field: "about" } } },
    ],
  };
}

// --- the point ---

function place(point) {
  const box = document.getElementById("map");
  if (!handle) {
    handle = document.createElement("button");
    handle.type = "button";
    handle.className = "handle";
    handle.setAttribute("aria-label", "The point; move it with the arrow keys");
    handle.addEventListener("pointerdown", grab);
    handle.addEventListener("keydown", nudge);
  }
  if (handle.parentElement !== box) box.append(handle);
  if (!point) { handle.hidden = true; return; }
  handle.hidden = false;
  const [left, top] = toPixels(point.x, point.y);
  handle.style.left = `${left}px`;
  handle.style.top = `${top}px`;
  handle.title = `x ${whole(point.x)}, y ${whole(point.y)}: UB ${signed(point.ub)}`;
}

function frame() {
  const svg = document.querySelector("#map svg");
  const box = document.getElementById("map");
  const origin = view.origin();
  const outer = box.getBoundingClientRect();
  const inner = svg.getBoundingClientRect();
  return { left: inner.left - outer.left + box.scrollLeft + origin[0] + view.padding().left, top: inner.top - outer.top + origin[1] + view.padding().top, width: view.width(), height: view.height() };
}

function toPixels(x, y) {
  const at = frame();
  return [at.left + (x / chart.x_max) * at.width, at.top + at.height - (y / chart.y_max) * at.height];
}

function toRows(event) {
  const at = frame();
  const box = document.getElementById("map").getBoundingClientRect();
  const x = ((event.clientX - box.left + document.getElementById("map").scrollLeft - at.left) / at.width) * chart.x_max;
  const y = ((at.top + at.height - (event.clientY - box.top)) / at.height) * chart.y_max;
  return { at_x: Math.round(Math.min(Math.max(x, 0), chart.x_max)), at_y: Math.round(Math.min(Math.max(y, 0), chart.y_max)) };
}

function grab(event) {
  event.preventDefault();
  handle.focus();
  handle.setPointerCapture(event.pointerId);
  const move = (each) => moved(toRows(each));
  handle.addEventListener("pointermove", move);
  handle.addEventListener("pointerup", (last) => {
    handle.removeEventListener("pointermove", move);
    change(toRows(last));
    tell(toRows(last));
  }, { once: true });
}

document.getElementById("map").addEventListener("click", (event) => {
  if (event.target === handle || !chart) return;
  const at = toRows(event);
  change(at);
  tell(at);
});

function nudge(event) {
  const point = data()?.point;
  const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key];
  if (!step || !point) return;
  event.preventDefault();
  const by = (event.shiftKey ? 0.1 : 0.01);
  const now = params();
  const x = Number(now.get("at_x") ?? point.x) + Math.round(step[0] * Math.max(1, by * chart.x_max));
  const y = Number(now.get("at_y") ?? point.y) + Math.round(step[1] * Math.max(1, by * chart.y_max));
  const at = { at_x: Math.round(Math.min(Math.max(x, 0), chart.x_max)), at_y: Math.round(Math.min(Math.max(y, 0), chart.y_max)) };
  change(at, { push: false });
  tell(at);
}

let asking = false;
let next = null;

/** While the point is dragged, only its numbers are asked for. */
async function moved(at) {
  const [left, top] = toPixels(at.at_x, at.at_y);
  handle.style.left = `${left}px`;
  handle.style.top = `${top}px`;
  tell(at);
  next = at;
  if (asking) return;
  asking = true;
  while (next) {
    const now = params();
    for (const [name, value] of Object.entries(next)) now.set(name, value);
    next = null;
    now.set("still", "true");
    try {
      const told = await api(`/api/map?${now}`);
      figures(told);
    } catch { /* outside of what is possible; the last numbers stay */ }
  }
  asking = false;
}

function tell(at) {
  for (const [name, value] of Object.entries(at)) {
    document.getElementById(`f-${name}`).value = value;
    document.querySelector(`input[data-for=f-${name}]`).value = value;
  }
}

function figures(told) {
  const point = told.point;
  const shown = document.querySelectorAll("#result .figures strong");
  if (!point || shown.length < 5) return;
  [signed(told.ub), signed(point.ub), whole(point.cost), whole(point.n), point.inside ? "yes" : "no"].forEach((text, i) => { shown[i].textContent = text; });
}
