// One query on its way along the tiles of keys: what it has collected, and
// how that shrinks when a larger score arrives.

import { sees, tasks } from "./flash_insight.js";
import { defineLab } from "./machinery/controls.js";
import { decimal, drawn, element, set, write } from "./machinery/drawing.js";

const N_KEYS = 8;
const MIXED = [1, -0.5, 2, 0.5, 1.5, 3, -1, 0];
const SCORES = {
  mixed: MIXED,
  "loud last": [1, 0.5, 0, 0.5, 1, 0, 0.5, 6],
  "loud first": [6, 0.5, 0, 0.5, 1, 0, 0.5, 1],
  alike: Array(N_KEYS).fill(0),
  "60,000 less": MIXED.map((score) => score - 60000),
};
const VALUES = [
  [1, 0], [0, 2], [3, 1], [-1, 1], [2, 2], [0, -1], [1, 3], [-2, 0],
];

// Reads tile after tile, as the page's second equation has it. The lowest
// number there is to start with: from -∞, a hidden tile would give NaN.
function compute({ scores, tiles, read, position }) {
  const all = SCORES[scores];
  const size = N_KEYS / tiles;
  let [m, total, summed, shrink] = [-Number.MAX_VALUE, 0, [0, 0], null];
  let seen = 0;
  for (let tile = 0; tile < read; tile += 1) {
    const keys = all.map((_, j) => j).filter((j) =>
      Math.floor(j / size) === tile && j <= position);
    const larger = Math.max(m, ...keys.map((j) => all[j]));
    const factor = Math.exp(m - larger);
    total *= factor;
    summed = summed.map((x) => x * factor);
    for (const j of keys) {
      const power = Math.exp(all[j] - larger);
      total += power;
      summed = summed.map((x, axis) => x + power * VALUES[j][axis]);
    }
    shrink = seen > 0 ? factor : null;
    seen += keys.length;
    m = larger;
  }
  if (seen === 0) m = null;
  return {
    m, total, summed, shrink,
    output: summed.map((x) => (seen > 0 ? x / total : 0)),
    powers: all.map((score, j) => (j < seen ? Math.exp(score - m) : 0)),
  };
}

const WIDE = 320;
const HIGH = 110;
const STEP = WIDE / N_KEYS;

function build(lab) {
  lab.row(
    lab.select("scores", "Scores"),
    lab.range("tiles", "Tiles"),
    lab.range("read", "Tiles read"),
    lab.range("position", "Query at key", { text: (i) => String(i + 1) }),
  );
  const picture = drawn("svg", {
    viewBox: `0 0 ${WIDE} ${HIGH + 18}`, role: "img",
    "aria-label": "How much each key counts now",
    style: `aspect-ratio: ${WIDE} / ${HIGH + 18}` });
  const edges = Array.from({ length: N_KEYS + 1 }, (_, j) =>
    drawn("line", { x1: j * STEP, x2: j * STEP, y1: 0, y2: HIGH }));
  const bars = Array.from({ length: N_KEYS }, (_, j) => drawn("rect", {
    x: (j + 0.15) * STEP, width: 0.7 * STEP, class: "lab-column" }));
  const names = bars.map((_, j) => drawn("text", {
    x: (j + 0.5) * STEP, y: HIGH + 13, class: "lab-tick",
    "text-anchor": "middle" }, String(j + 1)));
  const reaches = bars.map((_, j) => {
    const reach = drawn("rect", {
      x: j * STEP, y: 0, width: STEP, height: HIGH, class: "lab-reach" });
    lab.explain(reach, (values, now) => keySentence(j, values, now));
    return reach;
  });
  picture.append(...edges, ...bars, ...names, ...reaches, drawn("line", {
    x1: 0, x2: WIDE, y1: HIGH, y2: HIGH, class: "lab-axis" }));
  const caption = element("figcaption");
  const table = numberTable();
  lab.root.append(element("div", { class: "lab-pair" },
    element("figure", { class: "lab-plane" }, caption, picture),
    element("div", { class: "lab-scroll" }, table.frame)));
  lab.hint(() => "Move “Tiles read”, and point at or tap a key.");

  return (values, now) => {
    const size = N_KEYS / values.tiles;
    write(caption, `Eight keys in ${values.tiles} `
      + `${values.tiles === 1 ? "tile" : "tiles"}, ${values.read} read`);
    edges.forEach((edge, j) => set(edge, {
      class: j % size === 0 ? "lab-axis" : "lab-grid" }));
    bars.forEach((bar, j) => set(bar, {
      y: (HIGH * (1 - now.powers[j])).toFixed(2),
      height: (HIGH * now.powers[j]).toFixed(2) }));
    table.show(now);
    lab.say(sees(values, now));
  };
}

// What a key's bar says.
function keySentence(j, { scores, tiles, read, position }, now) {
  const score = `Key ${j + 1}: score ${decimal(SCORES[scores][j], 1)}, `;
  if (j > position) return `${score}hidden: it comes after the query.`;
  if (Math.floor(j * tiles / N_KEYS) >= read) return `${score}not read yet.`;
  return `${score}counts ${decimal(now.powers[j])}.`;
}

// The three numbers that are kept, and the answer so far.
function numberTable() {
  const rows = {
    m: "m, the largest score so far",
    total: "ℓ, the total",
    summed: "o, the sum of values",
    output: "o / ℓ, the output so far",
  };
  const cells = Object.fromEntries(
    Object.keys(rows).map((name) => [name, element("td")]));
  const frame = element("table", {},
    element("caption", {}, "What is remembered"),
    element("tbody", {}, ...Object.entries(rows).map(([name, words]) =>
      element("tr", {}, element("th", { scope: "row" }, words),
        cells[name]))));
  const pair = ([x, y]) => `(${decimal(x)}, ${decimal(y)})`;

  function show(now) {
    write(cells.m, now.m === null ? "−∞" : decimal(now.m, 1));
    write(cells.total, decimal(now.total));
    write(cells.summed, pair(now.summed));
    write(cells.output, now.m === null ? "none yet" : pair(now.output));
  }
  return { frame, show };
}

export default defineLab({ compute, build, sees, tasks });
