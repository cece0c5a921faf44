// The lab on linear attention: what there is to see, what to try.

import { decimal } from "./machinery/drawing.js";

const WORDS = {
  "three apart, one more": ["the", "cat", "sat", "mat"],
  "one twice": ["the", "cat", "the", "sat"],
  alike: ["a", "an", "the", "this"],
};
export const wordsOf = (tokens) => WORDS[tokens];
export const pair = ([x, y], digits = 3) =>
  `(${decimal(x, digits)}, ${decimal(y, digits)})`;

export function sees({ tokens, read, ask }, now) {
  if (read === 0)
    return "Nothing has been written: every key brings back zeros.";
  const word = wordsOf(tokens)[ask];
  const brings = `The key of “${word}” brings back ${pair(now.back[ask])}`;
  const many = ` ${now.right} of ${now.keys} `
    + `${now.keys === 1 ? "key" : "keys"} right.`;
  if (now.wanted[ask] === null)
    return `${brings}, though nothing was written with it.${many}`;
  if (now.off[ask] < 5e-4)
    return `${brings}, which was written last with it.${many}`;
  return `${brings}; written last with it was ${pair(now.wanted[ask], 0)}, `
    + `${decimal(now.off[ask])} away.${many}`;
}

export const tasks = [
  { name: "1. three apart",
    set: { tokens: "three apart, one more", read: 3, gate: 1, delta: false,
      ask: 0 },
    ask: "Three keys at right angles, three features. How many values come "
      + "back as they were written?",
    answer: (values, { right, keys }) =>
      `${right} of ${keys}: no key brings anything of another.` },
  { name: "2. one more",
    set: { tokens: "three apart, one more", read: 4, gate: 1, delta: false,
      ask: 0 },
    ask: "A fourth key has no direction left to itself. What becomes of the "
      + "first three?",
    answer: (values, { right, keys, back }) =>
      `${right} of ${keys} are right now; the first brings back `
      + `${pair(back[0])}: a part of the fourth has come in.` },
  { name: "3. one twice",
    set: { tokens: "one twice", read: 3, gate: 1, delta: false, ask: 0 },
    ask: "“The” is written twice, with two values. Which comes back?",
    answer: (values, { back }) =>
      `Neither: their sum, ${pair(back[0], 0)}.` },
  { name: "4. delta rule",
    set: { tokens: "one twice", read: 3, gate: 1, delta: true, ask: 0 },
    ask: "And if what the key brings already is taken off first?",
    answer: (values, { back }) =>
      `The later one, ${pair(back[0], 0)}: the first has been overwritten.` },
  { name: "5. a gate",
    set: { tokens: "one twice", read: 3, gate: 0.5, delta: false, ask: 1 },
    ask: "Half of the memory is left at each token. What is left of “cat”, "
      + "which was written with (0, 2)?",
    answer: (values, { back }) =>
      `${pair(back[1])}: everything fades, whatever its key.` },
  { name: "6. alike",
    set: { tokens: "alike", read: 4, gate: 1, delta: true, ask: 0 },
    ask: "Four keys that are alike, by the delta rule. Which value is safe?",
    answer: (values, { right, keys }) =>
      `${right} of ${keys}: the one that was written last. Each correction `
      + "spoils what its neighbours had." },
];
