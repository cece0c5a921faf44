// An encoder block and a decoder block: what they cost, and who hears whom.

import {
  attentionSteps, causalMask, fixedNumbers, fullMask, paddingMask, product,
} from "./machinery/core.js";
import { defineLab } from "./machinery/controls.js";
import { decimal, element, set, share, write } from "./machinery/drawing.js";
import { namedNumbers } from "./machinery/pictures.js";
import { sees, tasks } from "./blocks_insight.js";

const SOURCE = ["the", "cat", "sat", "on", "it"];
const TARGET = ["<s>", "die", "Katze", "saß", "da"];
const WIDER = 4; // d_ff over d_model
const HEARD = 1e-9; // what moves less has not heard
const EPS = 1e-5;

const sum = (a, b) => a.map((row, i) => row.map((x, c) => x + b[i][c]));

// The matrices of one block, in the order in which they are used; they never
// change, so each set is made once.
const kept = new Map();

function matricesOf(place, { d_model: d, feed_forward, cross }) {
  const asks = place === 2 && cross;
  const key = [place, d, feed_forward, asks].join();
  if (!kept.has(key)) {
    const names = [..."qkvo"].map((name) => [name, d, d]);
    if (asks) names.push(...[..."QKVO"].map((name) => [name, d, d]));
    if (feed_forward) names.push(["up", d, WIDER * d], ["down", WIDER * d, d]);
    const numbers = fixedNumbers(7919 * place + 104729 * 3, 16 * 12 * 12);
    kept.set(key, Object.fromEntries(names.map(([name, rows, columns]) =>
      [name, Array.from({ length: rows }, () => numbers.splice(0, columns)
        .map((x) => x / Math.sqrt(rows)))])));
  }
  return kept.get(key);
}

function normed(x) {
  return x.map((row) => {
    const centre = row.reduce((a, b) => a + b, 0) / row.length;
    const variance = row.reduce((a, b) => a + (b - centre) ** 2, 0)
      / row.length;
    return row.map((a) => (a - centre) / Math.sqrt(variance + EPS));
  });
}

// A sublayer with its norm, and the path past it.
function around(x, sublayer, norm) {
  if (norm === "pre") return sum(x, sublayer(normed(x)));
  const added = sum(x, sublayer(x));
  return norm === "post" ? normed(added) : added;
}

// Several heads, each with its own columns, put together and projected.
function heads(x, context, [W_q, W_k, W_v, W_o], n_heads, mask) {
  const [q, k, v] = [product(x, W_q), product(context, W_k),
    product(context, W_v)];
  const d = W_q.length / n_heads;
  const mine = (rows, h) => rows.map((row) => row.slice(h * d, (h + 1) * d));
  const told = Array.from({ length: n_heads }, (_, h) =>
    attentionSteps(mine(q, h), mine(k, h), mine(v, h), mask).output);
  return product(x.map((_, i) => told.flatMap((head) => head[i])), W_o);
}

function worked(x, { up, down }) {
  if (!up) return x.map((row) => row.map(() => 0));
  const wide = product(x, up).map((row) => row.map((a) => Math.max(a, 0)));
  return product(wide, down);
}

function encoded(source, values) {
  const { m, padded, n_heads, norm, mask_source } = values;
  const W = matricesOf(1, values);
  const mask = mask_source ? paddingMask(m, m, m - padded) : fullMask(m, m);
  const h = around(source, (x) =>
    heads(x, x, [W.q, W.k, W.v, W.o], n_heads, mask), norm);
  return around(h, (x) => worked(x, W), norm);
}

function decoded(target, memory, values) {
  const { m, padded, n, n_heads, norm, causal, cross, mask_memory } = values;
  const W = matricesOf(2, values);
  const past = causal ? causalMask(n, n) : fullMask(n, n);
  let h = around(target, (x) =>
    heads(x, x, [W.q, W.k, W.v, W.o], n_heads, past), norm);
  const real = mask_memory ? paddingMask(n, m, m - padded) : fullMask(n, m);
  if (cross) h = around(h, (x) =>
    heads(x, memory, [W.Q, W.K, W.V, W.O], n_heads, real), norm);
  return around(h, (x) => worked(x, W), norm);
}

function rowsOf(start, count, d) {
  const numbers = fixedNumbers(start, count * d);
  return Array.from({ length: count }, () => numbers.splice(0, d));
}

// The same tokens, the first feature of one of them one more.
const nudged = (rows, place) => rows.map((row, i) =>
  i === place ? [row[0] + 1, ...row.slice(1)] : row);

function compute(values) {
  const { m, padded, n, d_model: d, n_heads: h, cross } = values;
  const [source, target] = [rowsOf(31, m, d), rowsOf(77, n, d)];
  const memory = encoded(source, values);
  const output = decoded(target, memory, values);
  const others = [
    ...source.map((_, j) =>
      decoded(target, encoded(nudged(source, j), values), values)),
    ...target.map((_, j) => decoded(nudged(target, j), memory, values)),
  ];
  const moves = output.map((row, i) => others.map((other) =>
    Math.max(...row.map((x, c) => Math.abs(other[i][c] - x)))));
  const leaks = (wrong) => moves.flatMap((row, i) => row.filter((x, j) =>
    x > HEARD && wrong(i, j))).length;
  return {
    moves,
    future: leaks((i, j) => j - m > i),
    padding: leaks((_, j) => j < m && j >= m - padded),
    parameters: parametersOf(values),
    shapes: {
      "source": [1, m, d],
      "weights, encoder": [1, h, m, m],
      "memory": [1, m, d],
      "target": [1, n, d],
      "weights, decoder": [1, h, n, n],
      ...cross ? { "weights, cross": [1, h, n, m] } : {},
      "output": [1, n, d],
    },
  };
}

function parametersOf({ d_model: d, norm, feed_forward, cross }) {
  const attention = 4 * d * d;
  const network = feed_forward ? 2 * WIDER * d * d + (WIDER + 1) * d : 0;
  const one = norm === "none" ? 0 : 2 * d;
  const norms = one * (cross ? 3 : 2);
  const across = cross ? attention : 0;
  return {
    "encoder block": attention + network + 2 * one,
    "decoder block": attention + across + network + norms,
    "its self-attention": attention,
    "its cross-attention": across,
    "its network": network,
    "its norms": norms,
  };
}

const thousands = (number) =>
  String(number).replace(/\B(?=(\d{3})+$)/g, ",");

function namesOf({ m, padded, n }) {
  const source = SOURCE.slice(0, m)
    .map((word, j) => (j < m - padded ? word : "pad"));
  return [...source, ...TARGET.slice(0, n)];
}

function build(lab) {
  lab.row(
    lab.select("norm", "Norm", { pre: "pre: before each sublayer",
      post: "post: after each sum", none: "none" }),
    lab.checkbox("feed_forward", "feed-forward network"),
    lab.checkbox("cross", "cross-attention"),
  );
  lab.row(
    lab.checkbox("causal", "causal mask in the decoder"),
    lab.checkbox("mask_source", "padding hidden in the encoder"),
    lab.checkbox("mask_memory", "padding hidden in cross-attention"),
  );
  lab.row(
    lab.range("m", "Source tokens"),
    lab.range("padded", "of these padding"),
    lab.range("n", "Target tokens"),
    lab.range("d_model", ["Features ", element("i", {}, "d"),
      element("sub", {}, "model")]),
    lab.range("n_heads", "Heads"),
  );
  const table = hearing(lab);
  const shapes = namedNumbers("Shapes on the way", ["tensor", "shape"]);
  const sizes = namedNumbers("Parameters");
  lab.root.append(element("div", { class: "lab-pair" },
    element("div", { class: "lab-scroll", tabindex: 0, role: "region",
      "aria-label": "Who hears whom" }, table.frame),
    element("div", {}, shapes.frame, sizes.frame)));
  lab.hint(({ cross }) => cross
    ? "Point at or tap a cell, or switch a mask off: what leaks is marked “!”."
    : "Without cross-attention nothing of the source arrives.");
  return (values, now) => {
    table.show(values, now);
    shapes.show([...Object.entries(now.shapes)
      .map(([name, shape]) => [name, `(${shape.join(", ")})`]),
    ...values.cross ? [] : [["", ""]]]);
    sizes.show(Object.entries(now.parameters)
      .map(([name, count]) => [name, thousands(count)]));
    lab.say(`${leaksInWords(now)} The encoder block has `
      + `${thousands(now.parameters["encoder block"])} parameters, the `
      + `decoder block ${thousands(now.parameters["decoder block"])}.`);
  };
}

function leaksInWords({ future, padding }) {
  if (!future && !padding) return "Nothing leaks.";
  return `Leaks: ${future} of the future, ${padding} of padding.`;
}

// A table of outputs by tokens: which of them moves when one is changed.
function hearing(lab) {
  const head = element("tr");
  const body = element("tbody");
  const caption = element("caption");
  const frame = element("table", { class: "lab-heat" }, caption,
    element("thead", {}, head), body);
  let size = "";

  function make({ m, n }, names) {
    frame.style.setProperty("--n", m + n);
    head.replaceChildren(element("td"), ...names.map(() =>
      element("th", { scope: "col" }, element("span"))));
    body.replaceChildren(...TARGET.slice(0, n).map((word, i) =>
      element("tr", {}, element("th", { scope: "row" }, word),
        ...names.map((_, j) => {
          const cell = element("td");
          lab.explain(cell, (values, now) => sentence(i, j, values, now));
          return cell;
        }))));
    size = `${m} ${n}`;
  }

  function show(values, now) {
    const names = namesOf(values);
    if (size !== `${values.m} ${values.n}`) make(values, names);
    write(caption, `Outputs that move: ${leaksInWords(now)}`);
    names.forEach((name, j) =>
      write(head.cells[j + 1].firstElementChild, name));
    now.moves.forEach((row, i) => row.forEach((moved, j) => {
      const cell = body.rows[i].cells[j + 1];
      const hears = moved > HEARD;
      share(cell, hears ? 0.6 : 0);
      const wrong = hears && isLeak(i, j, values);
      write(cell, wrong ? "!" : hears ? "■" : "·");
      set(cell, { class: wrong ? "lab-chosen" : null });
    }));
  }
  return { frame, show };
}

const isLeak = (i, j, { m, padded }) =>
  j < m ? j >= m - padded : j - m > i;

function sentence(i, j, values, { moves }) {
  const whose = j < values.m ? "source" : "target";
  const token = `${whose} token ${namesOf(values)[j]}`;
  const output = `the output at ${TARGET[i]}`;
  const moved = moves[i]?.[j] ?? 0;
  if (moved <= HEARD) return `Change ${token}: ${output} does not move.`;
  const leak = isLeak(i, j, values) ? " It should not: a leak." : "";
  return `Change ${token}: ${output} moves by ${decimal(moved)}.${leak}`;
}

export default defineLab({ compute, build, sees, tasks });
