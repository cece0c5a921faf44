// The lab on queries, keys and values: what there is to see, what to try.

import { decimal } from "./machinery/drawing.js";

const TOKENS = "the cat sat on the mat because it was soft".split(" ");
const WHAT = ["causal mask", "padding mask", "window"];

export function sees(values, { weights, mask, output }) {
  const { query, n } = values;
  const row = weights[query];
  const seen = TOKENS.slice(0, n).map((_, j) => j)
    .filter((j) => mask[query][j]).sort((a, b) => row[b] - row[a]);
  const who = `“${TOKENS[query]}”`;
  if (!seen.length)
    return `${who} may see nothing, so its weights and its output are zeros, `
      + "and not NaN.";
  const hidden = n - seen.length;
  const rest = hidden ? ` The ${WHAT.find((name) =>
    name.startsWith(values.mask))} hides ${hidden} of the ${n} keys.` : "";
  const [first, last] = [seen[0], seen.at(-1)];
  const most = `“${TOKENS[first]}” (key ${first + 1}) takes `
    + `${decimal(row[first])}`;
  const out = output[query].map((x) => decimal(x, 2)).join(", ");
  if (seen.length === 1)
    return `${who} sees one key: its weight is 1, whatever its score.${rest}`;
  if (row[first] > 0.95)
    return `${most} of what ${who} gives: the softmax is saturated, its slope `
      + `there is ${decimal(row[first] * (1 - row[first]), 4)}. The output `
      + `(${out}) is nearly that key’s value.${rest}`;
  if (row[first] < 1.2 * row[last])
    return `All weights of ${who} lie from ${decimal(row[last])} to `
      + `${decimal(row[first])}: the output (${out}) is nearly the plain `
      + `average of the values.${rest}`;
  return `${most} of what ${who} gives, “${TOKENS[last]}” least, `
    + `${decimal(row[last])}; the output (${out}) lies among the values `
    + `accordingly.${rest}`;
}

export const tasks = [
  { name: "many features",
    set: { d_k: 64, n: 10, query: 2 },
    ask: "With 64 features the scores are large. What does the division "
      + "leave of the differences between the weights?",
    answer: (values, result) => sees(values, result) },
  { name: "nobody later",
    set: { mask: "causal", query: 0 },
    ask: "Drag the query wherever you like: what happens to the output, with "
      + "a causal mask and the first word asking?",
    answer: (values, { output }) => "Nothing: it stays its own value, ("
      + `${output[0].map((x) => decimal(x, 2)).join(", ")}).` },
  { name: "nothing to see",
    set: { mask: "padding", length: 0 },
    ask: "All words are padding. What is an average of nothing?",
    answer: (values, result) => sees(values, result) },
];
