// What will one layer of attention cost, and on which GPU would it fit?

import { defineLab } from "./machinery/controls.js";
import { drawn, element, set, write } from "./machinery/drawing.js";
import { namedNumbers } from "./machinery/pictures.js";
import { scaled } from "./machinery/units.js";
import { sees, tasks } from "./cost_insight.js";

const LENGTHS = Array.from({ length: 14 }, (_, e) => 2 ** (e + 7));
const WINDOW = 256; // keys to each side
const BLOCK = 64; // queries at a time
const BYTES = { float32: 4, bfloat16: 2 };
const MECHANISMS = {
  naive: "naive: two tables",
  fused: "fused kernel",
  window: `window of ${WINDOW}`,
  linear: "linear attention",
};
// What the makers state, in gigabytes of a thousand million bytes.
const GPUS = {
  "T4": 16, "RTX 4090": 24, "A100, H100": 80, "H200": 141, "B200": 192,
};

// Scores that the book's function computes for a window: whole blocks. Only
// the first and last blocks are cut short; those between are all alike.
const kept = new Map();

function windowPairs(n) {
  if (!kept.has(n)) {
    let pairs = 0;
    for (let start = 0; start < n; start += BLOCK)
      pairs += BLOCK * (Math.min(n, start + BLOCK + WINDOW)
        - Math.max(0, start - WINDOW));
    kept.set(n, pairs);
  }
  return kept.get(n);
}

function planOf({ n, d_model, n_heads, batch, dtype, mechanism }) {
  const word = BYTES[dtype];
  const numbers = batch * n * d_model;
  const rows = batch * n_heads * n;
  const pairs = {
    naive: () => n * n,
    fused: () => n * n,
    window: () => windowPairs(n),
    linear: () => (n * d_model) / n_heads,
  }[mechanism]();
  const extra = {
    naive: 2 * rows * n * word, // scores, and weights
    fused: 4 * rows, // one float32 a row: the log of its sum
    window: 0,
    linear: 4 * rows, // one float32 a row: what it is divided by
  }[mechanism];
  const plan = {
    projectionFlops: 8 * numbers * d_model,
    mechanismFlops: 4 * batch * d_model * pairs,
    parameterBytes: 4 * d_model * d_model * word,
    tokenBytes: 4 * numbers * word,
    mechanismBytes: numbers * word + extra,
  };
  plan.flops = plan.projectionFlops + plan.mechanismFlops;
  plan.bytes = plan.parameterBytes + plan.tokenBytes + plan.mechanismBytes;
  return plan;
}

function compute(values) {
  const plan = planOf(values);
  const fits = Object.fromEntries(Object.entries(GPUS)
    .map(([name, gb]) => [name, plan.bytes <= gb * 1e9]));
  return { ...plan, fits };
}

const grouped = (number) =>
  String(number).replace(/\B(?=(\d{3})+$)/g, ",");

function build(lab) {
  lab.row(
    lab.range("n", ["Tokens ", element("i", {}, "n")], { text: grouped }),
    lab.range("d_model", ["Features ", element("i", {}, "d"),
      element("sub", {}, "model")], { text: grouped }),
    lab.range("n_heads", "Heads"),
    lab.range("batch", "Batch"),
    lab.select("dtype", "Numbers", {
      float32: "float32: 4 bytes", bfloat16: "bfloat16: 2 bytes" }),
    lab.select("mechanism", "Mechanism", MECHANISMS),
  );
  const chart = byteChart(lab);
  const costs = namedNumbers("What it costs");
  const gpus = namedNumbers("Would it fit?");
  const pictures = element("div", { class: "lab-pair" }, chart.frame,
    element("div", {}, costs.frame, gpus.frame));
  lab.root.append(pictures);
  lab.hint(() => "Point at or tap a length in the chart, or move a slider.");
  return (values, result) => {
    chart.show(values, result);
    costs.show([
      ["projections", scaled(result.projectionFlops, "FLOP")],
      ["attention itself", scaled(result.mechanismFlops, "FLOP")],
      ["parameters", scaled(result.parameterBytes, "B")],
      ["x, queries, keys, values", scaled(result.tokenBytes, "B")],
      ["the mechanism", scaled(result.mechanismBytes, "B")],
      ["all bytes", scaled(result.bytes, "B")],
    ]);
    gpus.show(Object.entries(GPUS).map(([name, gb]) =>
      [`${name}: ${gb} GB`, result.fits[name] ? "yes" : "no"]));
    const fits = Object.keys(GPUS).filter((name) => result.fits[name]);
    lab.say(`${scaled(result.flops, "FLOP")}, ${scaled(result.bytes, "B")}; `
      + `fits on ${fits.join("; ") || "none of these GPUs"}.`);
  };
}

const WIDE = 260;
const HIGH = 200;
const [LOW, TOP] = [5, 18]; // powers of ten on the upright axis

// Bytes against n for each mechanism, with the GPUs as levels.
function byteChart(lab) {
  const x = (n) => (Math.log2(n) - 7) / 13 * (WIDE - 20) + 10;
  const y = (bytes) =>
    HIGH - (Math.log10(bytes) - LOW) / (TOP - LOW) * HIGH;
  const picture = drawn("svg", {
    viewBox: `0 0 ${WIDE} ${HIGH + 14}`, role: "img",
    "aria-label": "Bytes against tokens, one line a mechanism",
    style: `aspect-ratio: ${WIDE} / ${HIGH + 14}` });
  for (const gb of Object.values(GPUS)) picture.append(drawn("line", {
    x1: 0, x2: WIDE, y1: y(gb * 1e9), y2: y(gb * 1e9), class: "lab-axis" }));
  picture.append(drawn("text", { x: 2, y: y(200e9) - 2, class: "lab-tick" },
    "GPUs, 16 to 192 GB"));
  for (const power of [6, 9, 12]) picture.append(drawn("text", {
    x: WIDE - 2, y: y(10 ** power), class: "lab-tick", "text-anchor": "end" },
  { 6: "1 MB", 9: "1 GB", 12: "1 TB" }[power]));
  for (const n of [128, 2048, 16384, 1048576]) picture.append(drawn("text", {
    x: x(n), y: HIGH + 10, class: "lab-tick",
    "text-anchor": n === 128 ? "start" : n > 1e6 ? "end" : "middle" },
  grouped(n)));
  const lines = Object.fromEntries(Object.keys(MECHANISMS).map((name) =>
    [name, drawn("polyline", { fill: "none", stroke: "currentColor" })]));
  const mark = drawn("circle", { r: 4, fill: "currentColor" });
  const reaches = LENGTHS.map((n) => {
    const reach = drawn("rect", { x: x(n) - 9, y: 0, width: 18,
      height: HIGH, class: "lab-reach" });
    const bytes = (values, mechanism) =>
      scaled(planOf({ ...values, n, mechanism }).bytes, "B");
    lab.explain(reach, (values) => Object.keys(MECHANISMS)
      .map((mechanism) => `${mechanism} ${bytes(values, mechanism)}`)
      .join(", ") + ` at ${grouped(n)} tokens.`);
    return reach;
  });
  picture.append(...Object.values(lines), mark, ...reaches);
  const caption = element("figcaption", {},
    "Bytes by length: the thick line is the chosen mechanism");
  const frame = element("figure", { class: "lab-plane" }, caption, picture);

  function show(values, result) {
    for (const [mechanism, line] of Object.entries(lines))
      set(line, {
        "stroke-width": mechanism === values.mechanism ? 2.5 : 0.8,
        points: LENGTHS.map((n) => {
          const { bytes } = planOf({ ...values, n, mechanism });
          return `${x(n).toFixed(1)},${y(bytes).toFixed(1)}`;
        }).join(" ") });
    set(mark, { cx: x(values.n), cy: y(result.bytes) });
  }
  return { frame, show };
}

export default defineLab({ compute, build, sees, tasks });
