// The page of one job: the form that edits it, and a clock for what goes on. Its log is begun in joblog.js.
import { durationWords } from "./ago.js";
import { refresh } from "./live.js";
import { send, whileBusy } from "./acts.js";
import { notice, problem } from "./notices.js";
import { clearWrong, fieldOf, items, mend, quoted, tellWrong } from "./fields.js";

const dialog = document.getElementById("edit");
const form = document.getElementById("edit-form");

/** Return what differs from what the job had when the form was drawn, by field. */
function changes() {
  const found = new Map();
  for (const input of form.querySelectorAll("[data-flag]")) {
    if (input.value !== input.defaultValue) found.set(input.name, input);
  }
  return found;
}

/** Return the changes as the server takes them; tags are added and taken away, the rest is set. */
function body(changed) {
  const fields = {};
  for (const [name, input] of changed) {
    const value = input.value.trim();
    if (name === "tags") Object.assign(fields, tagChanges(input));
    else if (value === "" && input.dataset.none) fields[name] = input.dataset.none;
    else if ("list" in input.dataset) fields[name] = items(value);
    else fields[name] = /^-?\d+$/.test(value) && ["priority", "max_retries"].includes(name) ? Number(value) : input.value;
  }
  return fields;
}

function tagChanges(input) {
  const old = items(input.defaultValue), now = items(input.value);
  const added = now.filter((tag) => !old.includes(tag)), gone = old.filter((tag) => !now.includes(tag));
  return { ...(added.length ? { tags: added } : {}), ...(gone.length ? { untags: gone } : {}) };
}

function commandLine(changed) {
  const words = ["queuectl", "edit", form.dataset.job];
  for (const [name, input] of changed) {
    if (name === "tags") {
      const { tags = [], untags = [] } = tagChanges(input);
      for (const tag of tags) words.push("--tag", quoted(tag));
      for (const tag of untags) words.push("--untag", quoted(tag));
    } else words.push(input.dataset.flag, quoted(input.value.trim() || input.dataset.none || ""));
  }
  return words.join(" ");
}

function show() {
  const line = commandLine(changes());
  document.getElementById("edit-line").textContent = line;
  document.getElementById("edit-copy").dataset.copy = line;
}

/** Show the form as the job is now: what may change depends on where it stands. */
async function open() {
  try {
    const page = await send("GET", location.pathname.slice((document.body.dataset.base ?? "").length), undefined, {
      headers: { Accept: "text/html" },
    });
    const fresh = new DOMParser().parseFromString(page, "text/html").getElementById("edit-fields");
    if (fresh) document.getElementById("edit-fields").replaceWith(document.importNode(fresh, true));
  } catch (error) {
    problem(error);
    return;
  }
  clearWrong(form);
  show();
  dialog.showModal();
}

async function save() {
  const changed = changes();
  clearWrong(form);
  if (!changed.size) return dialog.close();
  try {
    await send("PATCH", `/api/v1/jobs/${encodeURIComponent(form.dataset.job)}`, body(changed));
    dialog.close();
    notice(`Job ${form.dataset.job} is edited`);
    refresh();
  } catch (error) {
    const message = error.hint ? `${error.message} (${error.hint})` : error.message;
    const names = [...changed.keys()];
    const field = fieldOf(error.message, names) ?? (error.status === 422 && names.length === 1 ? names[0] : null);
    tellWrong(form, message, field)?.focus();
  }
}

if (dialog) {
  document.addEventListener("click", (event) => {
    const button = event.target.closest("#edit-button");
    if (button) whileBusy(button, open);
  });
  form.addEventListener("input", (event) => {
    mend(event.target);
    show();
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    whileBusy(form.querySelector("[type=submit]"), save);
  });
  form.querySelector("[data-close]").addEventListener("click", () => dialog.close());
}

/** Tell how long what goes on has taken by now; the whole is drawn to scale again when something changes. */
function tick() {
  for (const span of document.querySelectorAll("#timeline [data-since]")) {
    const { since, name, end } = span.dataset;
    const words = [name, durationWords(Math.max(0, Date.now() - Number(since))), end].filter(Boolean).join(" ");
    for (const node of span.querySelectorAll("text, title")) if (node.textContent !== words) node.textContent = words;
  }
}

setInterval(() => document.visibilityState === "visible" && tick(), 1000);
