// The room of the table: uploads, and bins whose edges are dragged.
import { start, change, api, params } from "./room.js";

start(showBins);

const upload = document.getElementById("upload");
upload?.addEventListener("change", async () => {
  const said = document.getElementById("uploaded");
  const file = upload.files[0];
  if (!file) return;
  said.className = "";
  said.textContent = `Uploading ${file.name} …`;
  const body = new FormData();
  body.append("file", file);
  try {
    const told = await api("/api/uploads", { method: "POST", body });
    location.href = `/table?data=${encodeURIComponent(told.data)}`;
  } catch (error) {
    said.className = "problem";
    said.textContent = error.message;
  }
});

document.getElementById("forget")?.addEventListener("click", async () => {
  if (!confirm("Delete all uploads, results and mappings of yours from this machine?")) return;
  const told = await api("/api/uploads", { method: "DELETE" });
  document.getElementById("uploaded").textContent = `Deleted ${told.deleted} ${told.deleted === 1 ? "file" : "files"}.`;
});

// --- bins ---

function binsOf(column) {
  const text = params().getAll("bins").find((each) => each.slice(0, each.lastIndexOf("=")) === column);
  return text ? text.slice(text.lastIndexOf("=") + 1) : null;
}

function setBins(column, edges) {
  const others = params().getAll("bins").filter((each) => each.slice(0, each.lastIndexOf("=")) !== column);
  change({ bins: edges.length ? [...others, `${column}=${edges.join(",")}`] : others });
}

function showBins(shown) {
  if (!shown) return;
  for (const place of document.querySelectorAll(".bins")) {
    const column = shown.columns.find((each) => each.name === place.dataset.column);
    if (column) edit(place, column);
  }
}

function nice(value, step) {
  const rounded = Math.round(value / step) * step;
  return Number(rounded.toPrecision(12));
}

function edit(place, column) {
  const [low, high] = column.range;
  const step = Number((10 ** Math.floor(Math.log10((high - low) / 50 || 1))).toPrecision(2));
  const given = binsOf(column.name);
  let edges = given && !given.includes(":") ? given.split(",").map(Number) : [];
  const box = place.querySelector(".edges");
  const text = place.querySelector(".edge-text");
  box.replaceChildren(bars(column));
  const shown = () => {
    box.querySelectorAll(".edge").forEach((each) => each.remove());
    edges.sort((a, b) => a - b);
    edges.forEach((edge, index) => box.append(handle(edge, index)));
    text.value = given && given.includes(":") ? given : edges.join(",");
  };
  const done = () => { edges = [...new Set(edges)].sort((a, b) => a - b); setBins(column.name, edges); };
  const handle = (edge, index) => {
    const made = document.createElement("button");
    made.type = "button";
    made.className = "edge";
    made.setAttribute("role", "slider");
    made.setAttribute("aria-label", `Edge ${index + 1} of ${column.name}`);
    const put = (value) => {
      edges[index] = Math.min(high, Math.max(low + step, nice(value, step)));
      made.style.left = `${(100 * (edges[index] - low)) / (high - low)}%`;
      made.dataset.at = edges[index];
      for (const [name, number] of [["valuenow", edges[index]], ["valuemin", low], ["valuemax", high]]) made.setAttribute(`aria-${name}`, number);
    };
    put(edge);
    made.addEventListener("pointerdown", (event) => {
      made.setPointerCapture(event.pointerId);
      const move = (e) => { const r = box.getBoundingClientRect(); put(low + ((e.clientX - r.left) / r.width) * (high - low)); };
      made.addEventListener("pointermove", move);
      made.addEventListener("pointerup", () => { made.removeEventListener("pointermove", move); done(); }, { once: true });
    });
    made.addEventListener("keydown", (event) => {
      const by = { ArrowLeft: -step, ArrowDown: -step, ArrowRight: step, ArrowUp: step, PageDown: -10 * step, PageUp: 10 * step }[event.key];
      if (by) { event.preventDefault(); put(edges[index] + by); }
      if (event.key === "Delete") { edges.splice(index, 1); done(); }
    });
    made.addEventListener("blur", () => { if (binsOf(column.name) !== edges.join(",")) done(); });
    return made;
  };
  shown();
  place.querySelector("[data-bins=add]").onclick = () => {
    const all = [low, ...edges, high];
    let widest = 0;
    for (let i = 1; i < all.length; i++) if (all[i] - all[i - 1] > all[widest + 1] - all[widest]) widest = i - 1;
    edges.push(nice((all[widest] + all[widest + 1]) / 2, step));
    done();
  };
  place.querySelector("[data-bins=remove]").onclick = () => { edges.pop(); done(); };
  text.onchange = () => change({ bins: [...params().getAll("bins").filter((b) => b.slice(0, b.lastIndexOf("=")) !== column.name), ...(text.value.trim() ? [`${column.name}=${text.value.trim()}`] : [])] });
}

function bars(column) {
  const space = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(space, "svg");
  svg.setAttribute("viewBox", "0 0 100 100");
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("aria-hidden", "true");
  svg.classList.add("bars");
  const most = Math.max(...column.histogram.map((bar) => bar.n));
  const [low, high] = column.range;
  for (const bar of column.histogram) {
    const from = bar.low ?? Number(bar.value);
    const to = bar.high ?? from + (high - low) / 100;
    const rect = document.createElementNS(space, "rect");
    const set = { x: (100 * (from - low)) / (high - low), width: (100 * (to - from)) / (high - low), y: 100 - (100 * bar.n) / most, height: (100 * bar.n) / most };
    for (const [name, value] of Object.entries(set)) rect.setAttribute(name, value);
    svg.append(rect);
  }
  return svg;
}
