// The lab on tiles: what there is to see, what to try.

import { decimal } from "./machinery/drawing.js";

const KEYS = 8;

export function sees({ tiles, read, position }, { m, total, shrink }) {
  const first = (read - 1) * KEYS / tiles;
  if (read === 0) return "Nothing has been read, and nothing is remembered.";
  if (first > position)
    return `Tile ${read} lies in the query's future and is skipped: `
      + `the total stays at ${decimal(total)}.`;
  if (shrink === null)
    return `Tile ${read} is the first: its largest score is ${decimal(m, 1)}, `
      + `and the total is ${decimal(total)}.`;
  if (shrink === 1)
    return `Tile ${read} brings no larger score: what was collected stays, `
      + `and the total is ${decimal(total)}.`;
  return `Tile ${read} brings a score of ${decimal(m, 1)}: what was collected `
    + `before shrinks to ${decimal(shrink)} of it, and the total is `
    + `${decimal(total)}.`;
}

export const tasks = [
  { name: "1. half way",
    set: { read: 2 },
    ask: "Read tile after tile. When is the output attention?",
    answer: (values, { output: [x, y] }) => "Always, to the keys read so far; "
      + `after two tiles that is (${decimal(x)}, ${decimal(y)}). To all keys `
      + "only after the last." },
  { name: "2. loud last",
    set: { scores: "loud last", read: 4 },
    ask: "The key with the largest score is the last one. What happens to "
      + "what was collected when it arrives?",
    answer: (values, { shrink }) => `It shrinks to ${decimal(shrink)} of what `
      + "it was. Nothing was wrong with it; it has become unimportant." },
  { name: "3. 60,000 less",
    set: { scores: "60,000 less", read: 4 },
    ask: "Which of the four numbers that are remembered change, against the "
      + "mixed scores?",
    answer: (values, { m }) => `Only m, which is ${decimal(m, 1)}. Everything `
      + "else is measured against it." },
  { name: "4. causal",
    set: { position: 3, tiles: 4, read: 4 },
    ask: "The query sits on key 4. What becomes of the tiles after it?",
    answer: (values, now) => sees(values, now) },
];
