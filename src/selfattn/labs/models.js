// The next letter of a trained model: temperature, top-k, top-p.

import { maskedSoftmax } from "./machinery/core.js";
import { defineLab } from "./machinery/controls.js";
import { decimal, drawn, element, set, write } from "./machinery/drawing.js";
import { namedNumbers } from "./machinery/pictures.js";
import { sees, tasks } from "./models_insight.js";
import { LETTERS, SCORES } from "./models_scores.js";

const N = LETTERS.length;
const ALL = Array(N).fill(true);

// The k likeliest; whatever equals the last of them stays as well.
function topK(scores, k) {
  const last = [...scores].sort((a, b) => b - a)[k - 1];
  return scores.map((score) => score >= last);
}

// The fewest likeliest that make up p: each before which p is not made up.
function topP(scores, kept, p) {
  if (p >= 1) return kept;
  const chances = maskedSoftmax(scores, kept);
  const order = scores.map((_, i) => i).filter((i) => kept[i])
    .sort((a, b) => scores[b] - scores[a] || a - b);
  const left = Array(N).fill(false);
  let before = 0;
  for (const i of order) {
    left[i] = before < p;
    before += chances[i];
  }
  return left;
}

function compute({ start, temperature, top_k, top_p }) {
  const scores = SCORES[start];
  const tempered = scores.map((score) => score / temperature);
  const left = topP(tempered, topK(tempered, top_k), top_p);
  const chances = maskedSoftmax(tempered, left);
  const all = maskedSoftmax(tempered, ALL);
  const entropy = chances.reduce((sum, p) =>
    sum - (p > 0 ? p * Math.log(p) : 0), 0);
  return {
    before: maskedSoftmax(scores, ALL),
    chances,
    left,
    kept: left.filter(Boolean).length,
    lost: all.reduce((sum, p, i) => sum + (left[i] ? 0 : p), 0),
    perplexity: Math.exp(entropy),
  };
}

const WIDE = 460;
const HIGH = 130;
const LOW = 26; // below the bars, for letters of a phone's size
const STEP = WIDE / N;
const nameOf = (i) => (LETTERS[i] === " " ? "␣" : LETTERS[i]);

function build(lab) {
  const starts = Object.fromEntries(Object.keys(SCORES)
    .map((start) => [start, start.replaceAll(" ", "␣")]));
  lab.row(
    lab.select("start", "Written so far", starts),
    lab.range("temperature", "Temperature", { text: (x) => x.toFixed(1) }),
    lab.range("top_k", "Top-k", {
      text: (k) => (k === N ? `${k}: all` : String(k)) }),
    lab.range("top_p", "Top-p", { text: (p) => p.toFixed(2) }),
  );
  const picture = drawn("svg", {
    viewBox: `0 0 ${WIDE} ${HIGH + LOW}`, role: "img",
    "aria-label": "The probability of each letter to be drawn",
    style: `aspect-ratio: ${WIDE} / ${HIGH + LOW}` });
  const bars = Array.from({ length: N }, (_, i) => drawn("rect", {
    x: (i + 0.14) * STEP, width: 0.72 * STEP, class: "lab-column" }));
  const marks = bars.map((_, i) => drawn("line", {
    x1: (i + 0.06) * STEP, x2: (i + 0.94) * STEP, class: "lab-axis" }));
  const names = bars.map((_, i) => drawn("text", {
    x: (i + 0.5) * STEP, y: HIGH + 5, class: "lab-tick",
    "text-anchor": "middle", "dominant-baseline": "hanging" }, nameOf(i)));
  const reaches = bars.map((_, i) => {
    const reach = drawn("rect", {
      x: i * STEP, y: 0, width: STEP, height: HIGH, class: "lab-reach" });
    lab.explain(reach, (values, now) => letterSentence(i, values, now));
    return reach;
  });
  picture.append(...bars, ...marks, ...names, ...reaches, drawn("line", {
    x1: 0, x2: WIDE, y1: HIGH, y2: HIGH, class: "lab-axis" }));
  const caption = element("figcaption");
  const numbers = namedNumbers("What is drawn from");
  lab.root.append(element("div", { class: "lab-pair" },
    element("figure", { class: "lab-plane" }, caption, picture),
    element("div", { class: "lab-scroll" }, numbers.frame)));
  lab.hint(() => "Bars: the probabilities drawn by. Lines: the model’s own. "
    + "Point at or tap a letter.");

  return (values, now) => {
    write(caption, `Next letter after “${values.start}”`);
    now.chances.forEach((p, i) => {
      set(bars[i], { y: (HIGH * (1 - p)).toFixed(2),
        height: (HIGH * p).toFixed(2) });
      const y = (HIGH * (1 - now.before[i])).toFixed(2);
      set(marks[i], { y1: y, y2: y });
      set(names[i], { opacity: now.left[i] ? null : 0.6 });
    });
    numbers.show([
      ["letters left", String(now.kept)],
      ["probability cut off", decimal(now.lost)],
      ["perplexity", decimal(now.perplexity, 2)],
    ]);
    lab.say(sees(values, now));
  };
}

// What a letter's bar says.
function letterSentence(i, values, { before, chances, left }) {
  const own = `${nameOf(i)}: the model gives it ${decimal(before[i])}; `;
  return left[i] ? `${own}it is drawn with ${decimal(chances[i])}.`
    : `${own}it is cut, and never drawn.`;
}

export default defineLab({ compute, build, sees, tasks });
