// Copy: buttons that put a text on the clipboard, and say so.
document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  const isCopied = await copy(button.dataset.copy);
  const before = button.dataset.word ?? (button.dataset.word = button.textContent);
  button.textContent = isCopied ? "Copied" : "Ctrl+C";
  clearTimeout(button.timer);
  button.timer = setTimeout(() => (button.textContent = before), 1500);
});

async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copyOldWay(text); // over plain HTTP from another host there is no clipboard API
  }
}

function copyOldWay(text) {
  const area = document.createElement("textarea");
  area.value = text;
  area.className = "visually-hidden";
  const focused = document.activeElement;
  document.body.append(area);
  area.select();
  const isCopied = document.execCommand("copy");
  area.remove();
  focused?.focus?.();
  return isCopied;
}
