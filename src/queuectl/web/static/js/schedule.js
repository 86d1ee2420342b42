// Schedule: shows the next five times of what stands in the form, while it is typed.
import { send } from "./acts.js";

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

form.addEventListener("input", (event) => {
  const name = event.target.name;
  if (!["cron", "every", "tz"].includes(name)) return;
  if (name !== "tz" && event.target.value.trim()) {
    last = name;
    // The other one is given up: a schedule has a line or a period, not both.
    form.elements[name === "cron" ? "every" : "cron"].value = "";
  }
  clearTimeout(timer);
  timer = setTimeout(preview, WAIT_MS);
});

preview();
