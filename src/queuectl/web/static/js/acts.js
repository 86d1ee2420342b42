// Acts: everything a page asks the server to do. Buttons with data-act need no script of their own; scripts call act().
//
//   <button type="button" data-act="POST" data-url="/api/v1/queues/x/pause" data-body='{}' data-confirm="Pause queue x?"
//           data-yes="Pause" data-done="Paused x" data-command="queuectl queue pause x" data-go="/queues">
//
// With data-danger the yes is red and the way back is at hand, as with a button that is red itself (class danger).
import { notice, problem } from "./notices.js";
import { refresh } from "./live.js";

const base = () => document.body.dataset.base ?? "";

export class Problem extends Error {
  constructor(status, document) {
    super(document.detail || document.title || `the server answered ${status}`);
    this.status = status;
    this.hint = document.hint || "";
    this.document = document;
  }
}

// Send a request to our own server; answer its JSON (or text), or throw a Problem.
export async function send(method, url, body, { headers = {}, signal } = {}) {
  const csrf = document.querySelector('meta[name="csrf"]')?.content;
  const options = { method, signal, headers: { Accept: "application/json", ...headers }, credentials: "same-origin" };
  if (csrf) options.headers["X-CSRF-Token"] = csrf;
  if (body !== undefined) {
    options.headers["Content-Type"] = "application/json";
    options.body = typeof body === "string" ? body : JSON.stringify(body);
  }
  let answer;
  try {
    answer = await fetch(base() + url, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem(0, { detail: "The server cannot be reached", hint: "nothing was changed, as far as we know" });
  }
  const isJson = /json/.test(answer.headers.get("content-type") ?? "");
  const told = isJson ? await answer.json().catch(() => ({})) : await answer.text();
  if (!answer.ok) throw new Problem(answer.status, isJson ? told : {});
  return told;
}

// Questions take turns: each is asked when the one before is answered, so no yes answers another question.
let lastQuestion = Promise.resolve();

export function ask(question, options = {}) {
  const answer = lastQuestion.then(() => askNow(question, options));
  lastQuestion = answer.catch(() => {});
  return answer;
}

function askNow(question, { yes = "Yes", no = "Back", isDangerous = false, command = "", text = "" }) {
  const dialog = document.createElement("dialog");
  dialog.className = "question";
  const title = document.createElement("h2");
  title.id = "question-title";
  title.textContent = question;
  dialog.setAttribute("aria-labelledby", title.id);
  dialog.append(title);
  if (text) {
    const words = document.createElement("p");
    words.textContent = text;
    dialog.append(words);
  }
  if (command) {
    const line = document.createElement("p");
    const code = document.createElement("code");
    code.textContent = `$ ${command}`;
    line.className = "soft small";
    line.append(code);
    dialog.append(line);
  }
  const row = document.createElement("div");
  row.className = "acts";
  const noButton = answerButton(no, "btn");
  const yesButton = answerButton(yes, isDangerous ? "btn danger primary" : "btn primary");
  row.append(noButton, yesButton);
  dialog.append(row);
  document.body.append(dialog);
  const asker = document.activeElement;
  return new Promise((resolve) => {
    let isYes = false;
    yesButton.addEventListener("click", () => {
      isYes = true;
      dialog.close();
    });
    noButton.addEventListener("click", () => dialog.close());
    dialog.addEventListener("close", () => {
      dialog.remove();
      asker?.focus?.();
      resolve(isYes);
    });
    dialog.showModal();
    (isDangerous ? noButton : yesButton).focus();
  });
}

function answerButton(text, className) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = className;
  button.textContent = text;
  return button;
}

// Do something after the question, if there is one; show what came of it; answer what the server said, or null.
export async function act({ method = "POST", url, body, confirm = "", yes, text, command, isDangerous, done = "", go = "" }) {
  if (confirm && !(await ask(confirm, { yes, isDangerous, command, text }))) return null;
  try {
    const told = await send(method, url, body);
    if (go) {
      location.assign(base() + go);
      return told;
    }
    if (done) notice(typeof done === "function" ? done(told) : done);
    return told ?? {};
  } catch (error) {
    problem(error);
    return null;
  } finally {
    refresh();
  }
}

// As act, for jobs that may become more while the question is read: they are counted first, the number stands for
// {count} in the words, and should there be more by the time of the yes, it is asked again.
export async function actOnCounted({ url, body, confirm, yes, ...more }) {
  const which = JSON.parse(body);
  const words = (text, count) => text?.replace("{count}", () => count.toLocaleString("en"));
  try {
    for (;;) {
      const { count } = await send("POST", url, { ...which, dry_run: true });
      if (!count) return notice("None is left", { kind: "warning" });
      if (!(await ask(words(confirm, count), { ...more, yes: words(yes, count) }))) return null;
      try {
        await send("POST", url, { ...which, max: count });
        return notice(more.done);
      } catch (error) {
        if (error.status !== 409 || !/more than max/.test(error.message)) throw error;
      }
    }
  } catch (error) {
    return problem(error);
  } finally {
    refresh();
  }
}

const busy = new WeakSet();

export async function whileBusy(element, work) {
  if (busy.has(element)) return;
  busy.add(element);
  element.setAttribute("aria-busy", "true");
  try {
    await work();
  } finally {
    busy.delete(element);
    element.removeAttribute("aria-busy");
  }
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-act]:not(form)");
  if (!button || button.disabled || button.getAttribute("aria-disabled") === "true") return;
  event.preventDefault();
  const data = button.dataset;
  const work = "counted" in data ? actOnCounted : act;
  whileBusy(button, () =>
    work({
      method: data.act || "POST",
      url: data.url,
      body: data.body,
      confirm: data.confirm,
      yes: data.yes || button.textContent.trim() || undefined,
      command: data.command,
      isDangerous: "danger" in data || button.classList.contains("danger"),
      done: data.done,
      go: data.go,
    }),
  );
});
