// The lab on an estimated weight: what there is to see, what to try.

import { decimal } from "./machinery/drawing.js";

// A share in words: 12%, and above a thousand percent so many times.
export function per(x) {
  const size = Math.abs(x);
  if (size >= 10) return `${decimal(x, 0)} times`;
  return `${decimal(100 * x, 0)}%`;
}

export function sees({ m }, now) {
  const off = Math.round(100 * now.off);
  const how = off === 0 ? "right to a percent"
    : `${per(Math.abs(now.off))} too ${off > 0 ? "high" : "low"}`;
  return `The exponential is ${decimal(now.exact)}; ${m} directions say `
    + `${decimal(now.estimate)}, ${how}. To expect: ±\u00a0`
    + `${per(now.spread)}. The `
    + `largest direction carries ${per(now.largest)}.`;
}

const BASE = { length: 0.75, angle: 60, m: 16, kind: "positive",
  orthogonal: false, draw: 1 };

export const tasks = [
  { name: "1. short",
    set: { ...BASE, m: 256 },
    ask: "A short query and a short key: how well do 256 directions do?",
    answer: (values, now) => `They are ${per(now.off)} off; to expect was `
      + `±\u00a0${per(now.spread)}.` },
  { name: "2. long",
    set: { ...BASE, length: 2.25, angle: 30, m: 256 },
    ask: "The same, three times as long and nearer to each other. Which "
      + "directions count now?",
    answer: (values, now) => `Few, far out where both point: the largest of `
      + `${values.m} carries ${per(now.largest)}. To expect was `
      + `±\u00a0${per(now.spread)}, and this draw is ${per(now.off)} off.` },
  { name: "3. opposite",
    set: { ...BASE, length: 2.25, angle: 180, m: 4 },
    ask: "As long, but opposite. What do four directions say?",
    answer: (values, now) => `${decimal(now.estimate)}, and the exponential `
      + `is ${decimal(now.exact)}: query and key sum to nothing, and every `
      + "direction gives the same." },
  { name: "4. sines and cosines",
    set: { ...BASE, length: 2.25, angle: 180, m: 256, kind: "trigonometric",
      draw: 3 },
    ask: "Opposite again, with trigonometric features. What is the sign?",
    answer: (values, now) => `Minus or plus, by chance. This draw gives `
      + `${decimal(now.estimate)}, where ${decimal(now.exact)} is right.` },
  { name: "5. the same key",
    set: { ...BASE, length: 2.25, angle: 0, m: 4, kind: "trigonometric" },
    ask: "And where query and key are the same?",
    answer: (values, now) => `${decimal(now.estimate, 1)}, which is exact `
      + "with any directions: their difference is nothing." },
  { name: "6. at right angles",
    set: { ...BASE, length: 0.75, angle: 60, m: 4, orthogonal: true },
    ask: "Four directions, in pairs at right angles. Compare a few draws "
      + "with and without: is it better every time?",
    answer: (values, now) => `This one is ${per(now.off)} off. Not every `
      + "time: it is the mean square over draws that gets smaller." },
];
