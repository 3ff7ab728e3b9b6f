// The room of comparisons.
import { SHARED, start, params } from "./room.js";
import { begin, follow } from "./jobs.js";
import { draw, ink } from "./charts.js";

start(show);
if (params().get("evaluation")) follow(params().get("evaluation"));

document.getElementById("evaluate")?.addEventListener("click", () => {
  const asked = new URLSearchParams([...params()].filter(([name]) => [...SHARED, "other"].includes(name)));
  for (const model of document.getElementById("models").value.split(",")) if (model.trim()) asked.append("models", model.trim());
  asked.set("repeats", document.getElementById("repeats").value);
  begin(`/api/evaluations?${asked}`, undefined, "evaluation");
});

function show(shown) {
  const plans = shown?.plans;
  document.getElementById("charts").hidden = !plans?.groups?.length;
  if (!plans?.groups?.length) return;
  const points = plans.groups.slice(0, 24).flatMap((each) => {
    const name = `${each.pattern} → ${each.label}`;
    return [{ name, plan: "now", ub: each.before }, ...each.after.map((ub, i) => ({ name, plan: plans.names[i], ub }))];
  }).map((each) => ({ ...each, about: `${each.name}, ${each.plan}: ${each.ub?.toFixed(3)}` }));
  draw("plans", (width) => ({
    data: { name: "points" }, width, height: { step: 20 }, mark: { type: "point", filled: true, size: 70, opacity: 0.9 },
    encoding: {
      y: { field: "name", type: "nominal", sort: null, title: null }, x: { field: "ub", type: "quantitative", title: "UB" },
      color: { field: "plan", type: "nominal", sort: null, title: null, scale: { range: [ink("--soft"), ink("--fewer"), ink("--more"), "#b8860b", "#4d9b6d", "#a06fc4"] }, legend: { orient: "top" } },
      shape: { field: "plan", type: "nominal", sort: null, legend: { orient: "top" }, title: null }, tooltip: { field: "about" }, description: { field: "about" },
    },
  }), { points }, { key: plans.names.join(), names: points.map((each) => each.name) });
}
