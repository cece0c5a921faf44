// The lab of the doctor: what there is to see, what to try.

const RIGHT = "none: this one is right";

export function sees({ mistake }, { seen, probes }) {
  const others = probes.filter(Boolean).length;
  if (mistake === RIGHT)
    return "This function is right, and no probe says otherwise: an alarm "
      + "here would be a false one.";
  if (seen)
    return `This probe sees “${mistake}”; of the ${probes.length} others `
      + `${others} ${others === 1 ? "does" : "do"}.`;
  return `On these sizes “${mistake}” cannot be told from the right function: `
    + `${others} of the ${probes.length} other probes `
    + `${others === 1 ? "sees" : "see"} it.`;
}

export const tasks = [
  { name: "hidden by a square",
    set: { mistake: "scaled by the width of v", n_q: 3, n_k: 3, d_k: 3,
      d_v: 3 },
    ask: "The scores are divided by the root of the wrong width. When does "
      + "nobody notice?",
    answer: (values, result) => `${sees(values, result)} As long as both `
      + "widths are equal; change one of them." },
  { name: "an empty row",
    set: { mistake: "empty row gives nan", n_q: 3, n_k: 3, mask: "causal" },
    ask: "A causal mask on as many queries as keys: does the NaN show?",
    answer: (values, result) => `${sees(values, result)} A row has to be `
      + "empty, as with more queries than keys." },
  { name: "first on first",
    set: { mistake: "first on first", n_q: 3, n_k: 3, mask: "causal" },
    ask: "Where do the two meanings of “causal” part?",
    answer: (values, result) => `${sees(values, result)} Take fewer queries `
      + "than keys." },
];
