// Live: keeps the page equal to the store. The server says that something changed; the page's own address is fetched
// again and what carries data-live is changed in place. Regions with data-hold-new collect new rows behind a button.
import { agoWords, tick } from "./ago.js";
import { morph, morphHeld } from "./morph.js";
import { notice } from "./notices.js";

const LEAST_MS = 1000; // between two looks, unless this tab did something
const PATIENCE_MS = 10_000; // for one look; then it is given up and tried again
const SILENCE_MS = 40_000; // the server says something every 15 s
const FIRST_RETRY_MS = 500;
const LAST_RETRY_MS = 15_000;

const mark = document.getElementById("live-mark");
const state = {
  source: null,
  version: document.body.dataset.version ?? "",
  shownAt: Date.now(), // when what is shown was true
  isLost: false,
  isStale: false, // the last look failed, so what is shown may be old though the stream speaks
  heardAt: Date.now(),
  retryMs: FIRST_RETRY_MS,
  retryTimer: 0,
  fetchedAt: 0,
  isFetching: false,
  isWanted: false,
  isUrgent: false,
  isGone: document.querySelector("#page [data-missing]") !== null, // told, or never there
  timer: 0,
};
const held = new Map(); // id of a region -> the newest version of it that was not shown whole

const regions = () => document.querySelectorAll("[data-live]");
const hasStream = () => "stream" in document.body.dataset;

// Look again now: this tab changed something.
export function refresh() {
  state.isUrgent = true;
  return look();
}

function look() {
  state.isWanted = true;
  if (state.isFetching || state.timer) {
    if (!state.isUrgent || state.isFetching) return;
    clearTimeout(state.timer);
    state.timer = 0;
  }
  const wait = state.isUrgent ? 0 : Math.max(0, state.fetchedAt + LEAST_MS - Date.now());
  if (wait) state.timer = setTimeout(fetchAgain, wait);
  else return fetchAgain();
}

async function fetchAgain() {
  clearTimeout(state.timer);
  state.timer = 0;
  if (document.visibilityState === "hidden" && !state.isUrgent) return; // it catches up when it is seen
  state.isFetching = true;
  state.isWanted = false;
  const headers = { "X-Live": state.isUrgent ? "fresh" : state.version, Accept: "text/html" };
  state.isUrgent = false;
  state.fetchedAt = Date.now();
  try {
    const address = location.href;
    const signal = AbortSignal.timeout(PATIENCE_MS);
    const answer = await fetch(address, { headers, credentials: "same-origin", cache: "no-store", signal });
    if (answer.redirected && new URL(answer.url).pathname !== location.pathname) location.reload();
    const type = answer.headers.get("content-type") ?? "";
    const text = await answer.text();
    if (answer.status === 401) location.reload();
    else if (type.startsWith("text/html") && address === location.href) {
      // The page of an error has the frame alone: the rest stays as it was last known.
      patch(new DOMParser().parseFromString(text, "text/html"), answer.ok);
      if (answer.status === 404 && !state.isGone) {
        state.isGone = true;
        notice("What this page shows is no longer there", { kind: "warning" });
      }
    }
    state.isStale = false;
    show();
  } catch {
    state.isStale = true;
    lose(); // the server went away, or hangs; what is shown stays, and its age is told
  } finally {
    state.isFetching = false;
    if (state.isWanted) look();
  }
}

function patch(fresh, isWhole) {
  if (isWhole) {
    document.title = fresh.title;
    state.shownAt = Date.now();
  }
  for (const region of regions()) {
    const next = region.id && fresh.getElementById(region.id);
    if (next) patchRegion(region, next);
  }
  for (const next of fresh.querySelectorAll("[data-live]")) {
    if (next.id && !document.getElementById(next.id)) adopt(next);
  }
  for (const button of document.querySelectorAll(".new-pill")) {
    if (!document.getElementById(button.dataset.of)) button.remove();
  }
  tick();
  document.dispatchEvent(new CustomEvent("live:patched"));
}

function patchRegion(region, next) {
  const list = region.matches("[data-hold-new]") ? region : null;
  if (!list) {
    for (const inner of region.querySelectorAll("[data-hold-new][id]")) {
      const freshInner = next.querySelector(`#${CSS.escape(inner.id)}`);
      if (freshInner) {
        hold(inner, freshInner);
        freshInner.replaceChildren(...[...inner.cloneNode(true).childNodes]);
      }
    }
    morph(region, next);
    return;
  }
  hold(region, next);
}

// A region that came into being: put where its container has it, if that container is there.
function adopt(next) {
  const parent = next.parentElement?.id && document.getElementById(next.parentElement.id);
  if (parent) parent.append(document.importNode(next, true));
}

function hold(region, next) {
  const count = morphHeld(region, next);
  held.set(region.id, next.cloneNode(true));
  pill(region, count);
}

// Beside the title of the page: over the list it would cover what stands there.
function pill(region, count) {
  const title = document.querySelector("#page .head h1");
  let button = document.querySelector(`.new-pill[data-of="${CSS.escape(region.id)}"]`);
  if (!count) {
    button?.remove();
    return;
  }
  if (!button) {
    button = document.createElement("button");
    button.type = "button";
    button.className = "new-pill";
    button.dataset.of = region.id;
    button.addEventListener("click", () => {
      button.remove();
      morph(document.getElementById(region.id), held.get(region.id));
      tick();
      document.dispatchEvent(new CustomEvent("live:patched"));
    });
    (document.querySelector("#page .head #total") ?? title).after(button);
  }
  const words = `${count.toLocaleString("en")} new`;
  if (button.textContent !== words) button.textContent = words;
}

// The stream
function open() {
  clearTimeout(state.retryTimer);
  if (state.source || document.visibilityState === "hidden") return;
  const source = new EventSource(`${document.body.dataset.base}/api/v1/events`);
  state.source = source;
  source.addEventListener("open", () => {
    state.retryMs = FIRST_RETRY_MS;
    heard();
  });
  source.addEventListener("change", (event) => {
    heard();
    const { version } = JSON.parse(event.data);
    if (String(version) === state.version && !state.isStale) state.shownAt = Date.now();
    else {
      state.version = String(version);
      look();
    }
  });
  source.addEventListener("beat", heard);
  source.addEventListener("error", () => {
    if (source !== state.source) return;
    const isRefused = source.readyState === EventSource.CLOSED; // answered, but not by a stream: is one still logged in?
    lose();
    if (isRefused) look();
  });
}

function close() {
  state.source?.close();
  state.source = null;
}

function heard() {
  state.heardAt = Date.now();
  if (state.isLost) {
    state.isLost = false;
    state.version = ""; // whatever was missed
    look();
  }
  show();
}

function lose() {
  close();
  state.isLost = true;
  show();
  clearTimeout(state.retryTimer);
  state.retryTimer = setTimeout(open, state.retryMs * (0.75 + Math.random() / 2));
  state.retryMs = Math.min(LAST_RETRY_MS, state.retryMs * 2);
}

function show() {
  const isLost = state.isLost || state.isStale;
  const isLive = Boolean(state.source) && !isLost && state.source.readyState === EventSource.OPEN;
  mark.classList.toggle("good", isLive);
  mark.classList.toggle("bad", isLost);
  const words = isLive ? "live" : isLost ? `connection lost, shown: ${agoWords(state.shownAt)}` : "still";
  if (mark.textContent !== words) mark.textContent = words;
  document.documentElement.dataset.live = isLive ? "yes" : isLost ? "lost" : "no";
}

document.addEventListener("visibilitychange", () => {
  if (document.visibilityState === "hidden") {
    close();
    clearTimeout(state.retryTimer);
    show();
  } else {
    open();
    state.version = "";
    look();
  }
});
addEventListener("online", open);
addEventListener("pagehide", close);
addEventListener("pageshow", (event) => {
  if (!event.persisted) return;
  open();
  look();
});
setInterval(() => {
  if (state.source && !state.isLost && Date.now() - state.heardAt > SILENCE_MS) lose();
  if (state.isLost || state.isStale) show();
  else if (state.source) state.shownAt = Math.max(state.shownAt, state.heardAt);
}, 1000);

if (hasStream()) open();
