// A memory of fixed size: tokens are written into it, keys ask it.

import { defineLab } from "./machinery/controls.js";
import { decimal, element, set, share, write } from "./machinery/drawing.js";
import { pair, sees, tasks, wordsOf } from "./linear_insight.js";

const TOKENS = 4;
const [ALIKE, APART] = [0.6, 0.8]; // of a key: what is shared, what its own
const [E_1, E_2, E_3] = [[1, 0, 0], [0, 1, 0], [0, 0, 1]];
const VALUES = [[1, 0], [0, 2], [3, 1], [-1, 2]];
const KEYS = {
  "three apart, one more": [E_1, E_2, E_3, [2 / 3, 2 / 3, 1 / 3]],
  "one twice": [E_1, E_2, E_1, E_3],
  alike: [[ALIKE, APART, 0], [ALIKE, 0, APART], [APART, ALIKE, 0],
    [APART, 0, ALIKE]],
};
const RIGHT = 0.05; // a value that comes back nearer than this is right

// What a key brings back: key · memory.
const asked = (key, state) => state[0].map((_, c) =>
  key.reduce((sum, x, f) => sum + x * state[f][c], 0));

const distance = (a, b) => Math.hypot(...a.map((x, c) => x - b[c]));

function compute({ tokens, read, gate, delta }) {
  const [keys, words] = [KEYS[tokens], wordsOf(tokens)];
  let state = E_1.map(() => [0, 0]);
  for (let j = 0; j < read; j += 1) {
    const faded = state.map((row) => row.map((x) => gate * x));
    const brings = asked(keys[j], faded);
    const written = VALUES[j].map((x, c) => (delta ? x - brings[c] : x));
    state = faded.map((row, f) => row.map((x, c) =>
      x + keys[j][f] * written[c]));
  }
  const back = keys.map((key) => asked(key, state));
  const wanted = words.map((word) =>
    VALUES[words.slice(0, read).lastIndexOf(word)] ?? null);
  const off = back.map((row, j) => wanted[j] && distance(row, wanted[j]));
  const first = words.map((word, j) => words.indexOf(word) === j);
  return {
    state, back, wanted, off,
    right: off.filter((x, j) => first[j] && x !== null && x < RIGHT).length,
    keys: off.filter((x, j) => first[j] && x !== null).length,
  };
}

function build(lab) {
  lab.row(
    lab.select("tokens", "Tokens"),
    lab.range("read", "Tokens written"),
    lab.range("gate", "Left at each token", { text: (x) => x.toFixed(1) }),
    lab.checkbox("delta", "delta rule"),
    lab.range("ask", "Ask with the key of token",
      { text: (i) => String(i + 1) }),
  );
  const [memory, list] = [memoryTable(lab), tokenTable(lab)];
  lab.root.append(element("div", { class: "lab-pair" },
    element("div", { class: "lab-scroll" }, memory.frame),
    element("div", { class: "lab-scroll", tabindex: 0, role: "region",
      "aria-label": "What each key brings back" }, list.frame)));
  lab.hint(() => "Move “Tokens written”, and point at or tap a number.");
  return (values, now) => {
    memory.show(values, now);
    list.show(values, now);
    lab.say(sees(values, now));
  };
}

// The matrix itself: a row a feature, a column a number of the value.
function memoryTable(lab) {
  const caption = element("caption");
  const rows = E_1.map((_, f) => {
    const cells = VALUES[0].map((__, c) => {
      const cell = element("td");
      lab.explain(cell, (values, { state }) =>
        `Feature ${f + 1} of the key, number ${c + 1} of the value: `
        + `${decimal(state[f][c])}.`);
      return cell;
    });
    return element("tr", {},
      element("th", { scope: "row" }, `feature ${f + 1}`), ...cells);
  });
  const frame = element("table", { class: "lab-heat lab-memory" }, caption,
    element("thead", {}, element("tr", {}, element("td"),
      ...["value 1", "value 2"].map((name) =>
        element("th", { scope: "col" }, element("span", {}, name))))),
    element("tbody", {}, ...rows));
  frame.style.setProperty("--n", 2);
  function show({ read }, { state }) {
    write(caption, `The memory after ${read} of ${TOKENS} tokens`);
    state.forEach((row, f) => row.forEach((x, c) => {
      const cell = rows[f].cells[c + 1];
      share(cell, Math.min(1, Math.abs(x) / 5));
      write(cell, decimal(x, 2));
    }));
  }
  return { frame, show };
}

const unbroken = (text) => text.replaceAll(" ", "\u00a0");
const brief = (x) => String(Math.round(10 * x) / 10);

// The tokens, what they wrote, and what their keys bring back now.
function tokenTable(lab) {
  const rows = VALUES.map((_, j) => {
    const row = element("tr", {}, element("th", { scope: "row" }),
      ...[0, 1, 2].map(() => element("td")));
    lab.explain(row, (values, now) => sentence(j, values, now));
    return row;
  });
  const names = ["token", "key", "value", "brings back"];
  const frame = element("table", {},
    element("caption", {}, "What each key brings back"),
    element("thead", {}, element("tr", {}, ...names.map((name) =>
      element("th", { scope: "col" }, name)))),
    element("tbody", {}, ...rows));
  function show({ tokens, read, ask }, { back }) {
    rows.forEach((row, j) => {
      const [name, key, value, brings] = row.cells;
      write(name, unbroken(`${j + 1}. ${wordsOf(tokens)[j]}`));
      write(key, unbroken(`(${KEYS[tokens][j].map(brief).join(", ")})`));
      write(value, unbroken(j < read ? pair(VALUES[j], 0) : "not yet"));
      write(brings, unbroken(pair(back[j], 2)));
      set(row, { class: j === ask ? "lab-chosen" : null });
    });
  }
  return { frame, show };
}

const sentence = (j, values, now) => sees({ ...values, ask: j }, now);

export default defineLab({ compute, build, sees, tasks });
