// Main: starts what every page has. Scripts of a page itself stand before it in <head>, so they run before it.
import "./acts.js";
import "./ago.js";
import "./charts.js";
import "./copy.js";
import "./keyboard.js";
import "./live.js";

window.queuectlEarly.ready();
document.documentElement.dataset.ready = "yes";
