// A small trained model on a text that one types: what each of its heads
// looks at, and what the loss says when some of them are switched off.

import { defineLab } from "./machinery/controls.js";
import { decimal, element, set, share, write } from "./machinery/drawing.js";
import {
  WORDS, forward, shares, surprises,
} from "./looking_inside_forward.js";
import { NAMES, sees, tasks } from "./looking_inside_insight.js";

const GUESSES = 3;
const ALL = NAMES.map(() => true);
const mean = (numbers) => numbers.reduce((a, b) => a + b, 0) / numbers.length;

// A full stop begins every text; a word that it has never read is "?".
function tokensOf(text) {
  const known = text.split(" ").map((word) => WORDS.indexOf(word));
  return [WORDS.indexOf("."), ...known]
    .map((token) => (token < 0 ? WORDS.indexOf("?") : token));
}

// With all heads on, and with one of them off: of a text, worked out once.
let kept = { words: null };

function baseline(words) {
  if (kept.words !== words) {
    const tokens = tokensOf(words);
    const loss = (on) =>
      mean(surprises(tokens, forward(tokens, on).scores));
    const without = NAMES.map((_, h) => loss(ALL.with(h, false)));
    kept = { words, whole: loss(ALL), without };
  }
  return kept;
}

function compute(values) {
  const { words } = values;
  const tokens = tokensOf(words);
  const on = NAMES.map((name) => values[keyOf(name)]);
  const { scores, weights } = forward(tokens, on);
  const next = shares(scores.at(-1));
  const guesses = next.map((p, i) => [WORDS[i], p])
    .sort((a, b) => b[1] - a[1]).slice(0, GUESSES);
  const { whole, without } = baseline(words);
  const nats = surprises(tokens, scores);
  return {
    read: tokens.map((token) => WORDS[token]),
    unknown: words.split(" ").filter((word) => !WORDS.includes(word)),
    scores: scores.map((row) => [...row]), weights, nats, loss: mean(nats),
    guesses, whole, without, off: NAMES.filter((_, h) => !on[h]),
  };
}

const keyOf = (name) => `head_${name.replace(".", "_")}`;

function build(lab) {
  const chooser = lab.words("head", "Whose weights?", NAMES,
    () => NAMES.length);
  lab.row(lab.typing("words", "Text, without its first full stop",
    (words) => lab.set({ words })));
  const maps = chooser.labels.map((label, h) => headMap(lab, label, h));
  chooser.choice.classList.add("lab-two-blocks");
  lab.root.append(chooser.choice);
  const legend = element("legend", {}, "Heads that are on");
  const switches = element("fieldset", { class: "lab-controls" }, legend,
    ...NAMES.map((name) => lab.checkbox(keyOf(name), name)));
  lab.root.append(switches);
  const heat = looking(lab);
  const loss = lossTable(lab);
  lab.root.append(element("div", { class: "lab-pair lab-wider" },
    element("div", { class: "lab-scroll", tabindex: 0, role: "region",
      "aria-label": "Weights of the chosen head" }, heat.frame),
    element("div", {}, loss.frame)));
  lab.hint(() => "Point at or tap a cell or a word’s loss, choose a head, or "
    + "switch heads off.");
  return (values, result) => {
    maps.forEach((map) => map(values, result));
    heat.show(values, result);
    loss.show(values, result);
    lab.say(`Loss ${decimal(result.loss)} nats a word, with all heads `
      + `${decimal(result.whole)}.`);
  };
}

const effect = (h, { without, whole }) =>
  `Head ${NAMES[h]} alone switched off: the loss of this text goes from `
  + `${decimal(whole)} to ${decimal(without[h])}.`;

// A small picture in the head's button: one pixel a weight.
function headMap(lab, label, h) {
  const canvas = element("canvas",
    { class: "lab-map", "aria-hidden": "true" });
  label.querySelector("span").append(canvas);
  const tell = (values, result) => effect(h, result);
  lab.explain(label, tell);
  lab.explain(label.querySelector("input"), tell);
  return (values, { weights, off }) => {
    const n = weights[h].length;
    set(label, { class: off.includes(NAMES[h]) ? "lab-hidden" : null });
    set(canvas, { width: n, height: n });
    const pen = canvas.getContext("2d");
    const picture = pen.createImageData(n, n);
    weights[h].flat().forEach((weight, pixel) => {
      picture.data[4 * pixel + 3] = Math.round(255 * weight);
    });
    pen.putImageData(picture, 0, 0);
  };
}

// Two decimals, without the nought.
const short = (weight) =>
  decimal(weight, 2).replace(/^0/, "").replace("1.00", "1.0");

// The chosen head's weights: a row each word that asks.
function looking(lab) {
  const head = element("tr");
  const body = element("tbody");
  const caption = element("caption");
  const frame = element("table", { class: "lab-heat" }, caption,
    element("thead", {}, head), body);

  function make(n) {
    frame.style.setProperty("--n", n);
    set(frame, { class: n > 9 ? "lab-heat lab-many" : "lab-heat" });
    const places = Array.from({ length: n }, (_, i) => i);
    head.replaceChildren(element("td"), ...places.map(() =>
      element("th", { scope: "col" }, element("span"))));
    body.replaceChildren(...places.map((i) => element("tr", {},
      element("th", { scope: "row" }), ...places.map((j) => {
        const cell = element("td");
        lab.explain(cell, (values, result) => sentence(i, j, values, result));
        return cell;
      }))));
  }

  function show({ head: h }, { read, weights }) {
    const n = read.length;
    if (body.rows.length !== n) make(n);
    write(caption, `Weights of head ${NAMES[h]}: rows ask, columns are `
      + "looked at");
    read.forEach((word, i) => {
      write(head.cells[i + 1].firstElementChild, word);
      write(body.rows[i].cells[0], word);
      weights[h][i].forEach((weight, j) => {
        const cell = body.rows[i].cells[j + 1];
        share(cell, weight);
        set(cell, { class: j > i ? "lab-hidden" : null });
        write(cell, j > i || weight < 0.005 ? "" : short(weight));
      });
    });
  }
  return { frame, show };
}

function sentence(i, j, { head }, { read, weights }) {
  if (i >= read.length || j >= read.length) return "";
  const pair = `${read[i]} (${i}) → ${read[j]} (${j}): `;
  if (j > i) return `${pair}it comes later, and cannot be seen.`;
  return `${pair}weight ${decimal(weights[head][i][j])} in head `
    + `${NAMES[head]}.`;
}

// How surprised the model is by each word.
function lossTable(lab) {
  const body = element("tbody");
  const caption = element("caption");
  const frame = element("table", { class: "lab-steps" }, caption, body);

  function show(values, { read, nats, loss, guesses }) {
    write(caption, `Loss: ${decimal(loss)} nats a word`);
    while (body.rows.length < read.length) {
      const i = body.rows.length;
      const row = element("tr", {}, element("th", { scope: "row" }),
        element("td", { class: "lab-bar" }));
      lab.explain(row, (now, result) => surprise(i, result));
      body.append(row);
    }
    [...body.rows].forEach((row, i) => { row.hidden = i >= read.length; });
    read.forEach((_, i) => {
      const [name, bar] = body.rows[i].cells;
      const last = i === nats.length;
      write(name, last ? `then ${guesses[0][0]}?` : read[i + 1]);
      const amount = last ? guesses[0][1] : nats[i];
      share(bar, last ? 0 : Math.min(1, amount / 4));
      write(bar, last ? `${Math.round(100 * amount)}%` : decimal(amount, 2));
    });
  }
  return { frame, show };
}

function surprise(i, { read, nats, guesses }) {
  if (i > nats.length) return "";
  if (i === nats.length)
    return `Next it expects ${guesses.map(([word, p]) =>
      `${word} (${Math.round(100 * p)}%)`).join(", ")}.`;
  return `After ${read[i]} it gave ${read[i + 1]} a share of `
    + `${decimal(Math.exp(-nats[i]))}: ${decimal(nats[i])} nats.`;
}

export default defineLab({ compute, build, sees, tasks });
