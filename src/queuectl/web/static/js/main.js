// Main: starts what every page has. Scripts of a page itself stand before it in <head>, so they run before it.
import "./acts.js";
import "./ago.js";
import "./charts.js";
import "./copy.js";
import "./keyboard.js";
import "./live.js";

// On a phone the pages stand in one row that scrolls: where one is has to be seen.
const pages = document.querySelector(".side");
const here = pages?.querySelector("[aria-current]");
if (here) {
  const [row, entry] = [pages.getBoundingClientRect(), here.getBoundingClientRect()];
  pages.scrollLeft += entry.left - row.left - (row.width - entry.width) / 2;
}

window.queuectlEarly.ready();
document.documentElement.dataset.ready = "yes";
