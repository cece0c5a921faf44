// The lab on masks: what there is to see, what to try.

const NAMES = {
  none: "No mask", causal: "A causal mask", prefix: "A prefix",
  window: "A window", block: "Blocks", documents: "Documents",
};

export function sees(values, { keep, empty, allowed }) {
  const { n, n_q, kind, padded, left, flipped, alignment } = values;
  const start = alignment === "first" ? 0 : n - n_q;
  const ahead = keep.some((row, i) =>
    row.includes(true, Math.max(0, i + start + 1)));
  const told = `${NAMES[kind]}: ${allowed} of ${n * n_q} pairs may look, `
    + `${ahead ? "some" : "none"} of them at a later key.`;
  if (empty.length)
    return `${told} ${empty.length === 1 ? "One query sees" :
      `${empty.length} queries see`} nothing at all: where NaN can begin.`;
  if (flipped.length) return `${told} Some of it is drawn by hand.`;
  return padded ? `${told} ${padded} ${padded === 1 ? "key is" : "keys are"} `
    + `padding on the ${left ? "left" : "right"}, seen by nobody.` : told;
}

const count = (values, result) => sees(values, result);

export const tasks = [
  { name: "causal",
    set: { kind: "causal", n: 8 },
    ask: "Each token may look at itself and at all before it. How many does "
      + "the last one see?",
    answer: (values, { keep }) =>
      `All ${keep.at(-1).filter(Boolean).length}.` },
  { name: "padding on the left",
    set: { kind: "causal", padded: 2, left: true },
    ask: "A causal mask, and two keys of padding on the left. What do the "
      + "first two queries see?",
    answer: count },
  { name: "a window, and causal",
    set: { kind: "window", size: 3, causal: true },
    ask: "A window of 3 that is causal: how many keys does the last query "
      + "see, itself counted?",
    answer: (values, { keep }) =>
      `${keep.at(-1).filter(Boolean).length}.` },
  { name: "one query, eight keys",
    set: { kind: "causal", n: 8, n_q: 1 },
    ask: "One new query, eight keys kept from before, a causal mask. How many "
      + "keys may it see?",
    answer: (values, { keep }) => `All ${keep[0].filter(Boolean).length}: the `
      + "last query sits on the last key." },
  { name: "the same, first on first",
    set: { kind: "causal", n: 8, n_q: 1, alignment: "first" },
    ask: "Now the first query sits on the first key, as in SDPA’s is_causal. "
      + "How many keys does the new query see?",
    answer: (values, { keep }) =>
      `${keep[0].filter(Boolean).length}: it has forgotten the text.` },
];
