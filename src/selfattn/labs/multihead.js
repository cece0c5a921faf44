// A layer of several heads: what its sizes cost, and where each head looks.

import {
  dotProducts, fixedNumbers, fullMask, maskedSoftmax, product,
} from "./machinery/core.js";
import { defineLab } from "./machinery/controls.js";
import { decimal, element, set, write } from "./machinery/drawing.js";
import { HeatMap, namedNumbers } from "./machinery/pictures.js";
import { sees, tasks } from "./multihead_insight.js";

const SENTENCE = "the cat sat on the mat because it was soft".split(" ");
const MOST_HEADS = 12;
const CACHED = 2; // bytes of a cached number, in half precision

// Fixed numbers -1.5, -1 … 1.5, from Park and Miller's generator, one start
// a row, so that Python makes the same ones. They never change, so each
// table is made once.
const SORT = { x: 3, W_q: 4, W_k: 5 };
const made = new Map();

export function fixedTable(sort, rows, columns) {
  const key = `${sort} ${rows} ${columns}`;
  if (!made.has(key))
    made.set(key, Array.from({ length: rows }, (_, row) =>
      fixedNumbers(7919 * (row + 1) + 104729 * SORT[sort], columns)));
  return made.get(key);
}

function matrix(sort, d_model, columns) {
  const scale = 1.25 / Math.sqrt(d_model);
  return fixedTable(sort, d_model, columns)
    .map((row) => row.map((x) => x * scale));
}

// Rows cut into heads: head h has the h-th block of every row.
export function splitHeads(rows, n_heads) {
  const d = rows[0].length / n_heads;
  return Array.from({ length: n_heads }, (_, h) =>
    rows.map((row) => row.slice(h * d, (h + 1) * d)));
}

// The projections' products depend on the sizes alone; they are kept.
const kept = new Map();

function projected(sort, n, d_model, columns) {
  const key = `${sort} ${n} ${d_model} ${columns}`;
  if (!kept.has(key))
    kept.set(key, product(fixedTable("x", n, d_model),
      matrix(sort, d_model, columns)));
  return kept.get(key);
}

function compute(values) {
  const { d_model, n_heads, n_kv_heads, n } = values;
  const d = d_model / n_heads;
  const d_kv = d * n_kv_heads;
  const group = n_heads / n_kv_heads;
  const queries = splitHeads(projected("W_q", n, d_model, d_model), n_heads);
  const keys = splitHeads(projected("W_k", n, d_model, d_kv), n_kv_heads);
  const all = Array(n).fill(true);
  const weights = queries.map((q, h) =>
    dotProducts(q, keys[Math.floor(h / group)]).map((row) =>
      maskedSoftmax(row.map((score) => score / Math.sqrt(d)), all)));
  return {
    weights,
    parameters: 2 * d_model * d_model + 2 * d_model * d_kv,
    biases: 2 * d_model + 2 * d_kv,
    cacheBytes: 2 * CACHED * n * d_kv,
    shapes: {
      "x": [1, n, d_model],
      "queries": [1, n, d_model],
      "queries, split": [1, n_heads, n, d],
      "keys": [1, n, d_kv],
      "keys, split": [1, n_kv_heads, n, d],
      "keys, shared out": [1, n_heads, n, d],
      "weights": [1, n_heads, n, n],
      "heads": [1, n_heads, n, d],
      "merged": [1, n, d_model],
      "output": [1, n, d_model],
    },
  };
}

const grouped = (number) =>
  String(number).replace(/\B(?=(\d{3})+$)/g, ",");

function build(lab) {
  const names = Array.from({ length: MOST_HEADS }, (_, h) => `head ${h + 1}`);
  const chooser = lab.words("head", "Whose numbers?", names,
    ({ n_heads }) => n_heads);
  lab.row(
    lab.range("d_model", ["Features ", element("i", {}, "d"),
      element("sub", {}, "model")]),
    lab.range("n_heads", "Query heads", { along: "n_kv_heads" }),
    lab.range("n_kv_heads", "Key and value heads"),
    lab.range("n", ["Words ", element("i", {}, "n")]),
  );
  const maps = chooser.labels.map((label, h) => headMap(lab, label, h));
  const heat = new HeatMap(lab, "Weights of the chosen head", SENTENCE);
  const shapes = namedNumbers("Shapes on the way", ["tensor", "shape"]);
  const counts = namedNumbers("What it costs");
  const pictures = element("div", { class: "lab-pair" },
    element("div", { class: "lab-scroll" }, heat.table),
    element("div", {}, shapes.frame, counts.frame));
  lab.root.append(chooser.choice, pictures);
  lab.hint(() => "Point at or tap a cell, or choose another head.");
  return (values, result) => {
    maps.forEach((map) => map(values, result));
    heat.show(result.weights[values.head], fullMask(values.n, values.n));
    shapes.show(Object.entries(result.shapes)
      .map(([name, shape]) => [name, `(${shape.join(", ")})`]));
    counts.show(costs(values, result));
    lab.say(`${grouped(result.parameters)} parameters, cache of `
      + `${grouped(result.cacheBytes)} bytes. ${best(values, result)}`);
  };
}

function costs({ n_heads, n_kv_heads, n }, result) {
  const full = (result.cacheBytes * n_heads) / n_kv_heads;
  return [
    ["parameters", grouped(result.parameters)],
    ["with biases", grouped(result.parameters + result.biases)],
    ["weights", grouped(n_heads * n * n)],
    ["bytes of the cache", grouped(result.cacheBytes)],
    ["the same, unshared", grouped(full)],
  ];
}

// "Head 2, with keys 1, looks most from “sat” at “mat”: .731."
function best({ head, n, n_heads, n_kv_heads }, { weights }) {
  const flat = weights[head].flat();
  const at = flat.indexOf(Math.max(...flat));
  const keys = Math.floor((head * n_kv_heads) / n_heads) + 1;
  return `Head ${head + 1}, with keys ${keys}, looks most from `
    + `“${SENTENCE[Math.floor(at / n)]}” at “${SENTENCE[at % n]}”: `
    + `${decimal(flat[at])}.`;
}

// A small picture in the head's button: one pixel a weight.
function headMap(lab, label, head) {
  const canvas = element("canvas",
    { class: "lab-map", "aria-hidden": "true" });
  const keys = element("span", { class: "lab-map-keys" });
  label.querySelector("span").append(canvas, keys);
  const tell = (values, result) => best({ ...values, head }, result);
  lab.explain(label, tell);
  lab.explain(label.querySelector("input"), tell);
  return ({ n, n_heads, n_kv_heads }, { weights }) => {
    if (head >= n_heads) return;
    write(keys, `keys ${Math.floor((head * n_kv_heads) / n_heads) + 1}`);
    set(canvas, { width: n, height: n });
    const pen = canvas.getContext("2d");
    const picture = pen.createImageData(n, n);
    weights[head].flat().forEach((weight, pixel) => {
      picture.data[4 * pixel + 3] = Math.round(255 * weight);
    });
    pen.putImageData(picture, 0, 0);
  };
}

export default defineLab({ compute, build, sees, tasks });
