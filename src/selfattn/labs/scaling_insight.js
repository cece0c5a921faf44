// The lab on the scale: what there is to see, what to try.

import { decimal } from "./machinery/drawing.js";

const EVEN = 1 / 64; // the weight of each key when none is preferred
const BY = { none: "nothing", root: "their root", whole: "their number" };

export function sees({ d_k, divisor }, { weights, peak, slope, deviation }) {
  const key = weights.indexOf(peak) + 1;
  const spread = `Scores of a typical size of ${decimal(deviation, 2)}`;
  if (peak > 0.9)
    return `Key ${key} takes ${decimal(peak)}: the softmax is saturated, and `
      + `its Jacobian is down to ${decimal(slope, 4)}. ${spread} did that.`;
  if (peak < 2 * EVEN)
    return `No key takes more than ${decimal(peak)}, where an even share is `
      + `${decimal(EVEN)}: with ${d_k} feature${d_k === 1 ? "" : "s"}, and `
      + `scores divided by ${BY[divisor]}, this is nearly the plain average.`;
  return `${spread}: key ${key} takes most, ${decimal(peak)}, and the others `
    + `still count; the Jacobian is ${decimal(slope)}.`;
}

export const tasks = [
  { name: "1. no division",
    set: { d_k: 1024, divisor: "none" },
    ask: "1,024 features and no division: what is left of the softmax? Go "
      + "down: from which width on does the largest weight stay above one "
      + "half?",
    answer: (values, now) => `${sees(values, now)} From 256 features on it `
      + "stays above one half." },
  { name: "2. eight queries",
    set: { d_k: 256, divisor: "none" },
    ask: "Go through the eight queries: how much do their Jacobians differ?",
    answer: (values, { slope }) => `The first one’s is ${decimal(slope)}; the `
      + "folded cell below this lab prints all eight." },
  { name: "3. divided by d",
    set: { d_k: 1024, divisor: "whole" },
    ask: "Divided by d instead of its root nothing saturates. What is wrong "
      + "with it?",
    answer: (values, now) => sees(values, now) },
];
