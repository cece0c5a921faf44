// The lab on cost: what there is to see, what to try.

import { scaled } from "./machinery/units.js";

const NAMED = {
  naive: "the tables of scores and weights and the output",
  fused: "the fused kernel’s output and a number a row",
  window: "the window’s output",
  linear: "linear attention’s output and a number a row",
};
const whole = (number) => String(number).replace(/\B(?=(\d{3})+$)/g, ",");

export function sees({ n, mechanism }, result) {
  const { bytes, mechanismBytes, mechanismFlops, flops, fits } = result;
  const share = Math.round((100 * mechanismBytes) / bytes);
  const work = Math.round((100 * mechanismFlops) / flops);
  const names = Object.keys(fits).filter((name) => fits[name]);
  const room = names.length === Object.keys(fits).length
    ? "it fits on all of these GPUs"
    : names.length ? `it fits on ${names.join("; ")}`
      : "it fits on none of these GPUs";
  return `At ${whole(n)} tokens ${scaled(bytes, "B")}: ${share}% of that for `
    + `${NAMED[mechanism]}. Of the operations ${work}% are attention itself, `
    + `the rest the projections; ${room}.`;
}

export const tasks = [
  { name: "a long text",
    set: { n: 131072, batch: 1, mechanism: "naive" },
    ask: "131,072 tokens, one text, two tables: would one layer fit on an "
      + "H200?",
    answer: (values, result) => sees(values, result) },
  { name: "the same, fused",
    set: { n: 131072, batch: 1, mechanism: "fused" },
    ask: "The same with a fused kernel: what becomes of the bytes, and of the "
      + "operations?",
    answer: (values, result) => sees(values, result) },
  { name: "where attention is cheap",
    set: { n: 512, d_model: 4096, n_heads: 32 },
    ask: "Which share of a layer’s operations is attention itself, for a wide "
      + "model and a short text?",
    answer: (values, result) => sees(values, result) },
];
