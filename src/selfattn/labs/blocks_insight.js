// The lab on blocks: what there is to see, what to try.

const outputs = (count) => `${count} ${count === 1 ? "cell" : "cells"}`;

export function sees({ cross, m, padded }, { moves, future, padding }) {
  const heard = moves.flatMap((row) => row.slice(0, m))
    .filter((x) => x > 1e-9).length;
  const source = cross && heard
    ? "Every output hears the source."
    : "No output hears the source.";
  const late = future ? ` ${outputs(future)} hear what comes later.` : "";
  const empty = padding ? ` ${outputs(padding)} hear padding.` : "";
  const clean = padded ? "neither the future nor padding" : "no future";
  return `${source}${late}${empty}`
    + (late || empty ? "" : ` They hear ${clean}.`);
}

export const tasks = [
  { name: "1. no causal mask",
    set: { causal: false },
    ask: "How many cells are wrong without the causal mask?",
    answer: (values, { future }) =>
      `${outputs(future)}: all above the diagonal of the target.` },
  { name: "2. padding in the encoder",
    set: { mask_source: false },
    ask: "Cross-attention hides the padding. Who hears it all the same?",
    answer: (values, { padding }) =>
      `${outputs(padding)}: every output, by way of the source's real `
      + "tokens, which have heard it." },
  { name: "3. no cross-attention",
    set: { cross: false },
    ask: "What is left of the source?",
    answer: (values, result) => sees(values, result) },
];
