// The small model that was trained for the page, run in float64 on the very
// numbers that Python reads: two blocks, a last norm, a score for each word.

import { STORED } from "./looking_inside_weights.js";

export const WORDS = STORED.words;
const N_HEADS = 4;
const EPS = 1e-5;

// Whole numbers of 16 bits, each tensor's times its own power of two.
const read = () => {
  const bytes = Uint8Array.from(atob(STORED.numbers.join("")),
    (c) => c.charCodeAt(0));
  const view = new DataView(bytes.buffer);
  let at = 0;
  return Object.fromEntries(Object.entries(STORED.shapes).map(
    ([name, [power, rows, columns = 1]]) => {
      const table = Float64Array.from({ length: rows * columns }, () => {
        at += 2;
        return view.getInt16(at - 2, true) * 2 ** power;
      });
      return [name, { table, rows, columns }];
    }));
};
const MODEL = read();
const DEPTH = Object.keys(MODEL)
  .filter((x) => x.endsWith("W_q.weight")).length;

// Row by row, x times the transpose of a stored matrix.
function mapped(x, name, bias = null) {
  const { table, rows, columns } = MODEL[name];
  return x.map((row) => {
    const out = new Float64Array(rows);
    for (let r = 0, w = 0; r < rows; r += 1) {
      let sum = bias ? MODEL[bias].table[r] : 0;
      for (let c = 0; c < columns; c += 1, w += 1) sum += row[c] * table[w];
      out[r] = sum;
    }
    return out;
  });
}

function normed(x, name) {
  const [gain, shift] = ["gain", "shift"].map((n) => MODEL[`${name}.${n}`]);
  return x.map((row) => {
    const mean = row.reduce((a, b) => a + b, 0) / row.length;
    const spread = row.reduce((a, b) => a + (b - mean) ** 2, 0) / row.length;
    const size = Math.sqrt(spread + EPS);
    return row.map((a, c) =>
      ((a - mean) / size) * gain.table[c] + shift.table[c]);
  });
}

// One head's causal weights, and what it brings back, written into `told`.
function lookBack(q, k, v, first, d, told, on) {
  return q.map((query, i) => {
    const scores = Array.from({ length: i + 1 }, (_, j) => {
      let sum = 0;
      for (let c = first; c < first + d; c += 1) sum += query[c] * k[j][c];
      return sum / Math.sqrt(d);
    });
    const largest = Math.max(...scores);
    const powers = scores.map((score) => Math.exp(score - largest));
    const total = powers.reduce((a, b) => a + b, 0);
    const row = q.map((_, j) => (j <= i ? powers[j] / total : 0));
    for (let j = 0; on && j <= i; j += 1)
      for (let c = first; c < first + d; c += 1)
        told[i][c] += row[j] * v[j][c];
    return row;
  });
}

// Scores for what follows each word, and every head's weights. `on` says of
// each head, layer by layer, whether what it brings back is used.
export function forward(tokens, on) {
  const vectors = MODEL["embed.tokens.weight"];
  const places = MODEL["embed.positions.table"];
  const d_model = vectors.columns;
  const d = d_model / N_HEADS;
  let x = tokens.map((token, i) => Float64Array.from({ length: d_model },
    (_, c) => vectors.table[token * d_model + c]
      + places.table[i * d_model + c]));
  const weights = [];
  const added = (more) => x.map((row, i) => row.map((a, c) => a + more[i][c]));
  for (let layer = 0; layer < DEPTH; layer += 1) {
    const block = `blocks.${layer}`;
    const seen = normed(x, `${block}.add_norm_1.norm`);
    const [q, k, v] = [..."qkv"].map((name) =>
      mapped(seen, `${block}.attention.W_${name}.weight`));
    const told = x.map(() => new Float64Array(d_model));
    for (let h = 0; h < N_HEADS; h += 1)
      weights.push(lookBack(q, k, v, h * d, d, told, on[layer * N_HEADS + h]));
    x = added(mapped(told, `${block}.attention.W_o.weight`));
    const network = `${block}.feed_forward`;
    const wide = mapped(normed(x, `${block}.add_norm_2.norm`),
      `${network}.W_in.weight`, `${network}.W_in.bias`)
      .map((row) => row.map((a) => Math.max(a, 0)));
    x = added(mapped(wide, `${network}.W_out.weight`,
      `${network}.W_out.bias`));
  }
  return { scores: mapped(normed(x, "norm"), "head.weight"), weights };
}

// The share of each word: softmax over one row of scores.
export function shares(row) {
  const largest = Math.max(...row);
  const powers = Array.from(row, (score) => Math.exp(score - largest));
  const total = powers.reduce((a, b) => a + b, 0);
  return powers.map((power) => power / total);
}

// How surprised it is by each word after the first, in nats.
export function surprises(tokens, scores) {
  return tokens.slice(1)
    .map((token, i) => -Math.log(shares(scores[i])[token]));
}
