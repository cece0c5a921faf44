// The labs' arithmetic: attention in float64, on plain arrays of rows.
//
// The same conventions as the Python package, with which the tests compare
// every number: true in a mask means "may attend", the last query sits on the
// last key, and a query that may see no key gets zeros.

// Rows of `a` with rows of `b`: entry [i][j] is the dot product a_i · b_j.
// With queries and keys as rows this is Q Kᵀ.
export function dotProducts(a, b) {
  return a.map((x) => b.map((y) => {
    let sum = 0;
    for (let c = 0; c < x.length; c++) sum += x[c] * y[c];
    return sum;
  }));
}

// The ordinary matrix product: (n × m) times (m × d). The width is asked for
// in `b`, so `b` must have at least one row.
export function product(a, b) {
  return a.map((row) => b[0].map((_, c) => {
    let sum = 0;
    for (let j = 0; j < row.length; j++) sum += row[j] * b[j][c];
    return sum;
  }));
}

// A mask is a comparison of positions: `maySee(i, j)` for query i and key j.
function maskOf(n_q, n_k, maySee) {
  return Array.from({ length: n_q }, (_, row) =>
    Array.from({ length: n_k }, (_, j) => maySee(row + n_k - n_q, j)));
}

export function fullMask(n_q, n_k) {
  return maskOf(n_q, n_k, () => true);
}

export function causalMask(n_q, n_k) {
  return maskOf(n_q, n_k, (i, j) => j <= i);
}

// A window of 3 counts the query's own position: two keys to each side.
export function windowMask(n_q, n_k, window) {
  return maskOf(n_q, n_k, (i, j) => Math.abs(i - j) < window);
}

// Only the first `length` keys are real; the others are padding.
export function paddingMask(n_q, n_k, length) {
  return maskOf(n_q, n_k, (i, j) => j < length);
}

// Softmax over the keys that one row of a mask allows. The largest score is
// taken off first, so that no exponential overflows.
export function maskedSoftmax(scores, maySee) {
  const seen = scores.filter((_, j) => maySee[j]);
  if (seen.length === 0) return scores.map(() => 0);
  const largest = Math.max(...seen);
  const powers = scores.map((score, j) =>
    maySee[j] ? Math.exp(score - largest) : 0);
  const total = powers.reduce((sum, power) => sum + power, 0);
  return powers.map((power) => power / total);
}

// Attention with nothing hidden: softmax(QKᵀ / √d) V, step by step.
export function attentionSteps(q, k, v, mask = fullMask(q.length, k.length)) {
  const scores = dotProducts(q, k);
  const scale = 1 / Math.sqrt(q[0].length);
  const scaled = scores.map((row) => row.map((score) => score * scale));
  const weights = scaled.map((row, i) => maskedSoftmax(row, mask[i]));
  const output = product(weights, v);
  return { scores, scaled, weights, output };
}

// Fixed numbers, each -1.5, -1 … or 1.5, of variance one, by the generator of
// Park and Miller, so that Python makes the same ones.
export function fixedNumbers(state, count) {
  return Array.from({ length: count }, () => {
    state = (state * 16807) % 2147483647;
    return ((state % 7) - 3) / 2;
  });
}
