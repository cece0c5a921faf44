// The lab on Linformer: what there is to see, what to try.

import { decimal } from "./machinery/drawing.js";

export const percent = (x) => `${decimal(100 * x, 0)}%`;

const many = (m) => (m === 1 ? "1 mixture" : `${m} mixtures`);
const away = ({ off }) => `${decimal(off, 2)} of its size`;

export function sees({ token, mixtures }, now) {
  const best = now.best === token ? "itself" : `token ${now.best + 1}`;
  return `Token ${token + 1} would give ${percent(now.weights[now.best])} to `
    + `${best}; ${many(mixtures)} stand${mixtures === 1 ? "s" : ""} for `
    + `${percent(now.stands[now.best])} on it. The output is off by `
    + `${away(now)}, and ${percent(now.later)} of the weight is on later `
    + "tokens.";
}

const BASE = { text: "any order", mixtures: 4, kind: "means", draw: 1,
  token: 9, length: 4, last: 11 };

export const tasks = [
  { name: "1. one mixture", set: { ...BASE, mixtures: 1 },
    ask: "A single mean of all keys. Move “Token”: can the answer depend on "
      + "who asks?",
    answer: (values, now) => `No: all of the weight is on the one mixture, `
      + `whoever asks, and that is ${percent(now.stands[now.best])} on each `
      + "token." },
  { name: "2. neighbours alike",
    set: { ...BASE, text: "neighbours alike", token: 4 },
    ask: "A text whose neighbours point nearly the same way. Are four means "
      + "enough now?",
    answer: (values, now) => `Nearly: the output is off by ${away(now)}. `
      + "A mean of four keys that are alike is about each of them." },
  { name: "3. sharper", set: { ...BASE, length: 12 },
    ask: "Any order again, and queries three times as long. Who gets the "
      + "weight, and who would have?",
    answer: (values, now) => `Attention gives ${percent(
      now.weights[now.best])} to token ${now.best + 1}, and the means `
      + `${percent(now.stands[now.best])}: a mean cannot tell its tokens `
      + "apart." },
  { name: "4. sixteen means", set: { ...BASE, mixtures: 16, length: 12 },
    ask: "As many means as tokens. What is left of the difference?",
    answer: (values, now) => `Nothing, ${away(now)}: each mean is of one `
      + "token, and that is attention." },
  { name: "5. sixteen random ones",
    set: { ...BASE, mixtures: 16, kind: "random" },
    ask: "As many mixtures as tokens, but random ones. Is that attention, "
      + "too? Try some draws.",
    answer: (values, now) => `No: this draw is off by ${away(now)}. As many `
      + "as tokens is not enough; each would have to be one token." },
  { name: "6. the first token", set: { ...BASE, token: 0 },
    ask: "In a model that writes, the first token may see nothing but "
      + "itself. What does it see here? Turn token 16.",
    answer: (values, now) => `${percent(now.later)} of its weight is on `
      + "later tokens, and nothing can be hidden from it: a mixture is one "
      + "number a feature." },
];
