// A stack of blocks, forward and back: what depth does to tokens, gradients.

import {
  dotProducts, fixedNumbers, fullMask, maskedSoftmax, product,
} from "./machinery/core.js";
import { defineLab } from "./machinery/controls.js";
import { decimal, element, write } from "./machinery/drawing.js";
import { depthChart, LEAST } from "./depth_chart.js";
import { sees, tasks } from "./layers_insight.js";

// Five tokens: the query of each, followed by its key. The first three are
// the book's numbers. The gradient that comes from above is fixed, too.
const TOKENS = [
  [1, 0, 1, 1], [0, 2, 2, 0], [2, 1, 0, 1], [-1, 1, -1, 0], [1, -1, 1, -2],
];
const UP = [
  [1, 0, 0, -1], [0, 1, -1, 0], [1, 1, 0, 0], [0, -1, 0, 1], [-1, 0, 1, 0],
];
const D_MODEL = 4;
const D_FF = 16;
const EPS = 1e-5;
const EVERYONE_SEEN = fullMask(TOKENS.length, TOKENS.length);

const transposed = (a) => a[0].map((_, c) => a.map((row) => row[c]));
const each = (a, f) => a.map((row, i) => row.map((x, c) => f(x, i, c)));
const plus = (a, b) => each(a, (x, i, c) => x + b[i][c]);
const mean = (row) => row.reduce((sum, x) => sum + x, 0) / row.length;
const lengthOf = (a) => Math.sqrt(a.flat().reduce((sum, x) => sum + x * x, 0));

// The six matrices of one block.
function matrices(block, draw) {
  const count = 4 * D_MODEL * D_MODEL + 2 * D_MODEL * D_FF;
  const start = 7919 * (block + 1) + 104729 * (draw + 5);
  const numbers = fixedNumbers(start, count);
  const matrix = (rows, columns) => Array.from({ length: rows }, () =>
    numbers.splice(0, columns).map((x) => x / Math.sqrt(rows)));
  const square = () => matrix(D_MODEL, D_MODEL);
  return {
    W_q: square(), W_k: square(), W_v: square(), W_o: square(),
    W_in: matrix(D_MODEL, D_FF), W_out: matrix(D_FF, D_MODEL),
  };
}

// Every step returns what it makes, and `back`: from the gradient at what it
// made to the gradient at what it was given.

function normalised(x) {
  const roots = x.map((row) => {
    const centre = mean(row);
    return Math.sqrt(mean(row.map((a) => (a - centre) ** 2)) + EPS);
  });
  const made = each(x, (a, i) => (a - mean(x[i])) / roots[i]);
  const back = (up) => up.map((row, i) => {
    const shared = mean(row);
    const along = mean(row.map((u, c) => u * made[i][c]));
    return row.map((u, c) => (u - shared - made[i][c] * along) / roots[i]);
  });
  return { made, back };
}

function attended(x, { W_q, W_k, W_v, W_o }, tell) {
  const [q, k, v] = [W_q, W_k, W_v].map((W) => product(x, W));
  const scale = 1 / Math.sqrt(D_MODEL);
  const weights = dotProducts(q, k).map((row, i) =>
    maskedSoftmax(row.map((score) => score * scale), EVERYONE_SEEN[i]));
  const back = (up) => {
    const mixed = dotProducts(up, W_o);
    const pull = dotProducts(mixed, v);
    const scores = weights.map((row, i) => {
      const whole = row.reduce((sum, p, j) => sum + p * pull[i][j], 0);
      return row.map((p, j) => p * (pull[i][j] - whole) * scale);
    });
    const atQueries = product(scores, k);
    tell(product(transposed(x), atQueries));
    const parts = [[atQueries, W_q],
      [product(transposed(scores), q), W_k],
      [product(transposed(weights), mixed), W_v]];
    return parts.map(([up_part, W]) => dotProducts(up_part, W)).reduce(plus);
  };
  return { made: product(product(weights, v), W_o), back };
}

function workedOn(x, { W_in, W_out }) {
  const inner = product(x, W_in);
  const made = product(each(inner, (a) => Math.max(a, 0)), W_out);
  const back = (up) => dotProducts(
    each(dotProducts(up, W_out), (u, i, c) => inner[i][c] > 0 ? u : 0), W_in);
  return { made, back };
}

// A sublayer, with or without the path past it and the norm.
function stepped(x, sublayer, { residual, norm }) {
  const before = norm === "pre" ? normalised(x) : { made: x, back: (u) => u };
  const { made, back } = sublayer(before.made);
  const sum = residual ? plus(x, made) : made;
  const after = norm === "post" ? normalised(sum)
    : { made: sum, back: (u) => u };
  return { made: after.made, back: (up) => {
    const atSum = after.back(up);
    const through = before.back(back(atSum));
    return residual ? plus(atSum, through) : through;
  } };
}

function distinctness(x) {
  const centre = transposed(x).map(mean);
  return lengthOf(each(x, (a, _, c) => a - centre[c])) / lengthOf(x);
}

function compute(values) {
  const { depth, feed_forward, draw } = values;
  const path = [TOKENS];
  const query = Array(depth).fill(0);
  const steps = [];
  for (let block = 0; block < depth; block += 1) {
    const W = matrices(block, draw);
    const tell = (gradient) => { query[block] = lengthOf(gradient); };
    const whole = [stepped(path.at(-1), (x) => attended(x, W, tell), values)];
    if (feed_forward)
      whole.push(stepped(whole[0].made, (x) => workedOn(x, W), values));
    path.push(whole.at(-1).made);
    steps.push(whole);
  }
  let up = UP;
  const gradients = [lengthOf(up)];
  for (const whole of steps.toReversed()) {
    for (const step of whole.toReversed()) up = step.back(up);
    gradients.unshift(lengthOf(up));
  }
  return {
    size: path.map((x) => lengthOf(x) / Math.sqrt(x.length * D_MODEL)),
    distinct: path.map(distinctness),
    path: gradients,
    query,
  };
}

const NAMES = {
  size: "size", distinct: "distinct", path: "at the input",
  query: "at its query matrix",
};

// 2.0 × 10⁻³, or what is no more than rounding.
function tenPower(x) {
  if (x <= LEAST) return "rounding";
  if (x >= 0.0995 && x < 999.5) return decimal(x, x < 9.95 ? 2 : 1);
  const digits = { "-": "⁻", ...Object.fromEntries(
    [..."⁰¹²³⁴⁵⁶⁷⁸⁹"].map((sign, digit) => [digit, sign])) };
  const [factor, exponent] = x.toExponential(1).split("e");
  const raised = [...exponent.replace("+", "")].map((c) => digits[c]).join("");
  return `${factor}·10${raised}`;
}

function build(lab) {
  lab.row(
    lab.range("depth", "Blocks"),
    lab.select("norm", "Norm", {
      none: "none", pre: "pre: before each sublayer",
      post: "post: after each sum" }),
    lab.checkbox("residual", "residual path"),
    lab.checkbox("feed_forward", "feed-forward network"),
    lab.range("draw", "Weights, draw"),
  );
  const tokens = depthChart(lab, "Tokens", ["size", "distinct"]);
  const gradients = depthChart(lab, "Gradients", ["path", "query"]);
  const table = blockTable();
  lab.root.append(
    element("div", { class: "lab-pair" }, tokens.frame, gradients.frame),
    element("div", { class: "lab-scroll", tabindex: 0, role: "region",
      "aria-label": "The numbers, block by block" }, table.frame));
  lab.hint(({ residual }) => residual
    ? "Move the norm, or switch the residual path off."
    : "Switch the residual path on, and move the norm.");
  return (values, now) => {
    for (const part of [tokens, gradients, table]) part.show(values, now);
    lab.say(`${values.depth} blocks. After the last, the tokens have size `
      + `${tenPower(now.size.at(-1))} and are `
      + `${tenPower(now.distinct.at(-1))} distinct. `
      + `Gradient at the first input ${tenPower(now.path[0])}, `
      + `at the first query matrix ${tenPower(now.query[0])}.`);
  };
}

function blockSentence(i, now) {
  const query = i < now.query.length
    ? `, at the next query matrix ${tenPower(now.query[i])}` : "";
  const passed = i === 1 ? "1 block" : `${i} blocks`;
  return `After ${passed}: size ${tenPower(now.size[i])}, distinct `
    + `${tenPower(now.distinct[i])}; gradient here ${tenPower(now.path[i])}`
    + `${query}.`;
}

// The numbers, block by block.
function blockTable() {
  const names = Object.keys(NAMES);
  const rows = Array.from({ length: 13 }, (_, i) => ({
    cells: names.map(() => element("td")), i }));
  const lines = rows.map(({ cells, i }) => element("tr", {},
    element("th", { scope: "row" }, String(i)), ...cells));
  const head = ["blocks", "size", "distinct", "gradient", "at W_q"];
  const frame = element("table", { class: "lab-blocks" },
    element("caption", {}, "After so many blocks"),
    element("thead", {}, element("tr", {}, ...head.map((word) =>
      element("th", { scope: "col" }, word)))),
    element("tbody", {}, ...lines));

  function show({ depth }, now) {
    rows.forEach(({ cells, i }) => {
      lines[i].hidden = i > depth;
      if (i > depth) return;
      names.forEach((name, place) => write(cells[place],
        i < now[name].length ? tenPower(now[name][i]) : "–"));
    });
  }
  return { frame, show };
}

export default defineLab({ compute, build, sees, tasks });
