// The list of jobs: what is selected, and acts on that or on all that match.
import { ask, send, whileBusy } from "./acts.js";
import { refresh } from "./live.js";
import { notice, problem } from "./notices.js";
import { quoted } from "./fields.js";

const bar = document.getElementById("bar");
const words = { retry: "Retry", cancel: "Cancel", hold: "Hold", release: "Release", delete: "Delete" };
const NAMED = 20; // so many ids are written out on the command line that is shown
let isAll = false; // whether all that match are meant, and not the rows that are ticked
let last = null; // the row ticked last, for shift

const rows = () => [...document.querySelectorAll("#rows > tr[data-key]")];
const box = (row) => row.querySelector(".pick input");
const picked = () => rows().filter((row) => box(row)?.checked);
const n = (count) => count.toLocaleString("en");
const jobs = (count) => `${n(count)} ${count === 1 ? "job" : "jobs"}`;

function total() {
  const said = document.getElementById("total").dataset.total;
  return said === undefined ? null : Number(said);
}

function show() {
  const chosen = picked();
  for (const row of rows()) row.classList.toggle("selected", isAll || Boolean(box(row)?.checked));
  if (!chosen.length) isAll = false;
  bar.hidden = !chosen.length;
  const all = total();
  document.getElementById("picked").textContent = isAll
    ? all === null ? "all matching" : `all ${n(all)} matching`
    : `${n(chosen.length)} selected`;
  const more = document.getElementById("pick-all");
  more.hidden = isAll || (all !== null && all <= chosen.length);
  more.textContent = all === null ? "Select all that match" : `Select all ${n(all)} matching`;
  const whole = document.getElementById("pick-page");
  if (whole) {
    whole.checked = chosen.length > 0 && chosen.length === rows().length;
    whole.indeterminate = chosen.length > 0 && chosen.length < rows().length;
  }
}

function clear() {
  for (const row of rows()) if (box(row)) box(row).checked = false;
  isAll = false;
  show();
}

/** Ask how many an act is for and would pass by, ask whether to go on, and do it.
 *
 * Rows are named as ranges of one number: of single ids one that the act is not for would keep it from all. */
async function actOn(verb) {
  const ids = isAll ? null : picked().map((row) => row.dataset.id);
  const which = ids === null ? matching() : { ids: picked().map((row) => `${row.dataset.key}-${row.dataset.key}`) };
  try {
    while (!(await actOnce(verb, ids, which)));
  } catch (error) {
    problem(error);
  } finally {
    refresh();
  }
}

/** Return whether it came to an end: done or not. Else there are more by now than were agreed to. */
async function actOnce(verb, ids, which) {
  const url = `/api/v1/jobs/${verb}`;
  const trial = await send("POST", url, { ...which, dry_run: true });
  if (!trial.count) {
    notice(`No job to ${verb}`, { kind: "warning", hint: passedWords(trial.passed_by) });
    return true;
  }
  const isSure = await ask(`${words[verb]} ${jobs(trial.count)}?`, {
    yes: `${words[verb]} ${jobs(trial.count)}`,
    isDangerous: verb === "delete" || verb === "cancel",
    text: [verb === "retry" ? againWords(trial) : "", passedWords(trial.passed_by)].filter(Boolean).join(". "),
    command: commandLine(verb, ids),
  });
  if (!isSure) return true;
  try {
    const done = await send("POST", url, { ...which, max: trial.count });
    notice(`${words[verb]}: ${jobs(done.count)}`, { hint: passedWords(done.passed_by) });
    clear();
    return true;
  } catch (error) {
    if (error.status === 409 && /more than max/.test(error.message)) return false;
    throw error;
  }
}

/** Return the filter of the list; where it has none, every job is meant. */
function matching() {
  const filter = JSON.parse(bar.dataset.filter);
  return Object.keys(filter).length ? { filter } : { all: true };
}

/** Say how many of the jobs that would be retried did their work already; nothing where none did. */
function againWords({ count, states }) {
  if (!states.completed) return "";
  return count === 1 ? "It completed and would run again" : `${n(states.completed)} of them completed and would run again`;
}

function passedWords(passed = {}) {
  const parts = Object.entries(passed).map(([state, count]) => `${n(count)} ${state}`);
  return parts.length ? `Passed by: ${parts.join(", ")}` : "";
}

function commandLine(verb, ids) {
  if (ids === null) return `queuectl ${verb} ${bar.dataset.flags || "--all"} --yes`;
  const shown = ids.slice(0, NAMED).map(quoted).join(" ");
  return `queuectl ${verb} ${shown}${ids.length > NAMED ? " ..." : ""}`;
}

/** Tick all between the row ticked last and this one, as that one is. */
function tickTo(row) {
  const all = rows();
  const [first, end] = [all.indexOf(last), all.indexOf(row)].sort((one, other) => one - other);
  if (first < 0) return;
  for (const each of all.slice(first, end + 1)) if (box(each)) box(each).checked = box(row).checked;
}

if (bar) {
  document.addEventListener("click", (event) => {
    const row = event.target.closest(".pick input")?.closest("#rows > tr");
    if (!row) return;
    if (event.shiftKey && last) tickTo(row);
    last = row;
    isAll = false;
    show();
  });
  document.addEventListener("change", (event) => {
    if (event.target.id !== "pick-page") return;
    for (const row of rows()) if (box(row)) box(row).checked = event.target.checked;
    isAll = false;
    show();
  });
  bar.addEventListener("click", (event) => {
    const button = event.target.closest("button[data-verb]");
    if (button) whileBusy(button, () => actOn(button.dataset.verb));
  });
  document.getElementById("pick-all").addEventListener("click", () => {
    isAll = true;
    show();
  });
  document.getElementById("pick-none").addEventListener("click", clear);
  document.addEventListener("live:patched", show);
  show();
}
