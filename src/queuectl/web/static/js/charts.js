// Charts: stacked bars over time, drawn from the table behind them, which stays for screen readers and for print.
//
//   <figure class="chart" id="throughput" data-chart="bars" data-unit="runs / min">
//     <div class="plot" data-keep></div>
//     <details><summary>Table</summary><table class="list" id="throughput-table" data-live>
//       <thead><tr><th scope="col">Time</th><th scope="col" class="num" data-series="completed">completed</th>...
//       <tbody><tr data-key="1790000000000"><th scope="row">12:05</th><td class="num">3</td>...
//
// A column with data-series is a series; its value is the colour: a state. A cell's number is in data-value, or its text.
const SVG = "http://www.w3.org/2000/svg";
const HEIGHT = 190;
const SPACE = { top: 10, right: 4, bottom: 22, left: 44 };
const GRID_LINES = 4;
const LETTER_PX = 6.5; // a little more than one takes
const BETWEEN_PX = 36;
const charts = new Map();

class BarChart {
  constructor(figure) {
    this.figure = figure;
    this.plot = figure.querySelector(".plot");
    this.hidden = new Set();
    this.place = -1;
    this.legend = element("div", "legend");
    this.canvas = element("div", "canvas");
    this.canvas.tabIndex = 0;
    this.canvas.setAttribute("role", "group");
    this.canvas.setAttribute("aria-roledescription", "chart");
    this.tip = element("div", "tip");
    this.tip.setAttribute("role", "status");
    this.tip.hidden = true;
    this.plot.replaceChildren(this.legend, this.canvas, this.tip);
    this.listen();
    this.draw();
    new ResizeObserver(() => this.draw()).observe(this.plot);
  }

  listen() {
    this.canvas.addEventListener("pointermove", (event) => this.point(this.placeAt(event)));
    this.canvas.addEventListener("pointerleave", () => this.canvas.matches(":focus-visible") || this.point(-1));
    this.canvas.addEventListener("focus", () => {
      if (this.canvas.matches(":focus-visible")) this.point(this.place < 0 ? this.rows.length - 1 : this.place);
    });
    this.canvas.addEventListener("blur", () => this.point(-1));
    this.canvas.addEventListener("keydown", (event) => {
      const last = this.rows.length - 1;
      const to = { ArrowLeft: this.place - 1, ArrowRight: this.place + 1, Home: 0, End: last }[event.key];
      if (to === undefined && event.key !== "Escape") return;
      event.preventDefault();
      event.stopPropagation();
      this.point(to === undefined ? -1 : Math.min(last, Math.max(0, to)));
    });
  }

  read() {
    const heads = [...this.figure.querySelectorAll("thead th")];
    this.series = heads
      .map((head, column) => ({ name: head.dataset.series, words: head.textContent.trim(), column }))
      .filter(({ name }) => name);
    this.rows = [...this.figure.querySelectorAll("tbody tr")].map((row) => ({
      words: row.cells[0].dataset.words ?? row.cells[0].textContent.trim(),
      label: row.cells[0].textContent.trim(),
      values: this.series.map(({ column }) => number(row.cells[column])),
    }));
  }

  draw() {
    this.read();
    const width = Math.max(160, Math.floor(this.plot.clientWidth));
    const signature = JSON.stringify([width, this.rows, [...this.hidden]]);
    if (signature === this.signature) return;
    this.signature = signature;
    this.width = width;
    this.drawLegend();
    const drawing = svg("svg", { width, height: HEIGHT, viewBox: `0 0 ${width} ${HEIGHT}`, "aria-hidden": "true" });
    const shown = this.series.map(({ name }) => !this.hidden.has(name));
    const sums = this.rows.map(({ values }) => values.reduce((sum, value, at) => sum + (shown[at] ? value : 0), 0));
    const step = niceStep(Math.max(1, ...sums) / GRID_LINES);
    this.top = Math.max(step, Math.ceil(Math.max(...sums, 0) / step) * step);
    this.drawAxes(drawing, step);
    this.drawBars(drawing, shown);
    this.cursor = svg("rect", { class: "cursor", y: SPACE.top, width: 0, height: HEIGHT - SPACE.top - SPACE.bottom });
    drawing.append(this.cursor);
    this.canvas.replaceChildren(drawing);
    this.canvas.setAttribute("aria-label", `${this.figure.dataset.label}. Arrow keys read it bar by bar.`);
    if (this.place >= 0) this.point(Math.min(this.place, this.rows.length - 1));
  }

  drawLegend() {
    const names = this.series.map(({ name }) => name).join();
    if (this.legend.dataset.names !== names) {
      this.legend.dataset.names = names;
      const unit = element("span", "unit");
      unit.textContent = this.figure.dataset.unit ?? "";
      this.legend.replaceChildren(...this.series.map((series) => this.legendButton(series)), unit);
    }
    for (const button of this.legend.querySelectorAll("button")) {
      button.setAttribute("aria-pressed", String(!this.hidden.has(button.dataset.series)));
    }
  }

  legendButton({ name, words }) {
    const button = element("button", `state-${name}`);
    button.type = "button";
    button.dataset.series = name;
    const swatch = svg("svg", { width: 10, height: 10, "aria-hidden": "true" });
    swatch.append(svg("rect", { class: "series", width: 10, height: 10, rx: 2 }));
    button.append(swatch, words);
    button.addEventListener("click", () => {
      if (!this.hidden.delete(name)) this.hidden.add(name);
      this.draw();
    });
    return button;
  }

  drawAxes(drawing, step) {
    for (let value = 0; value <= this.top + step / 2; value += step) {
      const y = Math.round(this.y(value)) + 0.5;
      drawing.append(svg("line", { class: "grid-line", x1: SPACE.left, x2: this.width - SPACE.right, y1: y, y2: y }));
      drawing.append(text(SPACE.left - 6, y + 4, compact(value), "end"));
    }
    this.drawTimes(drawing);
  }

  /** Write below the bars when they are, from the last one back, as many as stand apart. */
  drawTimes(drawing) {
    let end = this.width + BETWEEN_PX;
    for (let place = this.rows.length - 1; place >= 0; place -= 1) {
      const { label } = this.rows[place];
      const width = label.length * LETTER_PX;
      const begin = Math.min(this.width - width, this.x(place) + this.step / 2 - width / 2);
      if (begin < 0 || begin + width + BETWEEN_PX > end) continue;
      drawing.append(text(begin + width / 2, HEIGHT - 6, label, "middle", "tick time"));
      end = begin;
    }
  }

  drawBars(drawing, shown) {
    const gap = this.step > 5 ? 1.5 : this.step > 3 ? 0.75 : 0;
    this.series.forEach(({ name }, at) => {
      if (!shown[at]) return;
      const group = svg("g", { class: `state-${name}` });
      this.rows.forEach(({ values }, place) => {
        if (!values[at]) return;
        const below = values.slice(0, at).reduce((sum, value, other) => sum + (shown[other] ? value : 0), 0);
        const y = this.y(below + values[at]);
        const height = Math.max(1, this.y(below) - y);
        group.append(
          svg("rect", { class: "series", x: this.x(place), y, width: Math.max(1, this.step - gap), height }),
        );
      });
      drawing.append(group);
    });
  }

  get step() {
    return (this.width - SPACE.left - SPACE.right) / Math.max(1, this.rows.length);
  }

  x(place) {
    return SPACE.left + place * this.step;
  }

  y(value) {
    return HEIGHT - SPACE.bottom - (value / this.top) * (HEIGHT - SPACE.top - SPACE.bottom);
  }

  placeAt(event) {
    const x = event.clientX - this.canvas.getBoundingClientRect().left;
    const place = Math.floor((x - SPACE.left) / this.step);
    return place >= 0 && place < this.rows.length ? place : -1;
  }

  point(place) {
    this.place = place;
    this.tip.hidden = place < 0 || !this.rows.length;
    this.cursor?.setAttribute("width", this.tip.hidden ? 0 : this.step);
    if (this.tip.hidden) return;
    const { words, values } = this.rows[place];
    this.cursor.setAttribute("x", this.x(place));
    const title = element("strong");
    title.textContent = words;
    const lines = this.series.map(({ name, words: called }, at) => {
      const line = element("span", `state-${name}`);
      const swatch = svg("svg", { width: 8, height: 8, "aria-hidden": "true" });
      swatch.append(svg("rect", { class: "series", width: 8, height: 8, rx: 2 }));
      line.append(swatch, `${called} ${values[at].toLocaleString("en")}`);
      return line;
    });
    this.tip.replaceChildren(title, ...lines);
    const middle = this.x(place) + this.step / 2;
    const room = this.width - this.tip.offsetWidth - 4;
    this.tip.style.left = `${Math.max(0, Math.min(room, middle - this.tip.offsetWidth / 2))}px`;
  }
}

function niceStep(rough) {
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].find((each) => each * power >= rough) * power;
  return Math.max(1, step);
}

function compact(value) {
  return new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 }).format(value);
}

function number(cell) {
  return Number(cell?.dataset.value ?? cell?.textContent.replaceAll(",", "")) || 0;
}

function element(name, className = "") {
  const made = document.createElement(name);
  if (className) made.className = className;
  return made;
}

function svg(name, attributes = {}) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

function text(x, y, words, anchor, className = "tick") {
  const made = svg("text", { x, y, "text-anchor": anchor, class: className });
  made.textContent = words;
  return made;
}

export function drawCharts() {
  for (const figure of document.querySelectorAll('figure[data-chart="bars"]')) {
    const chart = charts.get(figure);
    if (chart) chart.draw();
    else charts.set(figure, new BarChart(figure));
  }
}

drawCharts();
document.addEventListener("live:patched", drawCharts);
