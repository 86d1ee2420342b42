// Forms: what a person fills in is sent as JSON, and what is wrong with it is said in the form itself.
//
//   <form data-module data-form="PATCH" data-url="/api/v1/queues/x" data-changed data-done="Saved" data-go="/queues">
//
// A name with a dot is a field of a part: job.command. With data-changed only what was changed is sent, an emptied field
// as null; without it, fields that are empty are left out. {name} in data-go stands for that field. A button with
// data-dialog opens the dialog of that id, one with data-close closes the one it is in.
import { send, whileBusy } from "./acts.js";
import { clearWrong, fieldOf, mend, tellWrong } from "./fields.js";
import { refresh } from "./live.js";
import { notice } from "./notices.js";

export function gather(form, isWhole = !("changed" in form.dataset)) {
  const body = {};
  for (const field of form.elements) {
    if (!field.name || field.disabled || (field.type === "radio" && !field.checked)) continue;
    const value = field.type === "checkbox" ? field.checked : field.value.trim();
    if (isWhole ? value === "" : !isChanged(field)) continue;
    put(body, field.name.split("."), value === "" ? null : typed(field, value));
  }
  return body;
}

function isChanged(field) {
  if (field.type === "checkbox" || field.type === "radio") return field.checked !== field.defaultChecked;
  if (field.nodeName !== "SELECT") return field.value.trim() !== field.defaultValue.trim();
  return [...field.options].some((option) => option.selected !== option.defaultSelected);
}

// A whole number is sent as one, unless the field holds text that may look like it.
function typed(field, value) {
  return field.dataset.kind === "number" && /^-?\d{1,15}$/.test(value) ? Number(value) : value;
}

function put(body, path, value) {
  const last = path.pop();
  let part = body;
  for (const name of path) part = part[name] ??= {};
  part[last] = value;
}

function settle(form) {
  for (const field of form.elements) {
    if (field.type === "checkbox" || field.type === "radio") field.defaultChecked = field.checked;
    else if (field.nodeName === "SELECT") for (const option of field.options) option.defaultSelected = option.selected;
    else if (field.name) field.defaultValue = field.value;
  }
}

/** Say what is wrong at the field the server names; what names none of those with a place for it, below the form. */
function say(form, error) {
  const named = new Map();
  for (const { name } of form.elements) if (name) named.set(name.split(".").pop(), name);
  const field = error.status === 422 ? named.get(fieldOf(error.message, [...named.keys()])) : null;
  tellWrong(form, [error.message, error.hint].filter(Boolean).join(": "), field)?.focus();
}

async function submit(form) {
  clearWrong(form);
  const body = gather(form);
  try {
    const told = await send(form.dataset.form, form.dataset.url, body);
    settle(form);
    form.closest("dialog")?.close();
    const handled = form.dispatchEvent(new CustomEvent("form:done", { bubbles: true, cancelable: true, detail: told }));
    if (form.dataset.go && handled) {
      const go = form.dataset.go.replace("{name}", encodeURIComponent(body.name ?? ""));
      location.assign((document.body.dataset.base ?? "") + go);
      return;
    }
    if (form.dataset.done) notice(form.dataset.done);
    refresh();
  } catch (error) {
    say(form, error);
  }
}

document.addEventListener("input", (event) => {
  if (event.target.form?.matches("[data-form]")) mend(event.target);
});

document.addEventListener("submit", (event) => {
  const form = event.target.closest("form[data-form]");
  if (!form) return;
  event.preventDefault();
  whileBusy(form, () => submit(form));
});

document.addEventListener("click", (event) => {
  const opener = event.target.closest("[data-dialog]");
  if (opener && !opener.disabled) document.getElementById(opener.dataset.dialog)?.showModal();
  if (event.target.closest("[data-close]")) event.target.closest("dialog").close();
});
