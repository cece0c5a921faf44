// The lab on several heads: what there is to see, what to try.

import { decimal } from "./machinery/drawing.js";

const digits = (number) => String(number).replace(/\B(?=(\d{3})+$)/g, ",");

export function sees({ d_model, n_heads, n_kv_heads, n }, result) {
  const d = d_model / n_heads;
  const group = n_heads / n_kv_heads;
  const { weights, cacheBytes, parameters } = result;
  const peaks = weights.map((table) => Math.max(...table.flat()));
  const sharpest = peaks.indexOf(Math.max(...peaks));
  const shared = n_heads === 1 ? "with keys of its own"
    : group === 1 ? "each with keys of its own"
    : `${group} to each head of keys, so the cache is ${group} times smaller`;
  const second = n_heads === 2 ? "The second head adds a table of weights: "
    + `${apart(weights)} of the ${n} words look most at another word with it. `
    : "";
  return `${second}${n_heads} ${n_heads === 1 ? "head" : "heads"} of `
    + `${d} features, `
    + `${shared}: ${digits(parameters)} parameters, ${digits(cacheBytes)} `
    + `bytes to keep. Head ${sharpest + 1} looks most sharply, with a weight `
    + `of ${decimal(peaks[sharpest], 2)}.`;
}

// How many queries have their largest weight elsewhere with the second head.
const peakAt = (row) => row.indexOf(Math.max(...row));
const apart = ([first, second]) => first.filter((row, i) =>
  peakAt(row) !== peakAt(second[i])).length;

export const tasks = [
  { name: "1. eight heads",
    set: { n_heads: 8, n_kv_heads: 8 },
    ask: "From 4 heads to 8: which of the numbers under the pictures change?",
    answer: (values, { parameters, cacheBytes }) =>
      `Neither the parameters, ${digits(parameters)}, nor the cache, `
      + `${digits(cacheBytes)} bytes: cutting is free. There are twice as `
      + "many weights, and the heads’ shapes are narrower." },
  { name: "2. one head of keys",
    set: { n_heads: 8, n_kv_heads: 1 },
    ask: "All query heads share one head of keys and values. What is saved?",
    answer: (values, result) => `${sees(values, result)} The pictures still `
      + "differ: the queries do." },
  { name: "3. five heads?",
    set: { d_model: 48, n_heads: 4, n_kv_heads: 4 },
    ask: "Why is there no stop for 5 heads?",
    answer: ({ d_model }) => `${d_model} features cannot be cut into 5 equal `
      + "pieces." },
  { name: "one head",
    set: { n_heads: 1, n_kv_heads: 1 },
    ask: "How many tables of weights does a layer with one head have?",
    answer: ({ n }) => "One. A query has one row of weights, which sum to 1: "
      + `what it gives to one of the ${n} words, it takes from the others.` },
  { name: "a second head",
    set: { n_heads: 2, n_kv_heads: 2 },
    ask: "What does a second head add?",
    answer: (values, { weights, parameters }) => "A second table: "
      + `${apart(weights)} of the ${values.n} words look most at another word `
      + `with it. The parameters stay at ${digits(parameters)}.` },
];
