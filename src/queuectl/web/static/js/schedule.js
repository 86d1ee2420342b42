// Schedule: shows the next five times of what stands in the form, and the command line that does the same.
import { send } from "./acts.js";
import { commandWords, mend, quoted } from "./fields.js";
import { gather } from "./forms.js";

const WAIT_MS = 250;
const form = document.getElementById("schedule-form");
const list = document.getElementById("preview");
const wrong = document.getElementById("preview-wrong");
let timer = 0;
let asked = null;

function query() {
  const { cron, every, tz } = Object.fromEntries(new FormData(form));
  const words = new URLSearchParams({ count: "5" });
  // A schedule has one of the two: whichever was typed into last.
  if (every.trim() && (last === "every" || !cron.trim())) words.set("every", every.trim());
  else if (cron.trim()) words.set("cron", cron.trim());
  else return null;
  if (tz.trim()) words.set("tz", tz.trim());
  return words;
}

/** Where to ask: of a schedule whose times were not touched itself, since a period is counted from when it began. */
function source(words) {
  const isAsItWas = ["cron", "every", "tz"].every((name) => {
    const field = form.elements[name];
    return field.value.trim() === field.defaultValue.trim();
  });
  return form.dataset.form === "PATCH" && isAsItWas ? `${form.dataset.url}/preview?count=5` : `/api/v1/instants?${words}`;
}

let last = form.elements.every.value ? "every" : "cron";

async function preview() {
  asked?.abort();
  asked = new AbortController();
  const words = query();
  if (!words) {
    list.replaceChildren();
    wrong.textContent = "";
    return;
  }
  try {
    const told = await send("GET", source(words), undefined, { signal: asked.signal });
    list.replaceChildren(...told.instants.map(line));
    wrong.textContent = told.instants.length ? "" : "it never comes";
  } catch (error) {
    if (error.name === "AbortError") return;
    list.replaceChildren();
    wrong.textContent = [error.message, error.hint].filter(Boolean).join(": ");
  }
}

function line(instant) {
  const item = document.createElement("li");
  const code = document.createElement("code");
  code.textContent = instant.local;
  item.append(code);
  return item;
}

/** Return the command line that does the same; null while the form does not say enough, or what a flag cannot. */
function commandLine({ name, cron, every, job = {}, ...rules }) {
  const isNew = form.dataset.form === "POST";
  const { command, cwd, ...options } = job;
  if (isNew ? !(name && (cron || every) && command) : command === null || cwd === null) return null;
  const flags = { every, ...(isNew ? { tz: form.elements.tz.value.trim() } : {}), ...rules, ...options, cwd };
  if (isNew) flags.cwd ??= "/"; // without one a shell would name where it stands
  const words = ["queuectl schedule", isNew ? "add" : "edit", name ?? form.dataset.name];
  if (cron) words.push(quoted(cron));
  for (const [flag, value] of Object.entries(flags)) {
    const text = value === null && flag in options ? "none" : value;
    if (text !== null && text !== undefined && text !== "") words.push(`--${flag.replaceAll("_", "-")}`, quoted(String(text)));
  }
  if (command) words.push(...(isNew ? commandWords(command) : ["--command", quoted(command)]));
  return words.length > 3 ? words.join(" ") : null;
}

function showLine() {
  const words = commandLine(gather(form));
  document.getElementById("same-line").hidden = words === null;
  document.getElementById("schedule-line").textContent = words ?? "";
  document.getElementById("schedule-copy").dataset.copy = words ?? "";
}

form.addEventListener("input", (event) => {
  const name = event.target.name;
  if (!["cron", "every", "tz"].includes(name)) return;
  if (name !== "tz" && event.target.value.trim()) {
    last = name;
    // The other one is given up: a schedule has a line or a period, not both.
    const other = form.elements[name === "cron" ? "every" : "cron"];
    other.value = "";
    mend(other);
  }
  clearTimeout(timer);
  timer = setTimeout(preview, WAIT_MS);
});
form.addEventListener("input", showLine); // behind the above, which empties a field

preview();
showLine();
