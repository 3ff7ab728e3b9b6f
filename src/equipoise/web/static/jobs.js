// Long work: started here, followed while it runs, and shown again from the address.
import { api, change, params } from "./room.js";

const place = document.getElementById("job");
let watched = null;

/** Start a job, put it into the address, and follow it. */
export async function begin(path, done, name = "job") {
  place.hidden = false;
  try {
    const told = await api(path, { method: "POST" });
    change({ [name]: told.job }, { reload: false });
    return follow(told.job, done);
  } catch (error) {
    problem(error.message);
    return null;
  }
}

function problem(text) {
  const said = document.createElement("p");
  said.className = "problem";
  said.setAttribute("role", "alert");
  said.textContent = text;
  document.getElementById("job-busy").hidden = true;
  document.getElementById("job-result").replaceChildren(said);
}

/** Follow a job until it ends; then show its result. */
export async function follow(job, done = () => {}) {
  watched = job;
  place.hidden = false;
  document.getElementById("job-busy").hidden = false;
  document.getElementById("job-result").replaceChildren();
  document.getElementById("job-cancel").onclick = () => api(`/api/jobs/${job}`, { method: "DELETE" });
  while (watched === job) {
    let told;
    try { told = await api(`/api/jobs/${job}`); } catch (error) { problem(error.message); return; }
    document.getElementById("job-doing").textContent = `${told.about}: ${told.title}${told.seconds === null ? "" : ` (${Math.round(told.seconds)} s)`}`;
    const bar = document.getElementById("job-progress");
    if (told.share > 0) bar.value = told.share; else bar.removeAttribute("value");
    if (told.state !== "running") {
      document.getElementById("job-busy").hidden = true;
      const answer = await fetch(`/jobs/${job}/part?${params()}`);
      document.getElementById("job-result").innerHTML = await answer.text();
      place.dataset.state = told.state;
      done(told);
      return;
    }
    await new Promise((next) => setTimeout(next, 300));
  }
}
