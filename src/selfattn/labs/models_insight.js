// The lab on the next letter: what there is to see, what to try.

import { decimal } from "./machinery/drawing.js";
import { LETTERS } from "./models_scores.js";

const inWords = (i) => (LETTERS[i] === " " ? "a space" : `“${LETTERS[i]}”`);
const counted = (n) => (n === 1 ? "one letter is" : `${n} letters are`);

export function sees({ start }, { chances, kept, lost, perplexity }) {
  const best = chances.indexOf(Math.max(...chances));
  const cut = kept === LETTERS.length ? "None is cut"
    : `The others had ${decimal(lost)} together`;
  const choice = kept === 1 ? "no choice is left"
    : `as hard to tell as ${decimal(perplexity, 2)} alike`;
  return `After “${start}” ${counted(kept)} left, ${choice}. The likeliest is `
    + `${inWords(best)}, drawn with ${decimal(chances[best])}. ${cut}.`;
}

const chancesOf = (now) => now.left
  .map((kept, i) => [kept, i]).filter(([kept]) => kept)
  .map(([, i]) => LETTERS[i].replace(" ", "␣")).join(" ");

export const tasks = [
  { name: "1. top-p .9, a choice",
    set: { start: "the ", top_p: 0.9 },
    ask: "A word begins. How many letters does top-p .9 keep?",
    answer: (values, now) => `${now.kept}: ${chancesOf(now)}. `
      + "They are the first letters of the adjectives and nouns, or most." },
  { name: "2. top-p .9, no choice",
    set: { start: "the c", top_p: 0.9 },
    ask: "And within a word, where the model is sure?",
    answer: (values, now) => `${now.kept}: ${chancesOf(now)}. The same p, `
      + "and far fewer letters." },
  { name: "3. top-k 5, hot",
    set: { start: "the c", temperature: 2, top_k: 5 },
    ask: "At temperature 2, what does top-k 5 let in?",
    answer: (values, now) => `${chancesOf(now)}. Five are kept, whatever `
      + "they are worth: here four that make no word." },
  { name: "4. greedy",
    set: { start: "the cat ", top_k: 1 },
    ask: "Which settings make sampling greedy?",
    answer: (values, now) =>
      `Top-k 1, whatever the rest: ${chancesOf(now)} is all there is. `
      + "A small p comes to the same, a low temperature near it." },
];
