// The lab on positions: what there is to see, what to try.

import { decimal } from "./machinery/drawing.js";

const NOTHING = 5e-4; // prints as zero

export function sees(values, { curves, turns }) {
  const { encoding, query, key, turn, n } = values;
  const [curve] = curves;
  const away = Math.abs(query - key);
  if (encoding === "alibi") {
    const last = curves.length === 1 ? ""
      : `, head ${curves.length} by ${decimal(Math.exp(curves.at(-1)[key]))}`;
    return `${away} away, head 1 multiplies the weight by `
      + `${decimal(Math.exp(curve[key]))}${last}: distance costs, and nothing `
      + "else does.";
  }
  const mirror = 2 * query - key;
  const other = mirror >= 0 && mirror < n && mirror !== key
    ? `${away} on the other side it is ${decimal(curve[mirror])}` : "";
  const same = other && Math.abs(curve[mirror] - curve[key]) < NOTHING;
  const told = `The product is ${decimal(curve[key])}`;
  const long = decimal((2 * Math.PI) / turns.at(-1), 0);
  if (!other)
    return `${told}, at most ${decimal(Math.max(...curve))}; the slowest `
      + `clock goes round once in ${long} positions.`;
  return `${told}, and ${other}: ${same
    ? "this product knows how far, and not which side."
    : `the key is turned by ${decimal(turn, 0)}°, so the sides differ.`}`;
}

export const tasks = [
  { name: "1. further on",
    set: { query: 28, key: 20 },
    ask: "Sinusoidal, query and key both 8 further on. Which product?",
    answer: ({ key }, { curves: [curve] }) => "The same as at the start, "
      + `${decimal(curve[key])}: this product knows how far apart they are, `
      + "and not where." },
  { name: "2. base 10",
    set: { base: 10, n: 64, query: 0, key: 44 },
    ask: "A base of 10, and the query at 0: how sharply do the clocks tell "
      + "neighbours apart, and what is the price, far out? Then try 500,000.",
    answer: ({ query, key }, { curves: [curve], turns }) => "The product "
      + `falls from ${decimal(curve[query], 0)} to ${decimal(curve[1])} `
      + `within one place, and to ${decimal(curve[3])} within three. But `
      + `${key} away it is ${decimal(curve[key])}: the slowest clock is round `
      + `again after ${decimal((2 * Math.PI) / turns.at(-1), 0)} positions.` },
  { name: "3. a turned key",
    set: { encoding: "rope", turn: 90 },
    ask: "RoPE, and the key turned by 90°. On which side of the query is the "
      + "product larger?",
    answer: (values, { curves: [curve] }) => {
      const back = curve[values.key] > curve[2 * values.query - values.key];
      return `${back ? "Behind it" : "Ahead of it"}: `
        + sees(values, { curves: [curve], turns: [1] });
    } },
  { name: "4. one slope",
    set: { encoding: "alibi", heads: 1 },
    ask: "ALiBi with one head: where does the query have to stand to see the "
      + "most?",
    answer: ({ n }) => `In the middle, at ${n / 2 - 1} or ${n / 2}: the `
      + "distances are then the least." },
];
