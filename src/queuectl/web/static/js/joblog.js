// The log on the page of a job: its end first, more above on demand, and what comes while it runs.
import { LogView, Part } from "./log.js";

const TAIL = 256 << 10; // bytes that are loaded first
const MOST_ABOVE = 4 << 20;
const FIRST_RETRY_MS = 500;
const LAST_RETRY_MS = 15_000;
const BATCH_MS = 40;

const get = (id) => document.getElementById(id);
const section = get("log");
const tabs = () => get("log-tabs").dataset;
const base = document.body.dataset.base ?? "";
const address = `${base}/api/v1/jobs/${encodeURIComponent(section.dataset.job)}/output`;
const pinned = section.dataset.run;
const stream = section.dataset.stream;
const state = get("log-state");
const view = new LogView({
  body: get("log-body"), lines: get("log-lines"), find: get("log-find"), count: get("log-count"),
  previous: get("log-previous"), next: get("log-next"), follow: get("log-follow"), wrap: get("log-wrap"),
});
const parts = new Map(); // run and stream -> its part
const seen = { run: 0, output: 0, stderr: 0 }; // up to where, in bytes, as the ids of events say it
const waiting = new Map(); // part -> text that is not drawn yet
let lastId = "";
let timer = 0;
let following = null;
let isEnded = false;
let isComing = false; // whether it is said that there is more to come

function query(more) {
  const params = new URLSearchParams(more);
  for (const [name, value] of [...params]) if (!value) params.delete(name);
  return `${address}?${params}`;
}

function partOf(run, attempt, name) {
  const key = `${run}/${name}`;
  if (!parts.has(key)) {
    const words = `attempt ${attempt} (run ${run})${name === "output" ? "" : `, ${name}`}`;
    const isAlone = parts.size === 0 && (pinned || tabs().newest === "1") && (name === "output" || stream);
    parts.set(key, view.add(new Part(isAlone ? "" : words, name === "stderr")));
  }
  return parts.get(key);
}

/** Load the end of what one stream of a run has printed; return how many bytes that are up to its end. */
async function loadTail(run, attempt, name) {
  const url = query({ run, stream: name === "output" ? "" : name });
  const answer = await fetch(url, { headers: { Range: `bytes=-${TAIL}` }, credentials: "same-origin" });
  if (!answer.ok) throw new Error(`the log cannot be read (${answer.status})`);
  const data = new Uint8Array(await answer.arrayBuffer());
  if (!data.length) return 0; // nothing was printed yet
  const [start] = rangeOf(answer, data.length);
  const part = partOf(run, attempt, name);
  const first = start > 0 ? lineStart(data) : 0;
  const end = wholeLength(data);
  part.begin = start + first;
  part.url = url;
  if (answer.headers.get("Queuectl-Output") === "tail") part.isCut = true;
  view.feed(part, new TextDecoder().decode(data.subarray(first, end)));
  offerAbove(part);
  return start + end;
}

function rangeOf(answer, length) {
  const found = /bytes (\d+)-\d+\/(\d+)/.exec(answer.headers.get("Content-Range") ?? "");
  return found ? [Number(found[1]), Number(found[2])] : [0, length];
}

/** Return where the first whole line begins; a piece of one line is taken as it is. */
function lineStart(data) {
  const at = data.indexOf(10);
  return at >= 0 && at + 1 < data.length ? at + 1 : 0;
}

/** Return the length without a character at the end that is not whole yet. */
function wholeLength(data) {
  for (let back = 1; back <= Math.min(3, data.length); back += 1) {
    const byte = data[data.length - back];
    if (byte < 0x80) break;
    if (byte >= 0xc0) {
      const wanted = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2;
      return wanted > back ? data.length - back : data.length;
    }
  }
  return data.length;
}

function offerAbove(part) {
  part.more.replaceChildren();
  part.more.hidden = !part.begin && !part.isCut && !part.dropped;
  if (part.more.hidden) return;
  if (part.begin && !part.dropped) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "btn tiny";
    button.textContent = "Load more above";
    button.addEventListener("click", () => loadAbove(part, button));
    part.more.append(button, ` ${part.begin.toLocaleString("en")} bytes`);
  } else {
    part.more.textContent = part.dropped
      ? `${part.dropped.toLocaleString("en")} lines above are not kept here; download it to have all`
      : "only the end of this output is to be had on this host";
  }
}

async function loadAbove(part, button) {
  button.disabled = true;
  part.step = Math.min(MOST_ABOVE, (part.step ?? TAIL / 2) * 2);
  const from = Math.max(0, part.begin - part.step);
  try {
    const headers = { Range: `bytes=${from}-${part.begin - 1}` };
    const answer = await fetch(part.url, { headers, credentials: "same-origin" });
    if (answer.status !== 206) throw new Error(`the log cannot be read (${answer.status})`);
    const data = new Uint8Array(await answer.arrayBuffer());
    const first = from > 0 ? lineStart(data) : 0;
    view.prepend(part, new TextDecoder().decode(data.subarray(first)));
    part.begin = from + first;
    offerAbove(part);
  } catch (error) {
    say(error.message);
    button.disabled = false;
  }
}

function say(text) {
  isComing = false;
  if (state.textContent !== text) state.textContent = text;
}

/** Say that there is more to come, and whether it is kept in sight. */
function sayComing() {
  say(view.isFollowing ? "following" : "Follow is off; more is added at the end");
  isComing = true;
}

/** Draw what came in a moment at once. */
function add(part, text) {
  waiting.set(part, (waiting.get(part) ?? "") + text);
  timer ||= setTimeout(flush, BATCH_MS);
}

function flush() {
  timer = 0;
  for (const [part, text] of waiting) {
    view.feed(part, text, { isFollowed: true });
    if (part.dropped) offerAbove(part);
  }
  waiting.clear();
}

const heard = {
  output({ run, attempt, stream: name, text }) {
    sayComing();
    add(partOf(run, attempt, name), text);
  },
  wait({ state: where, waits_for: what }) {
    say(`${where}: waits for ${what}`);
  },
  notice({ text }) {
    say(text);
  },
  end({ state: where, error }) {
    isEnded = true;
    say(where === null ? "the job was deleted" : `the job is ${where}${error && !error.startsWith(where) ? `: ${error}` : ""}`);
  },
};

/** Read events until the stream ends; each is handed to who hears its kind. */
async function listen(signal) {
  const headers = { Accept: "text/event-stream", ...(lastId ? { "Last-Event-ID": lastId } : {}) };
  const url = query({ follow: "true", run: pinned, stream });
  const answer = await fetch(url, { headers, signal, credentials: "same-origin", cache: "no-store" });
  if (!answer.ok) throw new Error(answer.status === 503 ? "too many follow logs just now" : `answered ${answer.status}`);
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done || signal.aborted) return;
    const events = (rest + value).split("\n\n");
    rest = events.pop();
    events.forEach(hear);
  }
}

function hear(text) {
  const fields = {};
  for (const line of text.split("\n")) {
    const at = line.indexOf(":");
    if (at > 0) fields[line.slice(0, at)] = line.slice(at + 1).replace(/^ /, "");
  }
  if (fields.id) lastId = fields.id;
  if (fields.data && fields.event in heard) heard[fields.event](JSON.parse(fields.data));
}

/** Follow, unless somebody does: one reader at a time, also where one was stopped while it rested between two tries. */
function follow() {
  if (following || document.visibilityState === "hidden") return;
  const own = new AbortController();
  following = own;
  isEnded = false;
  listenOn(own.signal).finally(() => {
    if (following === own) following = null;
  });
}

async function listenOn(signal) {
  let retryMs = FIRST_RETRY_MS;
  while (!isEnded && !signal.aborted) {
    try {
      await listen(signal);
      retryMs = FIRST_RETRY_MS;
    } catch (error) {
      if (signal.aborted) return;
      say(`not following: ${error.message}`);
    }
    if (!isEnded) await rest(retryMs, signal);
    retryMs = Math.min(LAST_RETRY_MS, retryMs * 2);
  }
}

/** Wait for a while, or until it is stopped. */
function rest(ms, signal) {
  return new Promise((resolve) => {
    setTimeout(resolve, ms);
    signal.addEventListener("abort", resolve, { once: true });
  });
}

function stop() {
  following?.abort();
  following = null;
}

async function begin() {
  view.clear();
  const { newest, attempt, split } = tabs();
  const run = Number(pinned || newest || 0);
  if (run) {
    const names = stream ? [stream] : split ? ["stdout", "stderr"] : ["output"];
    for (const name of names) {
      try {
        seen[name === "stderr" ? "stderr" : "output"] = await loadTail(run, Number(attempt), name);
      } catch (error) {
        say(error.message);
        return;
      }
    }
    lastId = `${run}-${seen.output}-${seen.stderr}`;
    if (!view.parts.some((part) => part.count)) say("nothing was printed");
  }
  again();
}

/** Follow where there is more to come: the job is not over, or came back. */
function again() {
  const isDone = pinned ? tabs().running !== pinned : Boolean(tabs().over);
  if (!isDone) follow();
  else if (!following && !state.textContent) say("complete");
}

for (const name of ["change", "follow"]) get("log-follow").addEventListener(name, () => isComing && sayComing());
document.addEventListener("live:patched", again);
document.addEventListener("visibilitychange", () => (document.visibilityState === "hidden" ? stop() : again()));
addEventListener("pagehide", stop);
addEventListener("pageshow", (event) => event.persisted && again());
begin();
