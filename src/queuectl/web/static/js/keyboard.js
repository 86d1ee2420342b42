// Keyboard: everything within reach of two keys, never while somebody types.
//
// Rows of a list: [data-key] inside table.list or [data-rows]. Acts: data-hotkey="r" on a button of a selection bar, of
// the current row, or of the page, looked for in this order.
const base = document.body.dataset.base ?? "";
const PLACES = {
  o: ["/", "Overview"],
  j: ["/jobs", "Jobs"],
  d: ["/dlq", "DLQ"],
  q: ["/queues", "Queues"],
  s: ["/schedules", "Schedules"],
  w: ["/workers", "Workers"],
  a: ["/audit", "Audit"],
};
const KEYS = [
  ["/", "Search"],
  ["j  k", "Next row, previous row"],
  ["Enter", "Open the row"],
  ["x", "Select the row"],
  ["r", "Retry what is selected, or the row"],
  ["c", "Cancel what is selected, or the row"],
  ...Object.entries(PLACES).map(([key, [, name]]) => [`g ${key}`, name]),
  ["?", "This help"],
  ["Esc", "Close, or leave the field"],
];
const WAIT_MS = 1500;
let isGoing = 0;

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
  const focused = document.activeElement;
  if (event.key === "Escape" && isTyping(focused)) focused.blur();
  if (isTyping(focused) || document.querySelector("dialog[open]")) return;
  if (isGoing && Date.now() - isGoing < WAIT_MS) {
    isGoing = 0;
    if (event.key in PLACES) {
      event.preventDefault();
      location.assign(base + PLACES[event.key][0]);
    }
    return;
  }
  const handler = HANDLERS[event.key];
  if (handler && handler(event) !== false) event.preventDefault();
});

const HANDLERS = {
  "/": () => {
    const field = document.getElementById("find");
    if (!field) return false;
    field.focus();
    field.select();
  },
  "?": help,
  g: () => {
    isGoing = Date.now();
  },
  j: () => step(1),
  k: () => step(-1),
  x: () => current()?.querySelector('input[type="checkbox"]')?.click() ?? (current() ? undefined : false),
  r: () => press("r"),
  c: () => press("c"),
  Enter: (event) => {
    const row = current();
    if (!row || event.target.closest("a, button, summary, [tabindex]") !== row) return false;
    const link = row.querySelector("a[data-open]") ?? row.querySelector("a[href]");
    if (!link) return false;
    link.click();
  },
};

function isTyping(element) {
  if (!element) return false;
  if (element.isContentEditable || element.matches("textarea, select")) return true;
  return element.matches("input") && !element.matches('[type="checkbox"], [type="radio"], [type="button"]');
}

function rows() {
  return [...document.querySelectorAll("main table.list tbody tr[data-key], main [data-rows] > [data-key]")].filter(
    (row) => row.offsetParent !== null || row.getClientRects().length,
  );
}

function current() {
  return document.querySelector("main [data-key].current");
}

function step(by) {
  const all = rows();
  if (!all.length) return false;
  const place = all.indexOf(current());
  const next = all[Math.min(all.length - 1, Math.max(0, place < 0 ? (by > 0 ? 0 : all.length - 1) : place + by))];
  current()?.classList.remove("current");
  next.classList.add("current");
  next.tabIndex = -1;
  next.focus({ preventScroll: true });
  next.scrollIntoView({ block: "nearest" });
}

function press(key) {
  const hot = `[data-hotkey="${key}"]:not(:disabled)`;
  const bar = [...document.querySelectorAll(`.bar ${hot}`)].find((button) => button.getClientRects().length);
  const button = bar ?? current()?.querySelector(hot) ?? document.querySelector(`main .head ${hot}`);
  if (!button) return false;
  button.click();
}

function help() {
  const dialog = document.createElement("dialog");
  dialog.id = "help";
  dialog.setAttribute("aria-labelledby", "help-title");
  const title = document.createElement("h2");
  title.id = "help-title";
  title.textContent = "Keyboard";
  const list = document.createElement("dl");
  list.className = "keys";
  for (const [keys, meaning] of KEYS) {
    const term = document.createElement("dt");
    for (const key of keys.split(/ +/)) {
      const cap = document.createElement("kbd");
      cap.textContent = key;
      term.append(cap, " ");
    }
    const words = document.createElement("dd");
    words.textContent = meaning;
    list.append(term, words);
  }
  const row = document.createElement("div");
  row.className = "acts";
  const close = document.createElement("button");
  close.type = "button";
  close.className = "btn";
  close.textContent = "Close";
  close.addEventListener("click", () => dialog.close());
  row.append(close);
  dialog.append(title, list, row);
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}

export { current, help, rows };
