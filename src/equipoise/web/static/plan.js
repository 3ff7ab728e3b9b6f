// The room of plans: redrawn while a control is dragged; plans are pinned in the address.
import { SHARED, start, change, api, params, data, late } from "./room.js";
import { draw, ink } from "./charts.js";

let front = { key: null, told: null };

start(show);

function show(shown) {
  const made = Boolean(shown?.feasible);
  document.getElementById("charts").hidden = !made;
  late();
  pins();
  if (!made) return;
  document.getElementById("pin").addEventListener("click", pin);
  frontier(shown);
  return Promise.all([biases(shown), changes(shown)]);
}

function biases(shown) {
  const pairs = shown.biases.pairs.map((pair) => ({ ...pair, limit: shown.biases.limit }));
  document.getElementById("cap-biases").textContent = `${shown.biases.title}, before (hollow) and after (filled)`;
  return draw("biases", (width) => ({
    width, height: { step: 20 },
    layer: [
      { data: { name: "limits" }, mark: { type: "rule", strokeDash: [4, 3] }, encoding: { x: { field: "at", type: "quantitative", title: "|UB|" } } },
      { data: { name: "pairs" }, mark: { type: "rule", strokeWidth: 2, color: "#8a8f98" }, encoding: { y: { field: "name", type: "nominal", sort: null, title: null }, x: { field: "before", type: "quantitative" }, x2: { field: "after" } } },
      { data: { name: "pairs" }, mark: { type: "point", size: 60, color: "#8a8f98" }, encoding: { y: { field: "name", type: "nominal", sort: null }, x: { field: "before", type: "quantitative" }, tooltip: { field: "about" }, description: { field: "about" } } },
      { data: { name: "pairs" }, mark: { type: "point", filled: true, size: 70, opacity: 1 }, encoding: { y: { field: "name", type: "nominal", sort: null }, x: { field: "after", type: "quantitative" }, color: { condition: { test: "datum.outside", value: ink("--fewer") }, value: ink("--more") }, tooltip: { field: "about" }, description: { field: "about" } } },
    ],
  }), { pairs, limits: [{ at: shown.biases.limit ?? 0 }] }, { names: pairs.map((pair) => pair.name) });
}

function changes(shown) {
  const bars = shown.changes.bars.flatMap((bar) => [
    { name: bar.name, kind: "stays", rows: bar.stay, at: 0, about: bar.about },
    { name: bar.name, kind: "deleted", rows: bar.delete, at: 1, about: bar.about },
    { name: bar.name, kind: "added", rows: bar.add, at: 2, about: bar.about },
  ]).filter((bar) => bar.rows);
  document.getElementById("cap-changes").textContent = `Cells that change most${shown.changes.left_out ? ` (and ${shown.changes.left_out} more)` : ""}`;
  document.getElementById("changes").closest("figure").hidden = !bars.length;
  if (!bars.length) return null;
  return draw("changes", (width) => ({
    data: { name: "bars" }, width, height: { step: 20 }, mark: { type: "bar" },
    encoding: {
      y: { field: "name", type: "nominal", sort: null, title: null },
      x: { field: "rows", type: "quantitative", stack: "zero", title: "rows", axis: { tickCount: width < 210 ? 3 : 5 } },
      order: { field: "at" },
      color: { field: "kind", type: "nominal", title: null, scale: { domain: ["stays", "deleted", "added"], range: [ink("--bar"), ink("--fewer"), ink("--more")] }, legend: { orient: "top", direction: width < 210 ? "vertical" : "horizontal" } },
      tooltip: { field: "about" }, description: { field: "about" },
    },
  }), { bars }, { names: bars.map((bar) => bar.name) });
}

const NOT_ITS = document.getElementById("charts").dataset.ignored.split(" ");

async function frontier(shown) {
  const asked = params();
  for (const name of NOT_ITS) asked.delete(name);
  const key = asked.toString();
  if (front.key !== key) {
    if (shown.draft) return point(shown);
    front = { key, told: null };
    const told = await api(`/api/frontier?${asked}`).catch((error) => ({ points: [], why: error.message }));
    if (front.key !== key) return;
    front.told = told;
    spend(told.points);
  }
  point(data() ?? shown);
}

/** The slider of the budget ends where every bias can be paid for. */
function spend(points) {
  const range = document.querySelector("input[data-for=f-budget]");
  const most = Math.max(...points.map((each) => each.cost ?? 0).filter(Number.isFinite), 0);
  if (!range || !most) return;
  range.max = Math.ceil(1.05 * most);
  range.step = Math.max(1, Math.round(most / 200));
  if (!document.getElementById("f-budget").value) range.value = range.max;
}

function point(shown) {
  const told = front.told;
  const said = document.getElementById("frontier-said");
  const figure = document.getElementById("frontier").closest("figure");
  figure.hidden = false;
  if (!told) { said.textContent = "computing …"; return; }
  said.textContent = told.points.length ? "" : told.why ?? "There is no frontier for these options.";
  if (!told.points.length) return;
  const steps = told.points.filter((each) => each.cost !== null && Number.isFinite(each.cost)).map((each) => ({ tolerance: each.tolerance, cost: each.cost, about: `tolerance ${each.tolerance.toPrecision(3)}: cost ${Math.round(each.cost).toLocaleString("en-US")}` }));
  const here = [{ tolerance: shown.certificate.off_after ?? shown.certificate.max_abs_ub_after, cost: shown.cost, about: `this plan: cost ${Math.round(shown.cost).toLocaleString("en-US")}` }];
  const asked = Number(params().get("tolerance") ?? 0);
  if (shown.reached && asked) here[0].tolerance = asked;
  // The line is drawn between some tolerances only; a plan that costs the least is on it as well.
  if (shown.reached && ![...params().keys()].some((name) => name !== "tolerance" && name !== "pin" && NOT_ITS.includes(name))) steps.push(here[0]);
  steps.sort((one, other) => one.tolerance - other.tolerance);
  draw("frontier", (width) => ({
    width, height: 220,
    layer: [
      { data: { name: "steps" }, mark: { type: "line", interpolate: "step-after", color: ink("--soft"), strokeWidth: 2, point: { size: 35, color: ink("--soft") } }, encoding: { x: { field: "tolerance", type: "quantitative", title: "tolerance: largest |UB| left", axis: { tickCount: 5 } }, y: { field: "cost", type: "quantitative", title: "least cost", axis: { tickCount: 5 } }, tooltip: { field: "about" } } },
      { data: { name: "here" }, mark: { type: "point", filled: true, size: 150, color: ink("--fewer"), opacity: 1 }, encoding: { x: { field: "tolerance", type: "quantitative" }, y: { field: "cost", type: "quantitative" }, tooltip: { field: "about" }, description: { field: "about" } } },
    ],
  }), { steps, here });
}

// --- pins ---

function pin() {
  const now = params();
  const pinned = now.getAll("pin");
  now.delete("pin");
  for (const name of SHARED) now.delete(name);
  const taken = pinned.map((text) => new URLSearchParams(text).get("name"));
  let number = 1;
  while (taken.includes(`plan ${number}`)) number++;
  const name = `plan ${number}`;
  const own = new URLSearchParams([["name", name], ...now]);
  change({ pin: [...pinned, own.toString()] }, { reload: false });
  pins();
}

function pins() {
  const place = document.getElementById("pins");
  const pinned = params().getAll("pin");
  place.hidden = !pinned.length;
  const pinning = document.getElementById("pin");
  if (pinning) pinning.disabled = pinned.length >= 12;
  place.replaceChildren("Pinned: ");
  pinned.forEach((text, at) => {
    const own = new URLSearchParams(text);
    const tag = document.createElement("span");
    tag.className = "pinned";
    const again = document.createElement("button");
    again.type = "button";
    again.className = "quiet";
    again.textContent = own.get("name");
    again.title = text;
    again.onclick = () => {
      const now = params();
      const kept = new URLSearchParams([...now].filter(([name]) => [...SHARED, "pin"].includes(name)));
      own.delete("name");
      for (const [name, value] of own) kept.append(name, value);
      location.search = kept.toString();
    };
    const drop = document.createElement("button");
    drop.type = "button";
    drop.className = "quiet";
    drop.textContent = "×";
    drop.setAttribute("aria-label", `Remove ${own.get("name")}`);
    drop.onclick = () => { change({ pin: pinned.filter((_, i) => i !== at) }, { reload: false }); pins(); };
    tag.append(again, drop);
    place.append(tag);
  });
  const link = document.createElement("a");
  link.className = "button";
  link.dataset.room = "compare";
  link.textContent = "Compare side by side →";
  place.append(link);
  dispatchEvent(new Event("newlinks"));
}
