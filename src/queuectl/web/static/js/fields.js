// Fields: what forms about jobs say, as JSON for the server and as a command line for people.

const WORD = /^[\w@%+=:,./-]+$/;

/** Return a word that a POSIX shell reads as just this text. */
export function quoted(text) {
  return WORD.test(text) ? text : `'${text.replaceAll("'", `'"'"'`)}'`;
}

/** Return the words of a command line that mean a shell line; what could be taken for something else has a flag. */
export function commandWords(command) {
  const isPlain = !command.startsWith("-") && !/^\s*\{\s*["}]/.test(command);
  return isPlain ? [quoted(command)] : ["--command", quoted(command)];
}

/** Return the items of a text with commas between. */
export function items(text) {
  return text.split(",").map((part) => part.trim()).filter(Boolean);
}

/** Return the variables of NAME=value lines; what is no such line is an error that names it. */
export function variables(text) {
  const found = {};
  for (const line of text.split("\n")) {
    if (!line.trim() || line.trimStart().startsWith("#")) continue;
    const at = line.indexOf("=");
    if (at < 1) throw new FieldError("env", `"${line}" is not NAME=value`);
    found[line.slice(0, at).trim()] = line.slice(at + 1);
  }
  return found;
}

/** Something wrong with one field, found before it is sent. */
export class FieldError extends Error {
  constructor(field, message) {
    super(message);
    this.field = field;
  }
}

/** Return which of some fields a message of the server is about; null where it names none. */
export function fieldOf(message, names) {
  let best = null;
  for (const name of names) {
    const words = [name, name.replaceAll("_", "-"), name.replaceAll("_", " "), ...(ALSO[name] ?? [])];
    for (const word of words) {
      const found = new RegExp(`(^|[^\\w-])${word}($|[^\\w-])`, "i").exec(message);
      if (found && (best === null || found.index < best.index)) best = { name, index: found.index };
    }
  }
  return best && best.name;
}

/** Take away what was said to be wrong with a form. */
export function clearWrong(form) {
  for (const place of form.querySelectorAll(".wrong")) place.hidden = true;
  for (const input of form.querySelectorAll("[aria-invalid]")) input.removeAttribute("aria-invalid");
}

/** Take away what was said to be wrong with one field, and below its form: it may be right by now. */
export function mend(input) {
  input.removeAttribute("aria-invalid");
  const places = [input.closest(".field")?.querySelector(".wrong"), input.form.querySelector(":scope > .wrong")];
  for (const place of places) if (place) place.hidden = true;
}

/** Say what is wrong at the field it is about, which is answered; of none, or of one without a place, below the form. */
export function tellWrong(form, message, field) {
  const input = field ? form.elements[field] : null;
  const place = input?.closest(".field")?.querySelector(".wrong");
  const shown = place ?? form.querySelector(":scope > .wrong");
  shown.textContent = message;
  shown.hidden = false;
  if (!place) return null;
  input.setAttribute("aria-invalid", "true");
  input.closest("details")?.setAttribute("open", "");
  return input;
}

const ALSO = { tags: ["tag"], tz: ["zone"], run_at: ["time"], env: ["variable", "environment"], after: ["no job", "dependency"] };
