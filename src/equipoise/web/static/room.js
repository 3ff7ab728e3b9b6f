// What all rooms share: the address holds the state; the form changes the address; the result follows it.

const form = document.getElementById("controls");
const result = document.getElementById("result");
const busy = document.getElementById("busy");
const room = document.querySelector("main").dataset.room;
const source = document.querySelector("main").dataset.source;

/** The parameters of the table, which all rooms share. */
export const SHARED = document.querySelector("main").dataset.shared.split(" ");

let draw = () => {};
let running = null;
let again = null;
let known = null;

/** Start a room: what to do with the data of each result. */
export function start(handler) {
  draw = handler;
  remember(params());
  listen();
  load();
}

export const params = () => new URLSearchParams(location.search);

/** Change some parameters of the address; null removes one, a list repeats it. */
export function change(changes, { push = true, reload = true, draft = false } = {}) {
  const now = params();
  for (const [name, value] of Object.entries(changes)) {
    now.delete(name);
    for (const each of Array.isArray(value) ? value : [value]) if (each !== null && each !== "" && each !== undefined) now.append(name, each);
  }
  go(now, { push, reload, draft });
}

const signature = (now) => JSON.stringify([...now].filter(([name]) => SHARED.includes(name)).sort());

/** Keep what a room was last asked about this table, so that links lead back to it. */
function remember(now) {
  sessionStorage.setItem(`${room} ${signature(now)}`, now.toString());
}

function go(now, { push, reload = true, draft = false }) {
  const text = now.toString();
  remember(now);
  const place = location.pathname + (text ? "?" + text : "");
  if (push && place !== location.pathname + location.search) history.pushState(null, "", place);
  else history.replaceState(null, "", place);
  links();
  if (reload) load(draft);
}

/** The parameters that the form sets, and no others. */
function written() {
  const found = new Map();
  for (const field of form.elements) {
    if (!field.name || field.disabled) continue;
    if (!found.has(field.name)) found.set(field.name, []);
    const list = found.get(field.name);
    if (field.dataset.default && field.type === "checkbox") {
      if (String(field.checked) !== field.dataset.default) list.push(String(field.checked));
    } else if (field.type === "checkbox" || field.type === "radio") {
      if (field.checked) list.push(field.value);
    } else if ("lines" in field.dataset) {
      list.push(...field.value.split("\n").map((line) => line.trim()).filter(Boolean));
    } else if (field.value !== "" && !same(field.value, field.dataset.default)) {
      list.push(field.value.trim());
    }
  }
  return found;
}

const same = (value, usual) => usual !== undefined && (value === usual || (usual !== "" && value !== "" && Number(value) === Number(usual)));

function submitted({ push, draft = false }) {
  if (!form.checkValidity()) { form.reportValidity(); return; }
  const now = params();
  for (const [name, values] of written()) {
    now.delete(name);
    for (const value of values) now.append(name, value);
  }
  go(now, { push, draft });
}

/** Show in the form what the address says. */
export function fill() {
  const now = params();
  for (const field of form.elements) {
    if (!field.name) continue;
    const values = now.getAll(field.name);
    if (field.dataset.default && field.type === "checkbox") field.checked = (values[0] ?? field.dataset.default) === "true";
    else if (field.type === "checkbox" || field.type === "radio") field.checked = values.includes(field.value);
    else if ("lines" in field.dataset) field.value = values.join("\n");
    else field.value = values.length ? values[values.length - 1] : field.dataset.default ?? "";
    sync(field);
  }
}

function sync(field) {
  const range = document.querySelector(`input[type=range][data-for="${CSS.escape(field.id || "-")}"]`);
  if (range) {
    if (Number(field.value) > Number(range.max)) range.max = field.value;
    range.value = field.value === "" ? range.min : field.value;
  }
}

// A drag is one step back, however many values it goes through.
let dragging = false;

function listen() {
  form.addEventListener("submit", (event) => { event.preventDefault(); submitted({ push: true }); });
  form.addEventListener("input", (event) => {
    const field = event.target;
    if (field.dataset.for) {
      const number = document.getElementById(field.dataset.for);
      number.value = field.value;
      submitted({ push: !dragging, draft: true });
      dragging = true;
    } else if (field.type === "search") {
      submitted({ push: !dragging });
      dragging = true;
    }
  });
  form.addEventListener("change", (event) => {
    const field = event.target;
    if (field.dataset.reload !== undefined) { location.href = field.dataset.reload + encodeURIComponent(field.value); return; }
    for (const name of (field.dataset.resets ?? "").split(" ")) if (name) form.elements[name].value = "";
    if (!field.name && !field.dataset.for) return;
    sync(field);
    submitted({ push: !dragging });
    dragging = false;
  });
  // Fields outside of the form that belong to it, such as those of a table of columns.
  document.querySelector(".shown").addEventListener("change", (event) => {
    if (event.target.form === form && event.target.name) submitted({ push: true });
  });
  document.addEventListener("click", clicked);
  addEventListener("newlinks", links);
  addEventListener("popstate", () => { fill(); links(); load(); });
  document.getElementById("cancel").addEventListener("click", cancel);
  links();
}

async function clicked(event) {
  const copy = event.target.closest("button.copy");
  if (copy) {
    try { await navigator.clipboard.writeText(copy.dataset.copy); } catch { select(copy.previousElementSibling); }
    const said = copy.textContent;
    copy.textContent = "Copied";
    setTimeout(() => { copy.textContent = said; }, 1500);
    return;
  }
  const link = event.target.closest("a[data-soft]");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  go(new URL(link.href).searchParams, { push: true });
  fill();
}

function select(element) {
  const range = document.createRange();
  range.selectNodeContents(element);
  getSelection().removeAllRanges();
  getSelection().addRange(range);
}

const SHOWN = ["offset", "limit_rows", "at", "draft", "still", "job", "evaluation", "at_x", "at_y", "search"];

/** Links to other rooms take along what those rooms understand. */
function links() {
  const now = params();
  const nav = new Map([...document.querySelectorAll(".rooms a")].map((a) => [a.dataset.room, a]));
  for (const link of document.querySelectorAll("a[data-room]")) {
    const keys = (nav.get(link.dataset.room)?.dataset.keys ?? "").split(" ");
    const taken = new URLSearchParams();
    // What is asked about a stream of batches says nothing about a table, nor the other way round.
    const other = (link.dataset.room === "monitor") !== (source === "store");
    for (const [name, value] of now) {
      if (keys.includes(name) && (other ? SHARED.includes(name) : !SHOWN.includes(name) || link.dataset.room === room)) taken.append(name, value);
    }
    if (link.dataset.room === "lake" && !taken.has("lake") && document.body.dataset.lake) taken.append("lake", document.body.dataset.lake);
    const last = new URLSearchParams(sessionStorage.getItem(`${link.dataset.room} ${signature(now)}`) ?? "");
    if (link.dataset.room !== room) for (const name of new Set(last.keys())) {
      if (!taken.has(name) && (other || !now.has(name)) && !SHOWN.includes(name)) for (const value of last.getAll(name)) taken.append(name, value);
    }
    link.href = `/${link.dataset.room}?${taken}`;
  }
}

/** What a room says while there is nothing to ask for. */
function missing(asked) {
  if (source === "store") return asked.get("store") ? null : "<p>Choose a store of batches on the left.</p>";
  if (!asked.get("data")) return room === "table" ? "<p>Choose a table on the left.</p>" : `<p>No table is chosen. <a class="button" data-room="table" href="/table">Choose one</a></p>`;
  if (room === "table" || (asked.has("sensitive_features") && asked.has("label"))) return null;
  return `<p>Choose at least one sensitive attribute and a label. <a class="button primary" data-room="table" href="/table">Choose columns</a></p>`;
}

/** Ask for the result of the present address; while one is computed, only the newest waits. */
export async function load(draft = false) {
  if (running) { again = { draft }; return; }
  const work = `w${crypto.getRandomValues(new Uint32Array(2)).join("")}`;
  const asked = params();
  const lacking = missing(asked);
  if (lacking) {
    show(lacking, false);
    result.setAttribute("aria-busy", "false");
    document.documentElement.dataset.loads = Number(document.documentElement.dataset.loads ?? 0) + 1;
    return;
  }
  if (draft && room === "plan") asked.set("draft", "true");
  const began = performance.now();
  running = work;
  result.setAttribute("aria-busy", "true");
  const watch = follow(work);
  try {
    const answer = await fetch(`/${room}/part?${asked}`, { headers: { "X-Work": work } });
    const text = await answer.text();
    await show(text, answer.ok);
  } catch {
    show(`<p class="problem" role="alert">The explorer does not answer. Is it still running?</p>`, false);
  } finally {
    clearInterval(watch.timer);
    clearTimeout(watch.later);
    busy.hidden = true;
    running = null;
    result.setAttribute("aria-busy", "false");
  }
  const next = again;
  again = null;
  document.documentElement.dataset.took = Math.round(performance.now() - began);
  document.documentElement.dataset.loads = Number(document.documentElement.dataset.loads ?? 0) + 1;
  if (next) load(next.draft);
}

async function show(html, ok) {
  const focused = document.activeElement?.id;
  result.innerHTML = html;
  const island = result.querySelector("#data");
  known = ok && island ? JSON.parse(island.textContent) : null;
  const drawn = draw(known);
  links();
  if (focused && document.activeElement === document.body) document.getElementById(focused)?.focus();
  await drawn;
}

export const data = () => known;

/** Put what stands below the charts in its place. */
export function late() {
  const found = result.querySelector("#late");
  document.getElementById("details").replaceChildren(...(found ? [found.content.cloneNode(true)] : []));
}

function follow(work) {
  const watch = { timer: null, later: null };
  watch.later = setTimeout(() => {
    busy.hidden = false;
    const ask = async () => {
      try {
        const answer = await fetch(`/api/work/${work}`);
        if (!answer.ok) return;
        const told = await answer.json();
        document.getElementById("doing").textContent = `${told.title} (${Math.round(told.seconds)} s)`;
        const bar = document.getElementById("progress");
        if (told.share > 0) bar.value = told.share; else bar.removeAttribute("value");
      } catch { /* the next look tells */ }
    };
    ask();
    watch.timer = setInterval(ask, 500);
  }, 400);
  return watch;
}

async function cancel() {
  if (running) await fetch(`/api/work/${running}`, { method: "DELETE" });
}

/** Ask below /api; an error becomes an exception with its text. */
export async function api(path, options = {}) {
  const answer = await fetch(path, options);
  const told = await answer.json();
  if (!answer.ok) throw new Error(told.error ?? answer.statusText);
  return told;
}

export function signed(value, digits = 3) {
  if (value === null || value === undefined) return "–";
  const text = Math.abs(value).toFixed(digits);
  return Number(text) === 0 ? text : (value < 0 ? "−" : "+") + text;
}
export const whole = (value) => value === null || value === undefined ? "–" : (Math.round(value) || 0).toLocaleString("en-US").replace("-", "−");
export const percent = (value) => value === null || value === undefined ? "–" : (100 * value).toFixed(1) + "%";
