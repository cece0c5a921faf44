// Windows of a picture, shifted in every second layer: who has heard whom.

import { defineLab } from "./machinery/controls.js";
import { drawn, element, set, write } from "./machinery/drawing.js";
import { namedNumbers } from "./machinery/pictures.js";
import { sees, tasks } from "./swin_insight.js";

const [ROWS, COLUMNS] = [6, 12];
const N = ROWS * COLUMNS;
const TOKENS = Array.from({ length: N }, (_, i) => i);
const rowOf = (i) => Math.floor(i / COLUMNS);
const round = (x, n) => ((x % n) + n) % n;

// Whose window each token is in: equal numbers, equal window.
function numbers(window, shift, masked) {
  return TOKENS.map((i) => {
    let [down, right] = [rowOf(i) - shift, (i % COLUMNS) - shift];
    if (!masked) [down, right] = [round(down, ROWS), round(right, COLUMNS)];
    return (Math.floor(down / window) + 1) * (COLUMNS + 1)
      + Math.floor(right / window) + 1;
  });
}

// What the token hears if this many layers lie between it and the picture.
function heardThrough(every, token) {
  let heard = new Set([token]);
  for (const own of [...every].reverse()) {
    const open = new Set([...heard].map((i) => own[i]));
    heard = new Set(TOKENS.filter((i) => open.has(own[i])));
  }
  return heard;
}

function compute({ window, layers, shifted, masked, row, column }) {
  const every = Array.from({ length: layers }, (_, layer) => numbers(window,
    shifted && layer % 2 ? Math.floor(window / 2) : 0, masked));
  const token = row * COLUMNS + column;
  const after = TOKENS.map(() => -1);
  for (let last = layers; last > 0; last -= 1)
    for (const i of heardThrough(every.slice(0, last), token))
      after[i] = last;
  after[token] = 0;
  const beside = TOKENS.filter((i) => Math.max(Math.abs(rowOf(i) - row),
    Math.abs((i % COLUMNS) - column)) === 1);
  const met = beside.filter((i) =>
    every.some((own) => own[i] === own[token]));
  const sizes = every.map((own) => {
    const many = new Map();
    for (const one of own) many.set(one, (many.get(one) ?? 0) + 1);
    return [...many.values()].reduce((sum, size) => sum + size * size, 0);
  });
  return {
    after, windows: every.at(-1), touching: beside.length, met: met.length,
    pairs: sizes.reduce((sum, size) => sum + size, 0),
    full: layers * N * N,
  };
}

const STEP = 28;
const grouped = (number) =>
  String(number).replace(/\B(?=(\d{3})+$)/g, ",");
const [WIDE, HIGH] = [COLUMNS * STEP, ROWS * STEP];
const SHADES = [0.9, 0.9, 0.45, 0.32, 0.24, 0.18, 0.14];

function build(lab) {
  const place = { text: (i) => String(i + 1) };
  lab.row(
    lab.range("window", "Window"),
    lab.range("layers", "Layers"),
    lab.range("row", "Row", place),
    lab.range("column", "Column", place),
    lab.checkbox("shifted", "every second layer shifted"),
    lab.checkbox("masked", "corners masked"),
  );
  const picture = drawn("svg", {
    viewBox: `-2 -2 ${WIDE + 4} ${HIGH + 4}`, role: "img",
    "aria-label": "After how many layers the token has heard each other",
    style: `aspect-ratio: ${WIDE + 4} / ${HIGH + 4}` });
  const tokens = TOKENS.map((i) => tokenMark(lab, i));
  const borders = drawn("path", { class: "lab-query-line", fill: "none",
    "pointer-events": "none" });
  picture.append(...tokens.map(({ group }) => group), borders);
  const caption = element("figcaption");
  const counts = namedNumbers("Counted");
  lab.root.append(element("div", { class: "lab-pair" },
    element("figure", { class: "lab-plane" }, caption, picture),
    element("div", { class: "lab-scroll" }, counts.frame)));
  lab.hint(() => "Point at a token, or press it: it becomes the one that "
    + "hears.");

  return (values, now) => {
    write(caption, "After how many layers it has heard each token; lines "
      + `part the windows of layer ${values.layers}`);
    tokens.forEach((one) => one.show(now));
    set(borders, { d: walls(now.windows) });
    counts.show([
      ["tokens heard", String(now.after.filter((x) => x >= 0).length)],
      ["tokens that touch it", String(now.touching)],
      ["of them, in a window with it", String(now.met)],
      ["pairs looked at, in all layers", grouped(now.pairs)],
      ["pairs if all saw all", grouped(now.full)],
    ]);
    lab.say(sees(values, now));
  };
}

// Lines between tokens whose windows differ, and round the picture.
function walls(own) {
  const lines = [`M0 0H${WIDE}V${HIGH}H0Z`];
  for (const i of TOKENS) {
    const [x, y] = [(i % COLUMNS) * STEP, rowOf(i) * STEP];
    if (x && own[i] !== own[i - 1]) lines.push(`M${x} ${y}v${STEP}`);
    if (y && own[i] !== own[i - COLUMNS]) lines.push(`M${x} ${y}h${STEP}`);
  }
  return lines.join("");
}

// A token: its square, and the layers that it takes to hear it.
function tokenMark(lab, i) {
  const [row, column] = [rowOf(i), i % COLUMNS];
  const cell = drawn("rect", { x: column * STEP + 2, y: row * STEP + 2,
    width: STEP - 4, height: STEP - 4, rx: 3, class: "lab-sorted" });
  const word = drawn("text", { x: (column + 0.5) * STEP,
    y: (row + 0.5) * STEP + 4, class: "lab-tick", "text-anchor": "middle",
    "pointer-events": "none" });
  const group = drawn("g", {}, cell, word);
  lab.explain(group, (values, now) => sentence(i, now));
  group.addEventListener("click", () => lab.set({ row, column }));
  function show({ after }) {
    const layers = after[i];
    set(cell, { fill: layers ? "var(--key)" : "var(--query)",
      "fill-opacity": layers < 0 ? 0.06 : SHADES[layers] });
    write(word, layers > 0 ? String(layers) : "");
    set(word, { style: layers === 1 ? "fill: var(--on-key)"
      : "fill: var(--ink)" });
  }
  return { group, show };
}

// What a square says.
function sentence(i, { after }) {
  const name = `Row ${rowOf(i) + 1}, column ${(i % COLUMNS) + 1}`;
  if (after[i] === 0) return `${name}: the token that hears.`;
  if (after[i] < 0) return `${name}: not heard.`;
  return `${name}: heard after ${after[i]} `
    + `${after[i] === 1 ? "layer" : "layers"}.`;
}

export default defineLab({ compute, build, sees, tasks });
