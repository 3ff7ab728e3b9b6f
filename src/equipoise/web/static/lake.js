// The room of the lake: index, answers about what tables mean, and the repair.
import { start, change, api, params, load } from "./room.js";
import { begin, follow } from "./jobs.js";

start(show);
if (params().get("job")) follow(params().get("job"));

function show() {
  for (const button of document.querySelectorAll("button[data-job]")) {
    button.addEventListener("click", () => {
      const asked = params();
      asked.delete("job");
      begin(`/api/lake/${button.dataset.job}?${asked}`, (told) => { if (told.kind === "index") load(); });
    });
  }
  for (const button of document.querySelectorAll("button[data-answer]")) button.addEventListener("click", () => said(button));
}

async function said(button) {
  const table = button.closest("[data-table]");
  const name = table.dataset.table;
  const answers = { confirm: () => confirmed(table, name), refuse: () => [{ table: name, use: false }], back: () => takenBack(table, name) }[button.dataset.answer]();
  const asked = params();
  asked.delete("job");
  const place = table.querySelector(".said-error");
  place.textContent = "";
  try {
    const told = await api(`/api/lake/answers?${asked}`, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ answers }) });
    change({ mapping: told.mapping });
  } catch (error) {
    place.textContent = error.message;
    place.className = "said-error problem";
  }
}

/** What a person said before: that the table is refused, or what its values and columns are. */
function takenBack(table, name) {
  if (table.dataset.status === "refused") return [{ table: name, take_back: true }];
  const said = (field) => ["confirmed", "refused"].includes(field.dataset.status);
  const column = (field) => field.closest("[data-column]").dataset.column;
  const values = [...table.querySelectorAll("[data-value]")].filter(said).map((field) => ({ table: name, column: column(field), value: field.dataset.value, take_back: true }));
  const columns = [...table.querySelectorAll("[data-source]")].filter(said).map((field) => ({ table: name, column: column(field), take_back: true }));
  return [...values, ...columns];
}

/** What a person confirms: every column as it is chosen, and every value as it is chosen. */
function confirmed(table, name) {
  const answers = [];
  for (const field of table.querySelectorAll("[data-column]")) {
    const column = field.dataset.column;
    const source = field.querySelector("[data-source]");
    if (source.value !== source.dataset.was || source.dataset.status !== "certain") answers.push({ table: name, column, source: source.value || null });
    if (source.value !== source.dataset.was) continue; // the values of another column are not known yet
    for (const value of field.querySelectorAll("[data-value]")) {
      const chosen = value.selectedOptions[0].dataset.kind;
      const means = chosen === "means" ? value.value : null;
      if (chosen !== "none" && ((means ?? "") !== value.dataset.was || value.dataset.status === "open")) answers.push({ table: name, column, value: value.dataset.value, means });
    }
  }
  return answers.length ? answers : [{ table: name, use: true }];
}
