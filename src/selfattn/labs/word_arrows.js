// Words as arrows on a plane, made up from their letters, and attention
// among them.

import {
  attentionSteps, causalMask, fullMask,
} from "./machinery/core.js";

const LONGEST = 2; // of a letter's arrow
export const EDGE = 3; // of the planes

const tenth = (x) => Math.floor(x * 10 + 0.5) / 10;
const within = (x) => Math.min(EDGE, Math.max(-EDGE, x));

// A letter is a hand on a clock of 26 hours, a at the top; other characters
// go round it again and again.
export function letterArrow(letter) {
  const hour = (letter.codePointAt(0) + 7) % 26; // "a" is 97
  const angle = (2 * Math.PI * hour) / 26;
  return [Math.sin(angle), Math.cos(angle)].map((x) => tenth(LONGEST * x));
}

// A word: its letters' arrows, one after the other, over the root of their
// number, so that long words are no longer than short ones.
export function wordArrow(word) {
  const letters = [...word.toLowerCase()].map(letterArrow);
  return [0, 1].map((axis) => {
    const sum = letters.reduce((total, xy) => total + xy[axis], 0);
    return within(tenth(sum / Math.sqrt(letters.length)));
  });
}

// Queries and keys stand where the letters put them, or where they were
// dragged from there. A key is the word's arrow turned by a quarter; the
// value is the arrow itself.
export function attendWords({ words, causal, q, k }) {
  const arrows = words.split(" ").map(wordArrow);
  const dragged = (points, by) => points.map((point, i) =>
    point.map((x, axis) => within(tenth(x + by[i][axis]))));
  const vectors = {
    q: dragged(arrows, q),
    k: dragged(arrows.map(([x, y]) => [-y + 0, x]), k),
    v: arrows,
  };
  const n = arrows.length;
  const mask = causal ? causalMask(n, n) : fullMask(n, n);
  return { ...vectors, mask,
    ...attentionSteps(vectors.q, vectors.k, vectors.v, mask) };
}
