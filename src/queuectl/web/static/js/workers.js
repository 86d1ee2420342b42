// Workers: CPU and memory of running commands, asked for every few seconds. The store is not asked, and knows nothing
// of them.
import { send } from "./acts.js";

const EVERY_MS = 3000;

async function look() {
  const places = document.querySelectorAll("[data-usage]");
  if (!places.length || document.visibilityState === "hidden") return;
  try {
    const { usage } = await send("GET", "/workers/usage");
    for (const place of places) {
      const words = usage[place.dataset.usage];
      if (words && place.textContent !== words) place.textContent = words;
    }
  } catch {
    // the mark of the connection says it
  }
}

setInterval(look, EVERY_MS);
