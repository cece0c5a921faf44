// One query looks at the keys, and averages the values: on two planes.

import {
  attentionSteps, causalMask, fixedNumbers, fullMask, paddingMask, windowMask,
} from "./machinery/core.js";
import { defineLab } from "./machinery/controls.js";
import {
  decimal, drawn, element, set, share, write,
} from "./machinery/drawing.js";
import {
  HeatMap, Plane, hull, makeHandle, mark, sayHandle,
} from "./machinery/pictures.js";
import { sees, tasks } from "./dot_product_insight.js";

const WORDS = "the cat sat on the mat because it was soft".split(" ");

// One value a token, on the plane; the first three are the book's numbers.
const VALUES = [
  [1, 0], [0, 2], [3, 1], [-1, -1], [1, -2], [-2, 1], [2, -1], [-1, 2],
  [-3, 0], [2, 2],
];

const MASKS = {
  none: (n) => fullMask(n, n),
  causal: (n) => causalMask(n, n),
  padding: (n, { length }) => paddingMask(n, n, length),
  window: (n, { window }) => windowMask(n, n, window),
};

// Features beyond the plane's two are fixed.
const KIND = { q: 1, k: 2 };

export function features(kind, token, [x, y], d_k) {
  const start = 7919 * (token + 1) + 104729 * KIND[kind];
  return [x, y, ...fixedNumbers(start, d_k - 2)];
}

function compute(values) {
  const { n, d_k, mask } = values;
  const vectors = (kind) => values[kind].slice(0, n).map((point, token) =>
    features(kind, token, point, d_k));
  const seen = MASKS[mask](n, values);
  const steps = attentionSteps(
    vectors("q"), vectors("k"), VALUES.slice(0, n), seen);
  return { ...steps, mask: seen };
}

function build(lab) {
  const chooser = lab.words("query", "Which word asks?", WORDS, ({ n }) => n);
  lab.row(
    lab.range("n", ["Sequence length ", element("i", {}, "n")]),
    lab.range("d_k", ["Features ", element("i", {}, "d"),
      element("sub", {}, "k")]),
    lab.select("mask", "Mask", {
      none: "none", causal: "causal: no later word",
      padding: "padding: the last words are filling",
      window: "window: near words only",
    }),
    lab.range("length", "Real words",
      { when: ({ mask }) => mask === "padding" }),
    lab.range("window", "Window, itself counted",
      { when: ({ mask }) => mask === "window" }),
  );
  lab.root.append(chooser.choice);
  const looks = lookPlane(lab);
  const mixes = valuePlane(lab);
  const table = stepTable(lab);
  const map = new HeatMap(lab, "Weights of all queries", WORDS);
  lab.root.append(
    element("div", { class: "lab-pair" }, looks.frame, mixes.frame),
    element("div", { class: "lab-pair" }, table.frame,
      element("div", { class: "lab-scroll" }, map.table)));
  lab.hint(() => "Drag the query or a key, or move it with the arrow keys.");
  return (values, steps) => {
    const seen = steps.mask[values.query];
    chooser.labels.forEach((label, j) =>
      label.classList.toggle("lab-hidden", j < values.n && !seen[j]));
    for (const part of [looks, mixes, table]) part.show(values, steps);
    map.show(steps.weights, steps.mask, values.query);
    lab.say(summary(values, steps));
  };
}

// "sat: score 1.000, weight 0.074", for the key j and the chosen query.
function keySentence({ query }, { scores, weights, mask }, j) {
  if (!mask[query][j]) return `${WORDS[j]}: hidden by the mask`;
  return `${WORDS[j]}: score ${decimal(scores[query][j])}, `
    + `weight ${decimal(weights[query][j])}`;
}

function summary(values, steps) {
  const { n, query } = values;
  const keys = Array.from({ length: n }, (_, j) =>
    keySentence(values, steps, j));
  return `${WORDS[query]} asks. ${keys.join("; ")}. `
    + `Output ${pair(steps.output[query])}.`;
}

function pair([x, y], digits = 3) {
  return `(${decimal(x, digits)}, ${decimal(y, digits)})`;
}

// The left plane: the query and the keys, which can be dragged.
function lookPlane(lab) {
  const plane = new Plane("Query and keys", lab.rules.q);
  const values = () => lab.values();
  const replaced = (name, i, point) =>
    lab.set({ [name]: values()[name].with(i, point) });
  const arrow = plane.line([0, 0], [0, 0], "lab-query-line");
  const keys = WORDS.map((word, j) => mark("lab-key", word,
    drawn("circle", { r: 12, class: "lab-reach" }),
    drawn("circle", { r: 5 })));
  const query = mark("lab-query", "",
    drawn("circle", { r: 12, class: "lab-reach" }),
    drawn("rect", { x: -5, y: -5, width: 10, height: 10 }));
  keys.forEach((key, j) => {
    makeHandle(key, plane, lab.rules.k, `Key of ${WORDS[j]}`, {
      where: () => values().k[j], moved: (to) => replaced("k", j, to) });
    lab.explain(key, (now, steps) => `Key of ${keySentence(now, steps, j)}.`);
  });
  makeHandle(query, plane, lab.rules.q, "Query", {
    where: () => values().q[values().query],
    moved: (to) => replaced("q", values().query, to) });
  lab.explain(query, summary);
  const note = element("p", { class: "lab-note" });
  plane.frame.append(note);
  plane.picture.append(arrow, ...keys, query);

  function show(now, steps) {
    const q = now.q[now.query];
    plane.move(arrow, [0, 0], q);
    const word = WORDS[now.query];
    write(query.querySelector("text"), `${word} asks`);
    plane.shift(query, q);
    set(query, { "aria-label": `Query of ${word}` });
    sayHandle(query, q, `output ${pair(steps.output[now.query])}`);
    keys.forEach((key, j) => {
      key.classList.toggle("lab-absent", j >= now.n);
      set(key, { tabindex: j < now.n ? 0 : -1 });
      if (j >= now.n) return;
      key.classList.toggle("lab-hidden", !steps.mask[now.query][j]);
      plane.shift(key, now.k[j]);
      sayHandle(key, now.k[j], keySentence(now, steps, j));
    });
    plane.letter([query, ...keys], q);
    write(note, now.d_k === 2 ? ""
      : `The plane shows the first 2 of ${now.d_k} features; `
        + `the other ${now.d_k - 2} are fixed numbers.`);
  }
  return { frame: plane.frame, show };
}

// The right plane: the values, as large as their weights, and their average.
function valuePlane(lab) {
  const plane = new Plane("Values and output", lab.rules.q);
  const area = drawn("polygon", { class: "lab-hull" });
  const values = WORDS.map((word) => mark("lab-value-mark", word,
    drawn("circle")));
  const output = mark("lab-output", "output",
    drawn("path", { d: "M0 -7 L7 0 L0 7 L-7 0 Z" }));
  values.forEach((value, j) => lab.explain(value, (now, steps) =>
    `Value of ${keySentence(now, steps, j)}, `
    + `at ${pair(VALUES[j], 0)}.`));
  lab.explain(output, summary);
  plane.picture.append(area, ...values, output);

  function show({ n, query }, { weights, mask, output: outputs }) {
    values.forEach((value, j) => {
      value.classList.toggle("lab-absent", j >= n);
      if (j >= n) return;
      value.classList.toggle("lab-hidden", !mask[query][j]);
      const r = 2.5 + 14 * Math.sqrt(weights[query][j]);
      plane.shift(value, VALUES[j], r);
      set(value.querySelector("circle"), { r });
    });
    const seen = VALUES.slice(0, n).filter((_, j) => mask[query][j]);
    set(area, { points: hull(seen).map((v) => plane.place(v)).join(" ") });
    plane.shift(output, outputs[query], 7);
    plane.letter([output, ...values]);
  }
  return { frame: plane.frame, show };
}

// The numbers, step by step, for the chosen query.
function stepTable(lab) {
  const caption = element("caption");
  const divided = element("th", { scope: "col" });
  const output = element("td", { colspan: 3 });
  const rows = WORDS.map((word) => ({
    score: element("td"), scaled: element("td"),
    weight: element("td", { class: "lab-bar" }), word,
  }));
  const lines = rows.map(({ word, score, scaled, weight }) =>
    element("tr", {}, element("th", { scope: "row" }, word),
      score, scaled, weight));
  const frame = element("div", { class: "lab-scroll" },
    element("table", { class: "lab-steps" }, caption,
      element("thead", {}, element("tr", {},
        element("th", { scope: "col" }, "key"),
        element("th", { scope: "col" }, "score"), divided,
        element("th", { scope: "col" }, "weight"))),
      element("tbody", {}, ...lines),
      element("tfoot", {}, element("tr", {},
        element("th", { scope: "row" }, "output"), output))));

  function show({ n, d_k, query }, steps) {
    write(caption, `From scores to weights, for ${WORDS[query]}`);
    write(divided, `÷ √${d_k}`);
    rows.forEach(({ score, scaled, weight }, j) => {
      lines[j].hidden = j >= n;
      if (j >= n) return;
      const seen = steps.mask[query][j];
      lines[j].classList.toggle("lab-hidden", !seen);
      write(score, decimal(steps.scores[query][j]));
      write(scaled, seen ? decimal(steps.scaled[query][j]) : "−∞");
      write(weight, decimal(steps.weights[query][j]));
      share(weight, steps.weights[query][j]);
    });
    write(output, pair(steps.output[query]));
  }
  return { frame, show };
}

export default defineLab({ compute, build, sees, tasks });
