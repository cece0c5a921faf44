// The lab on the block: what there is to see, what to try.

import { decimal } from "./machinery/drawing.js";

const GONE = 1e-12; // below that there is nothing but rounding

function power(x) {
  if (x < GONE) return "nothing";
  if (x >= 0.001 && x < 1000) return decimal(x);
  const log = Math.floor(Math.log10(x));
  return `${decimal(x / 10 ** log, 1)} · 10 to the power of `
    + String(log).replace("-", "−");
}

export function sees({ depth }, { size, distinct, path }) {
  const blocks = (count) => `After ${count} ${count === 1 ? "block"
    : "blocks"}`;
  const kept = distinct.findLastIndex((x) => x >= 1e-3);
  const tokens = kept < depth
    ? `${blocks(kept + 1)} the tokens differ by less than a thousandth of `
      + "their size: they are all but alike."
    : `${blocks(depth)} the tokens are still ${power(distinct.at(-1))} `
      + `distinct, and their size is ${power(size.at(-1))}.`;
  return `${tokens} The gradient that reaches the input is `
    + `${power(path[0])}; it set out as ${power(path.at(-1))}.`;
}

export const tasks = [
  { name: "1. bare",
    set: {},
    ask: "How distinct are the tokens after three, four, five blocks?",
    answer: (values, { distinct }) => [3, 4, 5].map((i) =>
      power(distinct[i])).join("; ") + "." },
  { name: "2. a network, no path",
    set: { feed_forward: true },
    ask: "A feed-forward network, but no path: does that save the tokens?",
    answer: (values, result) => sees(values, result) },
  { name: "3. the path alone",
    set: { residual: true },
    ask: "The path keeps the tokens apart. What is still wrong?",
    answer: (values, { size }) =>
      `The size: it grows from ${power(size[0])} to ${power(size.at(-1))}.` },
  { name: "4. path and pre-norm",
    set: { residual: true, norm: "pre" },
    ask: "And with the norm before each sublayer?",
    answer: (values, result) => sees(values, result) },
];
