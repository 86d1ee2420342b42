// The form that adds a job: says the same on the command line while it is filled, and shows what is wrong where it is.
import { send, whileBusy } from "./acts.js";
import { FieldError, clearWrong, commandWords, fieldOf, items, quoted, tellWrong, variables } from "./fields.js";

const form = document.getElementById("new-job");
const line = document.getElementById("new-line");
const copy = document.getElementById("new-copy");
const FLAGS = [
  "id", "queue", "priority", "delay", "run_at", "max_retries", "timeout", "deadline", "cwd", "group", "unique",
];
const NUMBERS = ["priority", "max_retries"];
const text = (name) => form.elements[name].value;

/** Return the job as the server takes it; raises FieldError. */
function job() {
  const fields = { ...more() };
  if (text("command").trim()) fields.command = text("command");
  for (const name of FLAGS) {
    const value = text(name).trim();
    if (value) fields[name] = NUMBERS.includes(name) && /^-?\d+$/.test(value) ? Number(value) : value;
  }
  for (const name of ["tags", "after"]) if (items(text(name)).length) fields[name] = items(text(name));
  const env = { ...fields.env, ...variables(text("env")) };
  if (Object.keys(env).length) fields.env = env;
  for (const name of ["hold", "split_output"]) if (form.elements[name].checked) fields[name] = true;
  return fields;
}

function more() {
  const given = text("more").trim();
  if (!given) return {};
  try {
    const value = JSON.parse(given);
    if (value !== null && typeof value === "object" && !Array.isArray(value)) return value;
  } catch (error) {
    throw new FieldError("more", `not JSON: ${error.message}`);
  }
  throw new FieldError("more", "write a JSON object: {\"name\": value}");
}

/** Return the command line that adds the same; a job of more than flags can say is written as JSON.
 *
 * The folder is always named: without one the server takes / and a shell where it stands. */
function commandLine(given) {
  const fields = { cwd: "/", ...given };
  if (Object.keys(more()).length) return `queuectl enqueue ${quoted(JSON.stringify(fields))}`;
  const words = [];
  for (const name of FLAGS) if (name in fields) words.push(`--${name.replaceAll("_", "-")}`, quoted(String(fields[name])));
  for (const tag of fields.tags ?? []) words.push("--tag", quoted(tag));
  if (fields.after) words.push("--after", quoted(fields.after.join(",")));
  for (const [name, value] of Object.entries(fields.env ?? {})) words.push("--env", quoted(`${name}=${value}`));
  if (fields.split_output) words.push("--split-output");
  if (fields.hold) words.push("--hold");
  words.push(...(fields.command ? commandWords(fields.command) : ["'...'"]));
  return ["queuectl", "enqueue", ...words].join(" ");
}

function show() {
  clearWrong(form);
  try {
    line.textContent = copy.dataset.copy = commandLine(job());
  } catch (error) {
    if (!(error instanceof FieldError)) throw error;
    tellWrong(form, error.message, error.field);
  }
}

async function add() {
  clearWrong(form);
  try {
    const told = await send("POST", "/api/v1/jobs", job());
    location.assign(`${document.body.dataset.base ?? ""}/jobs/${encodeURIComponent(idOf(told))}`);
  } catch (error) {
    const names = [...form.elements].map((each) => each.name).filter((name) => name && name !== "more");
    const field = error instanceof FieldError ? error.field : error.status === 422 ? fieldOf(error.message, names) : null;
    tellWrong(form, error.hint ? `${error.message} (${error.hint})` : error.message, field)?.focus();
  }
}

function idOf(told) {
  return (told.jobs ? told.jobs[0] : told).id;
}

form.addEventListener("input", show);
form.addEventListener("submit", (event) => {
  event.preventDefault();
  whileBusy(form.querySelector("[type=submit]"), add);
});
form.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.requestSubmit();
});
show();
