// Attention among words that one types: who listens to whom, what comes out.

import { defineLab } from "./machinery/controls.js";
import { decimal, drawn, element, set, write } from "./machinery/drawing.js";
import { Plane, makeHandle, mark, sayHandle } from "./machinery/pictures.js";
import { EDGE, attendWords, letterArrow } from "./word_arrows.js";

const MOST = 8; // words

function percent(weight) {
  return `${Math.round(100 * weight)}%`;
}

function pair([x, y]) {
  return `(${decimal(x, 2)}, ${decimal(y, 2)})`;
}

// Who gets most, who next: positions of the words that are seen, in order.
function order({ asks }, { weights, mask }) {
  return weights[asks].map((_, j) => j).filter((j) => mask[asks][j])
    .sort((a, b) => weights[asks][b] - weights[asks][a]);
}

function sees(values, result) {
  const { words: text, asks } = values, words = text.split(" ");
  const [first, second] = order(values, result);
  const weights = result.weights[asks];
  const who = `“${words[asks]}”`;
  const out = `its output is ${pair(result.output[asks])}`;
  if (second === undefined)
    return `${who} sees one word, “${words[first]}”. A softmax over one `
      + `number is 1, whatever the number: ${out}, that word’s value.`;
  const most = `“${words[first]}” with ${percent(weights[first])}`;
  if (weights[first] > 0.9)
    return `${who} listens to ${most}: nearly all of it. So ${out}, close to `
      + `that word’s value, ${pair(result.v[first])}.`;
  const least = weights[order(values, result).at(-1)];
  if (weights[first] < 1.3 * least)
    return `${who} listens to all that it sees about alike, to ${most} at `
      + `most: ${out}, close to the plain average of their values.`;
  return `${who} listens most to ${most}, then to “${words[second]}” with `
    + `${percent(weights[second])}: ${out}, between their values and those of `
    + "the rest.";
}

const still = Array.from({ length: MOST }, () => [0, 0]);

const tasks = [
  { name: "turn its query",
    set: { q: still.with(2, [4.6, -1.2]) },
    ask: "The query of “sat” now points the other way. To whom does it "
      + "listen now?",
    answer: (values, result) => sees(values, result) },
  { name: "no looking ahead",
    set: { causal: true, asks: 0 },
    ask: "With the causal switch no word sees a later one. What is left for "
      + "the first?",
    answer: (values, { weights }) =>
      `Itself alone, with weight ${percent(weights[0][0])}.` },
  { name: "three alike",
    set: { words: "cat cat cat", asks: 1 },
    ask: "Three words that are the same: to which of them does “cat” "
      + "listen?",
    answer: (values, { weights }) =>
      `To all alike, ${weights[1].map(percent).join(", ")}: same letters, `
      + "same key. Attention itself does not know which comes first." },
  { name: "listen to silent",
    set: { words: "listen to silent", asks: 1 },
    ask: "Why do “listen” and “silent” get the same weight?",
    answer: (values, { k }) =>
      "They have the same letters, so the same sum of arrows, and the same "
      + `key, ${pair(k[0])}. Real models know a word by more than that.` },
];

function build(lab) {
  lab.row(
    lab.typing("words", "Your words, up to eight", (words) =>
      lab.set(typed(lab.values(), words))),
    lab.checkbox("causal", "Causal: no later word"));
  const lines = weightLines(lab);
  const looks = lookPlane(lab);
  const mixes = valuePlane(lab);
  lab.root.append(element("div", { class: "lab-home" },
    lines.frame, looks.frame, mixes.frame));
  lab.hint((values, result) =>
    `Drag the query ■ or a key ●, or move them with the arrow keys. `
    + letters(values, result));
  return (values, result) => {
    for (const part of [lines, looks, mixes]) part.show(values, result);
    lab.say(sees(values, result));
  };
}

// A word that is another now has not been dragged anywhere.
function typed(values, words) {
  const [before, now] = [values.words.split(" "), words.split(" ")];
  const kept = (moved) => moved.map((by, i) =>
    before[i] === now[i] ? by : [0, 0]);
  return { words, q: kept(values.q), k: kept(values.k) };
}

function letters({ words, asks }, { v }) {
  const word = words.split(" ")[asks];
  return `“${word}” is ${[...word].join(" + ")}: each letter an arrow on `
    + `a clock from a to z, together ${pair(v[asks])}.`;
}

// Words that ask, words that are listened to, and lines as thick as weights.
function weightLines(lab) {
  const picture = drawn("svg", { class: "lab-lines", role: "img",
    "aria-label": "Lines from each word to those that it listens to",
    preserveAspectRatio: "none" });
  const lines = Array.from({ length: MOST * MOST }, () => drawn("line", {
    x1: 0, x2: 100, "vector-effect": "non-scaling-stroke" }));
  picture.append(...lines);
  const { choice, labels } = lab.words("asks", "asks",
    Array.from({ length: MOST }, () => ""), ({ words }) =>
      words.split(" ").length);
  const seen = labels.map(() => ({ name: element("span", {}),
    weight: element("b", {}) }));
  const rows = seen.map((x) => element("li", {}, x.weight, " ", x.name));
  rows.forEach((row, j) => lab.explain(row, (values, result) =>
    keySentence(values, result, j)));
  const listened = element("ol", {}, ...rows);
  const frame = element("div", { class: "lab-links" }, choice, picture,
    element("div", { class: "lab-listened" },
      element("span", { class: "lab-head" }, "is heard"), listened));

  function show({ words: text, asks }, { weights, mask }) {
    const words = text.split(" ");
    set(picture, { viewBox: `0 0 100 ${words.length}` });
    frame.style.setProperty("--n", words.length);
    labels.forEach((label, i) => {
      write(label.querySelector("span"), words[i] ?? "");
      rows[i].hidden = i >= words.length;
      if (i >= words.length) return;
      write(seen[i].name, words[i]);
      const share = percent(weights[asks][i]);
      write(seen[i].weight, mask[asks][i] ? share : "hidden");
      rows[i].classList.toggle("lab-hidden", !mask[asks][i]);
    });
    lines.forEach((line, at) => {
      const [i, j] = [Math.floor(at / MOST), at % MOST];
      const weight = weights[i]?.[j] ?? 0;
      line.classList.toggle("lab-absent", weight < 0.005);
      line.classList.toggle("lab-chosen-line", i === asks);
      set(line, { y1: i + 0.5, y2: j + 0.5,
        "stroke-width": (14 * weight).toFixed(2) });
    });
  }
  return { frame, show };
}

function keySentence({ words: text, asks }, { scores, weights, mask }, j) {
  const words = text.split(" ");
  if (j >= words.length) return "";
  if (!mask[asks][j]) return `“${words[j]}” is later: hidden.`;
  return `“${words[asks]}” and the key of “${words[j]}”: score `
    + `${decimal(scores[asks][j], 2)}, weight ${decimal(weights[asks][j])}.`;
}

// The left plane: the query of the word that asks, and all keys.
function lookPlane(lab) {
  const rule = { low: -EDGE, high: EDGE, step: 0.1 };
  const plane = new Plane("Query ■ and keys ●", rule);
  const drag = (name, i, to) => {
    const [by, at] = [lab.values()[name], lab.result[name][i]];
    const moved = to.map((x, axis) =>
      Number((by[i][axis] + x - at[axis]).toFixed(1)));
    lab.set({ [name]: by.with(i, moved) });
  };
  const arrow = plane.line([0, 0], [0, 0], "lab-query-line");
  const reach = () => drawn("circle", { r: 16, class: "lab-reach" });
  const keys = Array.from({ length: MOST }, (_, j) => {
    const key = mark("lab-key", "", reach(), drawn("circle", { r: 6 }));
    makeHandle(key, plane, rule, `Key ${j + 1}`, {
      where: () => lab.result.k[j], moved: (to) => drag("k", j, to) });
    lab.explain(key, (now, result) => keySentence(now, result, j));
    return key;
  });
  const query = mark("lab-query", "", reach(),
    drawn("rect", { x: -6, y: -6, width: 12, height: 12 }));
  const asks = () => lab.values().asks;
  makeHandle(query, plane, rule, "Query", {
    where: () => lab.result.q[asks()], moved: (to) => drag("q", asks(), to) });
  lab.explain(query, sees);
  plane.picture.append(arrow, ...keys, query);

  function show(values, result) {
    const words = values.words.split(" ");
    const at = result.q[values.asks];
    plane.move(arrow, [0, 0], at);
    plane.shift(query, at);
    set(query, { "aria-label": `Query of ${words[values.asks]}` });
    sayHandle(query, at, sees(values, result));
    keys.forEach((key, j) => {
      key.classList.toggle("lab-absent", j >= words.length);
      set(key, { tabindex: j < words.length ? 0 : -1 });
      if (j >= words.length) return;
      key.classList.toggle("lab-hidden", !result.mask[values.asks][j]);
      label(key.querySelector("text"), words, result.k, j);
      plane.shift(key, result.k[j]);
      set(key, { "aria-label": `Key of ${words[j]}` });
      sayHandle(key, result.k[j], keySentence(values, result, j));
    });
    plane.letter([query, ...keys], at);
  }
  return { frame: plane.frame, show };
}

// Writes the word of a point, unless it is written there already.
function label(text, words, points, j) {
  const near = (x, axis) => Math.abs(x - points[j][axis]) < 0.25;
  const before = words.slice(0, j).filter((_, i) => points[i].every(near));
  write(text, before.includes(words[j]) ? "" : words[j]);
}

// The right plane: the values, as large as their weights, their average, and
// the letters of the word that asks, one after the other.
function valuePlane(lab) {
  const plane = new Plane("Values ● and output ◆", { low: -EDGE, high: EDGE });
  const chain = drawn("polyline", { class: "lab-letters" });
  const marks = Array.from({ length: MOST }, (_, j) => {
    const value = mark("lab-value-mark", "", drawn("circle"));
    lab.explain(value, (now, result) => keySentence(now, result, j));
    return value;
  });
  const output = mark("lab-output", "",
    drawn("path", { d: "M0 -8 L8 0 L0 8 L-8 0 Z" }));
  lab.explain(output, sees);
  plane.picture.append(chain, ...marks, output);

  function show({ words: text, asks }, { v, weights, mask, output: outputs }) {
    const words = text.split(" ");
    marks.forEach((value, j) => {
      value.classList.toggle("lab-absent", j >= words.length);
      if (j >= words.length) return;
      value.classList.toggle("lab-hidden", !mask[asks][j]);
      label(value.querySelector("text"), words, v, j);
      const r = 3 + 14 * Math.sqrt(weights[asks][j]);
      plane.shift(value, v[j], r);
      set(value.querySelector("circle"), { r: r.toFixed(2) });
    });
    plane.shift(output, outputs[asks], 8);
    plane.letter([output, ...marks]);
    const path = letterPath(words[asks]).map((point) => plane.place(point));
    set(chain, { points: path.map((x) => x.join(",")).join(" ") });
  }
  return { frame: plane.frame, show };
}

// From the middle to a word's value, a letter a step.
function letterPath(word) {
  const all = [...word.toLowerCase()], root = Math.sqrt(all.length);
  const next = (at, c) => at.map((x, i) => x + letterArrow(c)[i] / root);
  return all.reduce((path, c) => [...path, next(path.at(-1), c)], [[0, 0]]);
}

export default defineLab({ compute: attendWords, build, sees, tasks });
