// Notices: short words in the corner, read out by screen readers. What went wrong stays until it is closed.
const STAYS_MS = 6000;

export function notice(text, { kind = "good", hint = "", link = null } = {}) {
  const box = document.createElement("div");
  box.className = `notice ${kind}`;
  const words = document.createElement("div");
  const first = document.createElement("p");
  first.textContent = text;
  words.append(first);
  if (hint) {
    const second = document.createElement("p");
    second.className = "soft small";
    second.textContent = hint;
    words.append(second);
  }
  box.append(words);
  if (link) {
    const anchor = document.createElement("a");
    anchor.href = link.href;
    anchor.textContent = link.text;
    box.append(anchor);
  }
  const close = document.createElement("button");
  close.type = "button";
  close.className = "btn plain tiny";
  close.textContent = "Close";
  close.addEventListener("click", () => box.remove());
  box.append(close);
  document.getElementById("notices").append(box);
  if (kind === "good") setTimeout(() => box.remove(), STAYS_MS);
  return box;
}

export function problem(error) {
  return notice(error.message || String(error), { kind: "bad", hint: error.hint || "" });
}
