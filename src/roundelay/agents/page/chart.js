// The residuals over hops, on a logarithmic scale.

import { drawn, element, refill, say } from "./parts.js";
import { chart as chartInWords, power, small, whole } from "./words.js";

const SERIES = [
  ["unrest", "unrest: how far this site is from balance with the token"],
  ["primal", "primal: how far it is from the token"],
  ["dual", "dual: how far its own part still moves"],
];
const LEFT = 46, RIGHT = 14, TOP = 10, BOTTOM = 38;
const POINTS_OF_A_STEP = 56; // between two numbers on the axis of hops

// The step between numbers on an axis: 1, 2 or 5 times a power of ten, and at least 1.
const niceStep = (span, most) => {
  const rough = Math.max(span / Math.max(most, 1), 1);
  const base = 10 ** Math.floor(Math.log10(rough));
  return [1, 2, 5, 10].map((factor) => factor * base).find((step) => step >= rough);
};

const decades = (values) => {
  const low = Math.floor(Math.log10(Math.min(...values)) + 1e-9);
  const high = Math.ceil(Math.log10(Math.max(...values)) - 1e-9);
  return high > low ? [low, high] : [low - 1, low + 1];
};

const build = (rows, tolerance, width) => {
  const height = Math.round(Math.min(Math.max(0.55 * width, 220), 330));
  const values = rows.flatMap((row) => [row.unrest, row.primal, row.dual]).filter((value) => value > 0);
  if (tolerance) values.push(tolerance);
  const [low, high] = values.length ? decades(values) : [-1, 1];
  const [first, last] = rows.length ? [rows[0].hop, Math.max(rows.at(-1).hop, rows[0].hop + 1)] : [0, 1];
  const x = (hop) => LEFT + ((width - LEFT - RIGHT) * (hop - first)) / (last - first);
  const y = (value) => TOP + ((height - TOP - BOTTOM) * (high - Math.log10(value))) / (high - low);
  const at = (number) => number.toFixed(1);
  const parts = [];

  const decadeStep = niceStep(high - low, 6);
  for (let exponent = Math.ceil(low / decadeStep) * decadeStep; exponent <= high; exponent += decadeStep) {
    const level = at(y(10 ** exponent));
    parts.push(drawn("line", { x1: LEFT, x2: width - RIGHT, y1: level, y2: level, class: "grid" }));
    parts.push(drawn("text", { x: LEFT - 8, y: Number(level) + 4, "text-anchor": "end" }, power(exponent)));
  }
  const bottom = height - BOTTOM;
  const hopStep = niceStep(last - first, Math.floor((width - LEFT - RIGHT) / POINTS_OF_A_STEP));
  for (let hop = Math.ceil(first / hopStep) * hopStep; rows.length && hop <= last; hop += hopStep) {
    parts.push(drawn("line", { x1: at(x(hop)), x2: at(x(hop)), y1: bottom, y2: bottom + 4, class: "axis" }));
    parts.push(drawn("text", { x: at(x(hop)), y: bottom + 17, "text-anchor": "middle" }, whole(hop)));
  }
  parts.push(drawn("line", { x1: LEFT, x2: width - RIGHT, y1: bottom, y2: bottom, class: "axis" }));
  parts.push(drawn("text", { x: width - RIGHT, y: height - 4, "text-anchor": "end" }, "hop"));

  if (tolerance) {
    const level = at(y(tolerance));
    const above = Number(level) - TOP > 18 ? -6 : 15;
    parts.push(drawn("line", { x1: LEFT, x2: width - RIGHT, y1: level, y2: level, class: "tolerance", id: "tolerance" }));
    parts.push(drawn("text", { x: LEFT + 6, y: Number(level) + above, class: "tolerance-name" }, `tolerance ${small(tolerance)}`));
  }
  for (const [name] of SERIES) {
    let path = "", pen = "M", end = null;
    for (const row of rows) {
      if (row[name] > 0) {
        end = [at(x(row.hop)), at(y(row[name]))];
        path += `${pen}${end.join(" ")}`;
        pen = "L";
      } else pen = "M"; // not known, or 0, which has no place on this scale
    }
    if (!end) continue;
    parts.push(drawn("path", { d: path, class: `series ${name}`, id: `series-${name}` }));
    parts.push(drawn("circle", { cx: end[0], cy: end[1], r: 3.5, class: `mark ${name}` }));
  }
  return [height, parts];
};

export class Chart {
  constructor(node, legend, caption) {
    this.node = node;
    this.caption = caption;
    this.drawing = drawn("svg", { role: "img", "aria-label": "" });
    node.append(this.drawing);
    for (const [name, words] of SERIES) {
      const sample = drawn("line", { x1: 0, x2: 26, y1: 5, y2: 5, class: `series ${name}` });
      legend.append(element("li", {}, drawn("svg", { width: 26, height: 10, "aria-hidden": "true" }, sample), words));
    }
    // Drawn for the width that there is, so that its letters are as large as all others.
    new ResizeObserver(() => this.draw()).observe(node);
  }

  show(status) {
    this.status = status;
    const words = chartInWords(status);
    say(this.caption, words);
    const label = `Residuals over hops on a logarithmic scale. ${words}`;
    if (this.drawing.getAttribute("aria-label") !== label) this.drawing.setAttribute("aria-label", label);
    this.draw();
  }

  draw() {
    const width = Math.floor(this.node.clientWidth);
    if (!this.status || width <= LEFT + RIGHT) return;
    const { residuals, tolerance, first_hop: firstHop } = this.status;
    const last = residuals.at(-1);
    refill(this.drawing, [width, tolerance, residuals.length, last], () => {
      const rows = residuals.map((row) => ({ ...row, hop: row.hop - firstHop }));
      const [height, parts] = build(rows, tolerance, width);
      this.drawing.setAttribute("viewBox", `0 0 ${width} ${height}`);
      return parts;
    });
  }
}
