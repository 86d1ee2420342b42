// Log: what commands printed, as lines that can be followed, searched and wrapped. Where it comes from is in output.js.
// Everything a command printed becomes text nodes; nothing of it is ever read as markup.
import { PLAIN, Screen, span, textOf } from "./ansi.js";

const BLOCK = 200; // lines that are laid out together; those out of sight are not
const MOST_LINES = 50_000; // of one run that are kept while it is followed
const FOLD = 4_000; // characters of a line that are drawn at once
const MOST_MARKS = 5_000;
const SEARCH_MS = 150;

/** The lines of one stream of one run: those loaded from above, and those that come. */
export class Part {
  constructor(title, isError) {
    this.screen = new Screen();
    this.above = [];
    this.rows = [];
    this.dropped = 0;
    this.node = element("div", isError ? "log-part error" : "log-part");
    this.title = element("div", "log-title", title);
    this.title.hidden = !title;
    this.more = element("div", "log-more");
    this.more.hidden = true;
    this.higher = element("div", "log-above");
    this.body = element("div", "log-now");
    this.node.append(this.title, this.more, this.higher, this.body);
  }

  /** Add what came; return the rows that changed. */
  feed(text) {
    const first = this.screen.feed(text);
    const lines = this.screen.lines;
    const changed = [];
    for (let place = Math.max(0, Math.min(first, this.rows.length - 1)); place < lines.length; place += 1) {
      if (place < this.rows.length) this.rows[place].line = lines[place];
      else this.rows.push(addRow(this.body, lines[place]));
      draw(this.rows[place]);
      changed.push(this.rows[place]);
    }
    return changed;
  }

  /** Put text above all that is there. */
  prepend(text) {
    const screen = new Screen();
    screen.feed(text.endsWith("\n") ? text.slice(0, -1) : text);
    const holder = element("div");
    const rows = screen.lines.map((line) => addRow(holder, line));
    rows.forEach((row) => draw(row));
    this.above = rows.concat(this.above);
    this.higher.prepend(...holder.childNodes);
  }

  all() {
    return this.above.concat(this.rows);
  }

  /** Lines, less the last where nothing is on it yet. */
  get count() {
    const last = this.rows[this.rows.length - 1];
    return this.above.length + this.rows.length - (last && last.line.length === 0 ? 1 : 0);
  }

  /** Let go of the oldest lines of an output that goes on and on. */
  trim() {
    const over = this.above.length + this.rows.length - MOST_LINES;
    if (over <= 0) return;
    const count = Math.min(this.rows.length - 1, Math.ceil(over / BLOCK) * BLOCK);
    this.screen.drop(count);
    for (const row of this.rows.splice(0, count)) {
      const block = row.node.parentNode;
      row.node.remove();
      if (block && !block.firstChild) block.remove();
    }
    this.dropped += count + this.above.length;
    this.above = [];
    this.higher.replaceChildren();
  }
}

/** Where the parts are shown, with the tools of the page around them. */
export class LogView {
  constructor({ body, lines, find, count, previous, next, follow, wrap }) {
    Object.assign(this, { body, lines, find, count, previous, next, followBox: follow, wrapBox: wrap });
    this.parts = [];
    this.matches = [];
    this.at = -1;
    this.marked = new Set();
    this._timer = 0;
    this._listen();
  }

  /** Whether the end is kept in sight; the box hears "follow" when it is ticked or not by itself. */
  get isFollowing() {
    return this.followBox.checked;
  }

  set isFollowing(isOn) {
    if (this.followBox.checked === isOn) return;
    this.followBox.checked = isOn;
    this.followBox.dispatchEvent(new Event("follow"));
  }

  clear() {
    this.parts = [];
    this.lines.replaceChildren();
    this._search();
  }

  add(part, before = null) {
    const place = before ? this.parts.indexOf(before) : this.parts.length;
    this.parts.splice(place, 0, part);
    this.lines.insertBefore(part.node, before ? before.node : null);
    return part;
  }

  feed(part, text, { isFollowed = false } = {}) {
    part.feed(text);
    if (isFollowed) part.trim();
    if (this.find.value) this._searchSoon();
    if (this.isFollowing) this.toEnd();
  }

  /** Put text above, and keep what is looked at where it is. */
  prepend(part, text) {
    const fromEnd = this.body.scrollHeight - this.body.scrollTop;
    part.prepend(text);
    this.body.scrollTop = this.body.scrollHeight - fromEnd;
    if (this.find.value) this._searchSoon();
  }

  /** Go to the end; what was out of sight gets its height only when it is seen, so the end may move. */
  toEnd(tries = 3) {
    this.body.scrollTop = this.body.scrollHeight;
    if (tries) requestAnimationFrame(() => this.isFollowing && this.toEnd(tries - 1));
  }

  _listen() {
    this.find.addEventListener("input", () => {
      this.isTyped = true;
      this._searchSoon();
    });
    this.find.addEventListener("keydown", (event) => {
      if (event.key !== "Enter") return;
      event.preventDefault();
      if (this.isTyped) this._flush();
      else this.step(event.shiftKey ? -1 : 1);
    });
    this.previous.addEventListener("click", () => this.step(-1));
    this.next.addEventListener("click", () => this.step(1));
    this.wrapBox.addEventListener("change", () => this.lines.classList.toggle("wrapped", this.wrapBox.checked));
    this.followBox.addEventListener("change", () => {
      if (this.isFollowing) this.toEnd();
    });
    this.body.addEventListener("scroll", () => this._scrolled());
    this.lines.addEventListener("click", (event) => this._unfold(event));
    this.lines.classList.toggle("wrapped", this.wrapBox.checked);
  }

  /** Who scrolls away from the end does not follow any more; who comes back does. */
  _scrolled() {
    const isAtEnd = this.body.scrollHeight - this.body.scrollTop - this.body.clientHeight < 24;
    const isAway = this.body.scrollTop < (this._top ?? 0) && !isAtEnd;
    this._top = this.body.scrollTop;
    if (isAway || isAtEnd) this.isFollowing = isAtEnd;
  }

  _unfold(event) {
    const button = event.target.closest("button[data-unfold]");
    if (!button) return;
    const node = button.closest(".log-line");
    const row = this.parts.flatMap((part) => part.all()).find((each) => each.node === node);
    if (!row) return;
    row.isWhole = true;
    draw(row, this._marksOf(row));
  }

  _searchSoon() {
    clearTimeout(this._timer);
    this._timer = setTimeout(() => this._search(), SEARCH_MS);
  }

  _flush() {
    clearTimeout(this._timer);
    this._search();
  }

  _search() {
    const wanted = this.find.value.toLowerCase();
    const current = this.matches[this.at];
    const before = this.marked;
    this.matches = [];
    this.marked = new Set();
    if (wanted) this._collect(wanted);
    this.at = current
      ? this.matches.findIndex((each) => each.row === current.row && each.start === current.start)
      : -1;
    if (this.at < 0 && this.matches.length) this.at = 0;
    for (const row of new Set([...before, ...this.marked])) draw(row, this._marksOf(row));
    this._tell();
    // What was typed shows its first match; what the log brings while somebody reads moves nothing.
    if (this.isTyped && this.matches.length) this._reveal();
    this.isTyped = false;
  }

  _collect(wanted) {
    for (const row of this.parts.flatMap((part) => part.all())) {
      const text = textOf(row.line).toLowerCase();
      for (let start = text.indexOf(wanted); start >= 0; start = text.indexOf(wanted, start + wanted.length)) {
        this.matches.push({ row, start, end: start + wanted.length });
        if (this.matches.length <= MOST_MARKS) this.marked.add(row);
      }
    }
  }

  _marksOf(row) {
    if (!this.marked.has(row)) return [];
    const current = this.matches[this.at];
    return this.matches
      .filter((each) => each.row === row)
      .map((each) => ({ start: each.start, end: each.end, isCurrent: each === current }));
  }

  step(by) {
    if (!this.matches.length) return;
    const old = this.matches[this.at];
    this.at = (this.at + by + this.matches.length) % this.matches.length;
    this._reveal(old);
    this._tell();
  }

  /** Bring the match that is current into sight, and strip the one before it of its mark. */
  _reveal(old) {
    const match = this.matches[this.at];
    this.marked.add(match.row);
    if (match.end > FOLD) match.row.isWhole = true;
    for (const row of new Set([old && old.row, match.row])) if (row) draw(row, this._marksOf(row));
    this.isFollowing = false;
    const mark = match.row.node.querySelector("mark.current") ?? match.row.node;
    mark.scrollIntoView({ block: "center", inline: "nearest" });
  }

  _tell() {
    const count = this.matches.length;
    const words = count ? `${(this.at + 1).toLocaleString("en")} of ${count.toLocaleString("en")}` : "no match";
    this.count.textContent = this.find.value ? words : "";
    this.previous.disabled = this.next.disabled = !count;
  }
}

function addRow(holder, line) {
  let block = holder.lastElementChild;
  if (!block || block.childElementCount >= BLOCK) {
    block = element("div", "log-block");
    holder.append(block);
  }
  const node = element("div", "log-line");
  block.append(node);
  block.style.setProperty("--lines", block.childElementCount);
  return { line, node, isWhole: false };
}

/** Draw a line anew: its runs, cut where a match begins or ends. */
function draw(row, marks = []) {
  const { line, node } = row;
  const most = row.isWhole ? line.length : FOLD;
  const nodes = [];
  let at = 0;
  for (const run of line.runs) {
    if (at >= most) break;
    drawRun(nodes, run, at, most, marks);
    at += run.text.length;
  }
  node.replaceChildren(...nodes);
  if (line.length > most) node.append(foldButton(line.length - most));
  if (!line.length) node.append("\n");
}

function drawRun(nodes, run, at, most, marks) {
  const end = Math.min(at + run.text.length, most);
  let from = at;
  for (const mark of marks) {
    const start = Math.max(mark.start, from), stop = Math.min(mark.end, end);
    if (start >= stop) continue;
    if (start > from) nodes.push(span(run.text.slice(from - at, start - at), run.style));
    const node = element("mark", mark.isCurrent ? "current" : "");
    node.append(span(run.text.slice(start - at, stop - at), run.style === PLAIN ? PLAIN : run.style));
    nodes.push(node);
    from = stop;
  }
  if (from < end) nodes.push(span(run.text.slice(from - at, end - at), run.style));
}

function foldButton(count) {
  const button = element("button", "btn tiny", `${count.toLocaleString("en")} more characters`);
  button.type = "button";
  button.dataset.unfold = "";
  return button;
}

function element(name, className = "", text = "") {
  const node = document.createElement(name);
  if (className) node.className = className;
  if (text) node.textContent = text;
  return node;
}
