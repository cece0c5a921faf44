// A mask, chosen or drawn: in four conventions, with its weights and calls.

import { dotProducts, maskedSoftmax } from "./machinery/core.js";
import { defineLab } from "./machinery/controls.js";
import { decimal, element, set, write } from "./machinery/drawing.js";
import { Shades, dotted } from "./machinery/shades.js";
import { inOrder } from "./machinery/settings.js";
import { CALLS, writeCalls } from "./mask_calls.js";
import { sees, tasks } from "./masks_insight.js";

// Queries and keys of two features: first the book's running numbers.
const QUERIES = [[1, 0], [0, 2], [2, 1]];
const KEYS = [[1, 1], [2, 0], [0, 1]];

const half = (x) => ((x % 7) - 3) / 2;
const query = (p) => QUERIES[p] ?? [half(5 * p + 2), half(3 * p + 4)];
const key = (p) => KEYS[p] ?? [half(4 * p + 1), half(2 * p + 5)];

// Documents of `size` tokens, one more, and so on: n tokens in all.
function lengthsOf(n, size) {
  const lengths = [];
  for (let left = n; left > 0; left -= lengths.at(-1))
    lengths.push(Math.min(size + lengths.length, left));
  return lengths;
}

// May a query at position i look at key j? i may lie outside the text.
const KINDS = {
  none: () => () => true,
  causal: () => (i, j) => j <= i,
  prefix: ({ size }) => (i, j) => j <= i || j < size,
  window: ({ size }) => (i, j) => Math.abs(i - j) < size,
  block: ({ size }) => (i, j) =>
    Math.floor(i / size) === Math.floor(j / size),
  documents({ n, size }) {
    const names = lengthsOf(n, size).flatMap((length, name) =>
      Array(length).fill(name));
    return (i, j) => names[i] === names[j];
  },
};

function keepOf(values) {
  const { kind, n, n_q, causal, padded, left, alignment } = values;
  const maySee = KINDS[kind](values);
  const start = alignment === "first" ? 0 : n - n_q;
  const [from, to] = left ? [padded, n] : [0, n - padded];
  const keep = Array.from({ length: n_q }, (_, row) => {
    const [i, last] = [row + start, causal ? row + start : n];
    const seen = Array(n).fill(false);
    for (let j = from; j < to && j <= last; j += 1) seen[j] = maySee(i, j);
    return seen;
  });
  for (const [i, j] of inTable(values)) keep[i][j] = !keep[i][j];
  return keep;
}

// What is drawn outside the present table waits there.
function inTable({ flipped, n, n_q }) {
  return flipped.filter(([i, j]) => i < n_q && j < n);
}

// The scores of so many queries and keys: no mask changes them.
let scored = {};

function scoresOf({ n, n_q }) {
  if (scored.n !== n || scored.n_q !== n_q) {
    const first = Math.max(0, n - n_q);
    const q = Array.from({ length: n_q }, (_, row) => query(first + row));
    const k = Array.from({ length: n }, (_, p) => key(p));
    const scores = dotProducts(q, k).map((row) =>
      row.map((score) => score / Math.SQRT2));
    scored = { n, n_q, scores };
  }
  return scored.scores;
}

function compute(values) {
  const keep = keepOf(values);
  const weights = scoresOf(values).map((row, i) =>
    maskedSoftmax(row, keep[i]));
  const seen = keep.map(trues);
  const empty = seen.flatMap((count, i) => (count ? [] : [i]));
  const allowed = seen.reduce((sum, count) => sum + count, 0);
  const calls = writeCalls({
    ...values, flipped: inTable(values),
    lengths: lengthsOf(values.n, values.size), empty });
  return { keep, weights, empty, allowed, calls };
}

const trues = (row) => row.reduce((count, one) => count + one, 0);

const CONVENTIONS = [
  { title: "keep: True may look", dark: true, short: ["T", "F"],
    yes: "True", no: "False" },
  { title: "block: True may not", dark: false, short: ["F", "T"],
    yes: "False", no: "True" },
  { title: "added to the scores", dark: false, short: ["0", "−∞"],
    yes: "0", no: "−∞" },
  { title: "0/1: compared with 0", dark: true, short: ["1", "0"],
    yes: "1", no: "0" },
];

const SIZES = {
  prefix: "Prefix", window: "Window, itself counted", block: "Block",
  documents: "First document",
};

function build(lab) {
  const values = () => lab.values();
  const sizeName = element("span", {}, "");
  // As long as there are as many queries as keys, they go along.
  const keys = lab.range("n", ["Keys ", element("i", {}, "n")],
    { along: "n_q" });
  const square = ({ n, n_q }) => n === n_q;
  const also = lab.checkbox("causal", "and causal");
  const left = lab.checkbox("left", "on the left");
  const align = lab.select("alignment", "Where the queries sit", {
    last: "the last on the last key", first: "the first on the first key" });
  lab.row(
    lab.select("kind", "Mask", {
      none: "none", causal: "causal: no later key",
      prefix: "prefix: its keys for all, then causal",
      window: "window: near keys only", block: "blocks that see themselves",
      documents: "documents that see themselves",
    }),
    also,
    lab.range("size", [sizeName], { when: ({ kind }) => kind in SIZES }),
    keys,
    lab.range("n_q", "Queries"),
    align,
    lab.range("padded", "Padding"), left,
  );
  const mask = new Shades("Mask: press a cell to change it", "lab-drawn", 12);
  const weights = new Shades("Weights", "", 12);
  const four = CONVENTIONS.map(({ title }) =>
    new Shades(title, "lab-small", 8));
  lab.root.append(
    element("div", { class: "lab-pair" }, mask.frame, weights.frame));
  const change = element("button", { type: "button" }, "Change this pair");
  change.addEventListener("click", () => flip(lab, values().i, values().j));
  const rub = element("button", { type: "button" }, "Undo the drawing");
  rub.addEventListener("click", () => lab.set({ flipped: [] }));
  lab.row(lab.range("i", ["Query ", element("i", {}, "i")]),
    lab.range("j", ["Key ", element("i", {}, "j")]), change, rub)
    .classList.add("lab-foot");
  const note = element("p", { class: "lab-note" });
  const calls = Object.values(CALLS).map((title) => {
    const text = element("code");
    return { text, frame: element("figure", { class: "lab-call" },
      element("figcaption", {}, title), element("pre", {}, text)) };
  });
  lab.root.append(note,
    element("div", { class: "lab-four" }, ...four.map((one) => one.frame)),
    ...calls.map((one) => one.frame));
  draw(lab, mask);
  for (const part of [weights, ...four])
    part.canvas.addEventListener("pointermove", (event) => {
      const [i, j] = part.pointed(event, values());
      lab.detail((now, result) => sentence(result, i, j));
    });

  return (now, result) => {
    const { n, n_q, i, j, kind, padded } = now;
    const { keep, allowed } = result;
    write(sizeName, SIZES[kind] ?? "");
    also.hidden = kind === "causal";
    left.hidden = padded === 0;
    align.hidden = square(now);
    rub.hidden = now.flipped.length === 0;
    const kept = dotted(keep);
    const hidden = dotted(keep.map((row) => row.map((may) => !may)));
    mask.show(kept, (r, c) => (keep[r][c] ? "" : "·"),
      { marked: [i, j], struck: result.empty });
    weights.show(dotted(result.weights), (r, c) => (keep[r][c]
        ? decimal(result.weights[r][c], 2).replace(/^0/, "") : ""),
      { marked: [i, j] });
    CONVENTIONS.forEach(({ dark, short }, f) =>
      four[f].show(dark ? kept : hidden,
        (r, c) => short[Number(!keep[r][c])]));
    calls.forEach(({ text }, c) =>
      write(text, result.calls[Object.keys(CALLS)[c]]));
    write(note, emptyNote(result.empty));
    note.className = result.empty.length ? "lab-complaint" : "lab-note";
    lab.hint((at, shown) => sentence(shown, at.i, at.j));
    set(mask.canvas, { "aria-label":
      `Mask of ${n_q} queries and ${n} keys; ${allowed} pairs may look` });
    lab.say(`${allowed} of ${n * n_q} pairs may look. `
      + `${emptyNote(result.empty)} ${sentence(result, i, j)}`);
  };
}

// Turns a cell round; `most` cells can be kept in the address.
function flip(lab, i, j) {
  const { flipped } = lab.values();
  const others = flipped.filter(([r, c]) => r !== i || c !== j);
  const { most } = lab.rules.flipped;
  if (others.length === flipped.length && flipped.length >= most) {
    lab.complain(`No more than ${most} cells can be drawn.`);
    return;
  }
  const more = others.length === flipped.length ? [[i, j]] : [];
  lab.set({ i, j, flipped: inOrder([...others, ...more]) });
}

// A press turns a cell round; a mouse that is dragged makes others like it.
function draw(lab, mask) {
  let painting = null;
  const at = (event) => mask.pointed(event, lab.values());
  mask.canvas.addEventListener("pointerdown", (event) => {
    const [i, j] = at(event);
    flip(lab, i, j);
    if (event.pointerType === "touch") return; // it may want to scroll
    painting = lab.result.keep[i][j];
    mask.canvas.setPointerCapture(event.pointerId);
    event.preventDefault();
  });
  mask.canvas.addEventListener("pointermove", (event) => {
    const [i, j] = at(event);
    if (painting !== null && lab.result.keep[i][j] !== painting)
      flip(lab, i, j);
    lab.detail((values, result) => sentence(result, i, j));
  });
  for (const end of ["pointerup", "pointercancel"])
    mask.canvas.addEventListener(end, () => { painting = null; });
}

// One pair of a query and a key, in all four conventions.
function sentence({ keep, weights }, i, j) {
  const said = CONVENTIONS.map(({ title, yes, no }) =>
    `${title.split(/:| to/)[0]} ${keep[i][j] ? yes : no}`);
  return `Query ${i}, key ${j}: ${said.join(", ")}; `
    + `weight ${decimal(weights[i][j])}.`;
}

function emptyNote(empty) {
  if (empty.length === 0) return "Every query may see something.";
  const rows = empty.length > 6
    ? `${empty.slice(0, 5).join(", ")} and ${empty.length - 5} more`
    : empty.join(", ");
  return `Empty: ${empty.length === 1 ? "query" : "queries"} ${rows} may see `
    + "nothing. Zeros here and in SDPA; NaN with −∞ elsewhere; with −1e9 or "
    + "the lowest number the average of everything.";
}

export default defineLab({ compute, build, sees, tasks });
