// Ago: relative times that grow older by themselves, and how long things have gone on. The words are those of words.py.
const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const two = (number) => String(number).padStart(2, "0");

export function durationWords(ms) {
  if (ms < MINUTE) return `${Math.floor(ms / SECOND)}s`;
  if (ms < HOUR) return `${Math.floor(ms / MINUTE)}m${two(Math.floor((ms % MINUTE) / SECOND))}s`;
  if (ms < DAY) return `${Math.floor(ms / HOUR)}h${two(Math.floor((ms % HOUR) / MINUTE))}m`;
  return `${Math.floor(ms / DAY)}d${two(Math.floor((ms % DAY) / HOUR))}h`;
}

export function agoWords(then, now = Date.now()) {
  const apart = Math.abs(now - then);
  if (apart < SECOND) return then > now ? "now" : "just now";
  return then > now ? `in ${durationWords(apart)}` : `${durationWords(apart)} ago`;
}

export function tick(root = document) {
  for (const element of root.querySelectorAll("time[data-ago]")) {
    const words = agoWords(Date.parse(element.dateTime));
    if (element.textContent !== words) element.textContent = words;
  }
  for (const element of root.querySelectorAll("time[data-since]")) {
    const words = durationWords(Math.max(0, Date.now() - Number(element.dataset.since)));
    if (element.textContent !== words) element.textContent = words;
  }
}

setInterval(() => document.visibilityState === "visible" && tick(), 1000);
