// The lab on devices: what there is to see, what to try.

import { scaled } from "./machinery/units.js";

const NAMES = { heads: "Heads dealt out", ring: "The ring",
  swap: "The all-to-all" };
const GPU = 80e9; // bytes

export function sees({ ranks }, result) {
  if (ranks === 1) return "One rank sends nothing, and holds everything.";
  const open = Object.keys(NAMES).filter((way) => !result[way].refused);
  if (open.length === 1)
    return `Only the ring is open: ${result.heads.refused}. A rank sends `
      + `${scaled(result.ring.sent, "B")}${room(result, open)}`;
  const times = result.ring.sent / result.swap.sent;
  const more = times === 1 ? "as much as" : `${times} times as much as`;
  return `A rank of the ring sends ${scaled(result.ring.sent, "B")}, `
    + `${more} one of the all-to-all, and exactly as much as one that has `
    + `a part of the heads${room(result, open)}`;
}

// Who does not fit on a GPU of 80 GB.
function room(result, open) {
  const large = open.filter((way) => result[way].held > GPU);
  if (!large.length) return ". What a rank holds fits on a GPU of 80 GB.";
  const names = large.map((way) => NAMES[way].toLowerCase()).join(" and ");
  return `. Too large for a GPU of 80 GB: ${names}.`;
}

export const tasks = [
  { name: "1. a million tokens on eight",
    set: { ranks: 8, n: 1048576, n_heads: 32, d_head: 128 },
    ask: "Which of the three ways holds least on each rank, and which sends "
      + "least?",
    answer: (values, { heads, ring, swap }) =>
      `Ring and all-to-all hold ${scaled(ring.held, "B")} each, where with `
      + "heads dealt out every rank has all tokens: "
      + `${scaled(heads.held, "B")}. The all-to-all sends least, `
      + `${scaled(swap.sent, "B")}.` },
  { name: "2. more ranks than heads",
    set: { ranks: 64, n: 1048576, n_heads: 32, d_head: 128 },
    ask: "Sixty-four ranks and 32 heads: which ways are left?",
    answer: (values, result) => sees(values, result) },
  { name: "3. forty heads on sixteen",
    set: { ranks: 16, n_heads: 40 },
    ask: "Forty heads, 16 ranks: is it the number of heads that is wrong, or "
      + "that of the ranks?",
    answer: (values, { heads }) => `${heads.refused}, and would among 8.` },
  { name: "4. across a slow link",
    set: { ranks: 8, n: 131072, n_heads: 32, link: "Ethernet" },
    ask: "How long do a rank’s bytes take by Ethernet, in the ring and in the "
      + "all-to-all?",
    answer: (values, { ring, swap }) =>
      `${ring.seconds.toFixed(2)} s and ${swap.seconds.toFixed(2)} s. Whether `
      + "that is long depends on what there is to calculate meanwhile." },
];
