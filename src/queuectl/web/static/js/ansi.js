// Terminal text as lines of styled runs. Colours (SGR) are kept, a carriage return and a backspace go back in the line,
// "erase line" erases; every other control sequence is dropped. Makes no nodes but in `span`, and those from text alone.

const TEXT = 0, ESCAPE = 1, CSI = 2, STRING = 3, STRING_ESCAPE = 4, CHARSET = 5;
const CONTROL = /[\x00-\x1f\x7f-\x9f]/g;
// What turns the direction of the text around it, and what has no width at all: shown by number, never obeyed.
const STEERING = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff\ufff9-\ufffb]/g;
const MOST_PARAMETERS = 256;
const FLAGS = ["bold", "dim", "italic", "underline", "inverse", "strike"];
const SET = { 1: "bold", 2: "dim", 3: "italic", 4: "underline", 7: "inverse", 9: "strike", 21: "underline" };
const UNSET = { 22: ["bold", "dim"], 23: ["italic"], 24: ["underline"], 27: ["inverse"], 29: ["strike"] };

export const PLAIN = Object.freeze({ foreground: null, background: null, flags: Object.freeze([]) });

/** Reads a stream piece by piece: a sequence may be cut anywhere. `lines` are those so far, the last one unfinished. */
export class Screen {
  constructor() {
    this.style = PLAIN;
    this.lines = [newLine()];
    this._state = TEXT;
    this._parameters = "";
    this._column = 0;
  }

  /** Take the next piece; return the place of the first line that changed. */
  feed(text) {
    let first = this.lines.length - 1;
    let at = 0;
    while (at < text.length) {
      if (this._state === TEXT) {
        CONTROL.lastIndex = at;
        const found = CONTROL.exec(text);
        const end = found ? found.index : text.length;
        if (end > at) this._write(text.slice(at, end).replace(STEERING, named));
        if (!found) break;
        this._control(found[0]);
        at = end + 1;
      } else {
        at = this._inSequence(text, at);
      }
    }
    return first;
  }

  /** Forget the first lines, which nobody looks at any more. */
  drop(count) {
    this.lines.splice(0, Math.min(count, this.lines.length - 1));
  }

  _control(char) {
    if (char === "\n" || char === "\v" || char === "\f" || char === "\x85") this._newLine();
    else if (char === "\r") this._column = 0;
    else if (char === "\b") this._column = Math.max(0, this._column - 1);
    else if (char === "\t") this._write("\t");
    else if (char === "\x1b") this._state = ESCAPE;
    else if (char === "\x9b") this._begin(CSI);
    else if ("\x90\x98\x9d\x9e\x9f".includes(char)) this._begin(STRING);
  }

  _begin(state) {
    this._state = state;
    this._parameters = "";
  }

  _inSequence(text, at) {
    const char = text[at];
    if (char === "\n") { // no sequence goes on over the end of a line: what is left open must not hide what follows
      this._state = TEXT;
      return at;
    }
    if (this._state === ESCAPE) this._afterEscape(char);
    else if (this._state === CSI) this._inParameters(char);
    else if (this._state === CHARSET) this._state = TEXT;
    else if (this._state === STRING_ESCAPE) {
      this._state = TEXT;
      if (char !== "\\") this._afterEscape(char);
    } else return this._inString(text, at);
    return at + 1;
  }

  _afterEscape(char) {
    if (char === "[") this._begin(CSI);
    else if ("]PX^_".includes(char)) this._begin(STRING);
    else if (char === "\x1b") this._state = ESCAPE;
    else if (char >= " " && char <= "/") this._state = CHARSET;
    else this._state = TEXT;
  }

  _inParameters(char) {
    if (char >= "@" && char <= "~") {
      this._state = TEXT;
      if (char === "m") this.style = styled(this.style, this._parameters);
      else if (char === "K") this._erase(this._parameters);
    } else if (char === "\x1b") this._state = ESCAPE;
    else if (char === "\x18" || char === "\x1a") this._state = TEXT;
    else if (char >= " " && char <= "?") {
      this._parameters += char;
      if (this._parameters.length > MOST_PARAMETERS) this._state = TEXT;
    }
  }

  _inString(text, at) {
    STRING_END.lastIndex = at;
    const found = STRING_END.exec(text);
    if (!found) return text.length;
    if (found[0] === "\n") return found.index;
    this._state = found[0] === "\x1b" ? STRING_ESCAPE : TEXT;
    return found.index + 1;
  }

  _newLine() {
    this.lines.push(newLine());
    this._column = 0;
  }

  _write(text) {
    const line = this.lines[this.lines.length - 1];
    put(line, this._column, text, this.style);
    this._column += text.length;
  }

  _erase(parameters) {
    const line = this.lines[this.lines.length - 1];
    const which = parameters === "" || parameters === "0" ? 0 : Number(parameters);
    if (which === 0) cutTo(line, this._column);
    else if (which === 1) put(line, 0, " ".repeat(Math.min(this._column, line.length)), PLAIN);
    else if (which === 2) cutTo(line, 0);
  }
}

const STRING_END = /[\n\x07\x18\x1a\x1b\x9c]/g;

/** Return the text of a line without its colours. */
export function textOf(line) {
  return line.runs.map((run) => run.text).join("");
}

/** Return a node for a run: text, and classes or a colour for how it looks. */
export function span(text, style) {
  if (style === PLAIN) return document.createTextNode(text);
  const node = document.createElement("span");
  node.textContent = text;
  node.className = style.flags.map((flag) => `t-${flag}`).join(" ");
  const inverse = style.flags.includes("inverse");
  paint(node, inverse ? style.background : style.foreground, "f", "color", inverse ? "t-on-ink" : "");
  paint(node, inverse ? style.foreground : style.background, "b", "backgroundColor", inverse ? "t-on-paper" : "");
  return node;
}

function paint(node, colour, letter, property, instead) {
  if (typeof colour === "number") node.classList.add(`t-${letter}${colour}`);
  else if (colour !== null) node.style[property] = `rgb(${colour.join(",")})`;
  else if (instead) node.classList.add(instead);
}

function named(char) {
  return `<U+${char.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}>`;
}

function newLine() {
  return { runs: [], length: 0 };
}

/** Write over what stands in a line from a column on. */
function put(line, column, text, style) {
  if (text === "") return;
  if (column >= line.length) {
    if (column > line.length) append(line, " ".repeat(column - line.length), PLAIN);
    append(line, text, style);
    return;
  }
  const behind = from(line, column + text.length);
  cutTo(line, column);
  append(line, text, style);
  for (const run of behind) append(line, run.text, run.style);
}

function append(line, text, style) {
  const last = line.runs[line.runs.length - 1];
  if (last && last.style === style) last.text += text;
  else line.runs.push({ text, style });
  line.length += text.length;
}

function cutTo(line, column) {
  if (column >= line.length) return;
  const kept = [];
  let at = 0;
  for (const run of line.runs) {
    if (at >= column) break;
    kept.push(at + run.text.length <= column ? run : { text: run.text.slice(0, column - at), style: run.style });
    at += run.text.length;
  }
  line.runs = kept;
  line.length = Math.min(line.length, column);
}

function from(line, column) {
  const found = [];
  let at = 0;
  for (const run of line.runs) {
    const end = at + run.text.length;
    if (end > column) found.push({ text: run.text.slice(Math.max(0, column - at)), style: run.style });
    at = end;
  }
  return found;
}

/** Return the style after a sequence of graphic parameters: `1;31`, `38;5;208`, `38;2;255;0;0`, `4:3`. */
export function styled(before, parameters) {
  if (/[^0-9;:]/.test(parameters)) return before; // a private sequence that ends in m
  let foreground = before.foreground, background = before.background;
  const flags = new Set(before.flags);
  const parts = parameters.split(";").map((part) => part.split(":").map((text) => (text === "" ? 0 : Number(text))));
  for (let place = 0; place < parts.length; place += 1) {
    const [code, ...sub] = parts[place];
    if (code === 0) { foreground = background = null; flags.clear(); }
    else if (code === 4 && sub[0] === 0 && sub.length) flags.delete("underline");
    else if (SET[code]) flags.add(SET[code]);
    else if (UNSET[code]) UNSET[code].forEach((flag) => flags.delete(flag));
    else if (code >= 30 && code <= 37) foreground = code - 30;
    else if (code >= 90 && code <= 97) foreground = code - 82;
    else if (code >= 40 && code <= 47) background = code - 40;
    else if (code >= 100 && code <= 107) background = code - 92;
    else if (code === 39) foreground = null;
    else if (code === 49) background = null;
    else if (code === 38 || code === 48 || code === 58) {
      const [colour, used] = extended(sub.length ? sub : parts.slice(place + 1).map(([first]) => first), sub.length > 0);
      if (!sub.length) place += used;
      if (colour !== undefined && code === 38) foreground = colour;
      if (colour !== undefined && code === 48) background = colour;
    }
  }
  const kept = FLAGS.filter((flag) => flags.has(flag));
  if (foreground === null && background === null && !kept.length) return PLAIN;
  return Object.freeze({ foreground, background, flags: Object.freeze(kept) });
}

/** Return a colour of `5;n` or `2;r;g;b` and how many numbers it took; undefined where they name none. */
function extended(numbers, hasColons) {
  const isByte = (number) => Number.isInteger(number) && number >= 0 && number <= 255;
  if (numbers[0] === 5) return [isByte(numbers[1]) ? palette(numbers[1]) : undefined, 2];
  if (numbers[0] !== 2) return [undefined, numbers.length];
  const rgb = hasColons && numbers.length > 4 ? numbers.slice(2, 5) : numbers.slice(1, 4); // 38:2::r:g:b has one more
  return [rgb.length === 3 && rgb.every(isByte) ? rgb : undefined, 4];
}

function palette(number) {
  if (number < 16) return number;
  if (number >= 232) return Array(3).fill(8 + (number - 232) * 10);
  const level = (part) => (part ? 55 + part * 40 : 0);
  const cube = number - 16;
  return [level(Math.floor(cube / 36)), level(Math.floor(cube / 6) % 6), level(cube % 6)];
}
