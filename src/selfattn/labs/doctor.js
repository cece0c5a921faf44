// A mistake of the doctor's bank, on a probe of the reader's own sizes.

import {
  causalMask, dotProducts, fixedNumbers, fullMask, maskedSoftmax,
  paddingMask, product,
} from "./machinery/core.js";
import { defineLab } from "./machinery/controls.js";
import { decimal, element, write } from "./machinery/drawing.js";
import { sees, tasks } from "./doctor_insight.js";

const TOKENS = 4;
const FEATURES = 3;
const TOLERANCE = 1e-9; // rounding takes some 1e-15

const [Q, K, V] = [101, 211, 307].map((state) => {
  const numbers = fixedNumbers(state, TOKENS * FEATURES);
  return Array.from({ length: TOKENS }, (_, row) =>
    numbers.slice(row * FEATURES, (row + 1) * FEATURES));
});

const corner = (table, rows, columns) =>
  table.slice(0, rows).map((row) => row.slice(0, columns));
const turned = (table) => table[0].map((_, j) => table.map((row) => row[j]));

// Probes that stand beside the reader's, from weak to strong.
const PROBES = [
  ["one token, one feature", [1, 1, 1, 1], "none"],
  ["all sizes 3", [3, 3, 3, 3], "none"],
  ["four sizes", [2, 4, 3, 1], "none"],
  ["all sizes 3, causal", [3, 3, 3, 3], "causal"],
  ["four sizes, causal", [2, 4, 3, 1], "causal"],
  ["more queries than keys, causal", [4, 2, 3, 1], "causal"],
  ["four sizes, padding", [2, 4, 3, 1], "padding"],
].map(([title, [n_q, n_k, d_k, d_v], mask]) =>
  ({ title, sizes: { n_q, n_k, d_k, d_v, mask } }));

const MASKS = {
  none: fullMask,
  causal: causalMask,
  padding: (n_q, n_k) => paddingMask(n_q, n_k, n_k - 1),
};

function scaled(q, k, divisor = Math.sqrt(q[0].length)) {
  return dotProducts(q, k).map((row) => row.map((x) => x / divisor));
}

const softmax = (scores, mask) =>
  scores.map((row, i) => maskedSoftmax(row, mask[i]));
const filled = (scores, mask, fill) =>
  scores.map((row, i) => row.map((x, j) => (mask[i][j] ? x : fill)));
const everywhere = (scores) => fullMask(scores.length, scores[0].length);

// Another divisor, and all else right.
const divided = (by) => (q, k, v, mask) =>
  product(softmax(scaled(q, k, by(q, k, v)), mask), v);
// Another causal table, and all else right.
const causally = (table) => (q, k, v, mask, kind) => {
  const other = kind === "causal" ? table(q.length, k.length) : mask;
  return product(softmax(scaled(q, k), other), v);
};
const past = (n_q, n_k, maySee) => Array.from({ length: n_q }, (_, i) =>
  Array.from({ length: n_k }, (_, j) => maySee(i, j)));

// (q, k, v, mask, kind of mask) → output, or null where PyTorch raises.
const PATIENTS = {
  "none: this one is right": divided((q) => Math.sqrt(q[0].length)),
  "no scale": divided(() => 1),
  "divided by d": divided((q) => q[0].length),
  "scaled by the width of v": divided((q, k, v) => Math.sqrt(v[0].length)),
  "scaled by the number of keys": divided((q, k) => Math.sqrt(k.length)),
  "softmax over queries": (q, k, v, mask) =>
    product(turned(softmax(turned(scaled(q, k)), turned(mask))), v),
  "mask upside down": (q, k, v, mask, kind) => product(softmax(scaled(q, k),
    kind === "none" ? mask : mask.map((row) => row.map((x) => !x))), v),
  "mask after softmax"(q, k, v, mask) {
    const scores = scaled(q, k);
    return product(filled(softmax(scores, everywhere(scores)), mask, 0), v);
  },
  "masked with zero"(q, k, v, mask) {
    const scores = filled(scaled(q, k), mask, 0);
    return product(softmax(scores, everywhere(scores)), v);
  },
  "empty row gives nan": (q, k, v, mask) =>
    product(softmax(scaled(q, k), mask).map((row, i) =>
      (mask[i].includes(true) ? row : row.map(() => NaN))), v),
  "keys and values swapped": (q, k, v, mask) =>
    (k[0].length === v[0].length
      ? product(softmax(scaled(q, v), mask), k) : null),
  "weights on their side": (q, k, v, mask) =>
    (q.length === k.length
      ? product(turned(softmax(scaled(q, k), mask)), v) : null),
  "weights returned": (q, k, v, mask) => softmax(scaled(q, k), mask),
  "first on first": causally((n_q, n_k) => past(n_q, n_k, (i, j) => j <= i)),
  "one too many": causally((n_q, n_k) =>
    past(n_q, n_k, (i, j) => j <= i + n_k - n_q + 1)),
  "not itself": causally((n_q, n_k) =>
    past(n_q, n_k, (i, j) => j < i + n_k - n_q)),
};

function outputs({ mistake, n_q, n_k, d_k, d_v, mask }) {
  const given = [corner(Q, n_q, d_k), corner(K, n_k, d_k),
    corner(V, n_k, d_v), MASKS[mask](n_q, n_k), mask];
  const right = PATIENTS["none: this one is right"](...given);
  return { right, given: PATIENTS[mistake](...given) };
}

const sameShape = (a, b) =>
  a.length === b.length && a[0].length === b[0].length;

// NaN is wrong, too: it is not within any tolerance.
function differences({ right, given }) {
  if (given === null || !sameShape(given, right)) return null;
  return right.map((row, i) => row.map((x, j) =>
    !(Math.abs(given[i][j] - x) <= TOLERANCE)));
}

const differs = (shown) => differences(shown)?.flat().includes(true) ?? true;

function compute(values) {
  const shown = outputs(values);
  return {
    ...shown,
    wrong: differences(shown),
    seen: differs(shown),
    probes: PROBES.map(({ sizes }) =>
      differs(outputs({ ...values, ...sizes }))),
  };
}

function build(lab) {
  const letter = (name, index) =>
    [element("i", {}, name), element("sub", {}, index)];
  lab.row(
    lab.select("mistake", "Mistake"),
    lab.select("mask", "Mask", {
      none: "none", causal: "causal", padding: "the last key is padding" }),
    lab.range("n_q", ["Queries ", ...letter("n", "q")]),
    lab.range("n_k", ["Keys ", ...letter("n", "k")]),
    lab.range("d_k", ["Width of keys ", ...letter("d", "k")]),
    lab.range("d_v", ["Width of values ", ...letter("d", "v")]),
  );
  const right = numberTable("Right");
  const given = numberTable("Given");
  const note = element("p", { class: "lab-note" });
  const panel = probeTable(lab);
  lab.root.append(
    element("div", { class: "lab-pair" },
      element("div", { class: "lab-scroll" }, right.frame),
      element("div", { class: "lab-scroll" }, given.frame)),
    note, element("div", { class: "lab-scroll" }, panel.frame));

  lab.hint(({ mistake }, { probes }) =>
    `${probes.filter(Boolean).length} of ${PROBES.length} other probes see `
    + `“${mistake}”.`);
  return (values, now) => {
    right.show("The right output", now.right);
    given.show(now.given === null ? "It gives an error"
      : now.wrong === null ? "It gives another shape" : "It gives",
    now.given ?? [], now.wrong);
    panel.show(now.probes);
    write(note, verdict(values, now));
    note.className = now.seen ? "lab-complaint" : "lab-note";
    lab.say(verdict(values, now));
  };
}

function verdict({ mistake }, { given, right, wrong, seen }) {
  if (!seen) return `Not seen: on this probe, “${mistake}” is right.`;
  if (given === null) return "Seen: PyTorch raises, since sizes do not fit.";
  if (wrong === null)
    return `Seen: the shape is (${given.length}, ${given[0].length}) and `
      + `should be (${right.length}, ${right[0].length}).`;
  const count = wrong.flat().filter(Boolean).length;
  return `Seen: ${count} of ${wrong.flat().length} numbers are wrong.`;
}

// A table of numbers; a cross stands before those that are wrong.
function numberTable() {
  const caption = element("caption");
  const body = element("tbody");
  const frame = element("table", { class: "lab-outputs" }, caption, body);

  function show(title, numbers, wrong = null) {
    write(caption, title);
    body.replaceChildren(...numbers.map((row, i) => element("tr", {},
      element("th", { scope: "row" }, `query ${i + 1}`),
      ...row.map((x, j) => element("td", {},
        `${wrong?.[i][j] ? "✗ " : ""}`
        + `${Number.isNaN(x) ? "NaN" : decimal(x)}`)))));
  }
  return { frame, show };
}

// The other probes: what they see, and a button that goes there.
function probeTable(lab) {
  const marks = PROBES.map(() => element("td"));
  const frame = element("table", {},
    element("caption", {}, "Which other probes see it"),
    element("tbody", {}, ...PROBES.map(({ title, sizes }, i) => {
      const go = element("button", { type: "button",
        "aria-label": `Try this probe: ${title}` }, "Try");
      go.addEventListener("click", () => lab.set(sizes));
      return element("tr", {}, element("th", { scope: "row" }, title),
        marks[i], element("td", { class: "lab-foot" }, go));
    })));
  const show = (seen) => seen.forEach((yes, i) =>
    write(marks[i], yes ? "✗ sees it" : "sees nothing"));
  return { frame, show };
}

export default defineLab({ compute, build, sees, tasks });
