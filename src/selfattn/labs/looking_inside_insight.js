// The lab on looking inside: what there is to see, what to try.

import { decimal } from "./machinery/drawing.js";

export const NAMES = [1, 2].flatMap((layer) =>
  [1, 2, 3, 4].map((head) => `${layer}.${head}`));

const ECHO = "cat deep river lazy bridge cat deep river lazy bridge cat deep";
const TIRED = "the horse did not cross the river because it was too tired "
  + ". the";

// Without which single head this text's loss is largest.
const neededMost = ({ without }) => without.indexOf(Math.max(...without));

const lossNow = ({ loss, whole, off }) => off.length
  ? `Without ${off.join(", ")} the loss is ${decimal(loss)} nats a word `
    + `instead of ${decimal(whole)}.`
  : `The loss is ${decimal(loss)} nats a word.`;

export function sees({ head }, result) {
  const { read, weights, unknown, guesses, without } = result;
  const row = weights[head].at(-1);
  const most = row.indexOf(Math.max(...row));
  const strange = unknown.length
    ? ` It has never read “${unknown[0]}”, and takes it for “?”.` : "";
  const one = neededMost(result);
  return `${lossNow(result)} In head ${NAMES[head]} the last word, `
    + `“${read.at(-1)}”, looks most at “${read[most]}” (word ${most}), with `
    + `${decimal(row[most], 2)}; next the model expects “${guesses[0][0]}”. `
    + `Of single heads, the loss of this text needs ${NAMES[one]} most: `
    + `${decimal(without[one])} without it.${strange}`;
}

const expects = ({ guesses: [[word, share]] }) =>
  `“${word}”, with ${Math.round(100 * share)}%`;

export const tasks = [
  { name: "1. an echo",
    set: { words: ECHO },
    ask: "Five words, again and again. From which word on can they be "
      + "foretold, and which heads look at what came after the last time?",
    answer: (values, result) => `It expects ${expects(result)}. The bars of `
      + "the loss fall after the first round." },
  { name: "2. who was too tired?",
    set: { words: TIRED },
    ask: "Somebody was too tired. Which word does the model expect next?",
    answer: (values, result) => `${expects(result)}.` },
  { name: "3. who was too wide?",
    set: { words: TIRED.replace("tired", "wide") },
    ask: "One word is another. Which word does it expect now? And did the "
      + "row of “it” change?",
    answer: (values, result) => `${expects(result)}. The row of “it” did not: `
      + "“wide” comes after it, and no head can see it from there." },
];
