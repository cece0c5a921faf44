// A sparse pattern: who sees whom, and by way of whom a key is reached.

import { defineLab } from "./machinery/controls.js";
import { drawn, element, set, write } from "./machinery/drawing.js";
import { namedNumbers } from "./machinery/pictures.js";
import { sees, tasks } from "./sparse_insight.js";

const N = 16;
const PLACES = Array.from({ length: N }, (_, i) => i);

// May a query look at a key?
const PATTERNS = {
  strided: (l) => (i, j) => Math.abs(i - j) < l || (i - j) % l === 0,
  fixed: (l) => (i, j) =>
    Math.floor(i / l) === Math.floor(j / l) || j % l === l - 1,
};

function compute({ pattern, stride, causal, query, key }) {
  const may = PATTERNS[pattern](stride);
  const seen = PLACES.map((i) =>
    PLACES.map((j) => may(i, j) && (!causal || j <= i)));
  const middle = PLACES.filter((m) => seen[query][m]);
  const steps = PLACES.map((j) => {
    if (seen[query][j]) return 1;
    return middle.some((m) => seen[m][j]) ? 2 : 0;
  });
  const ways = middle.filter((m) =>
    seen[m][key] && m !== query && m !== key);
  const pairs = seen.flat().filter(Boolean).length;
  const full = causal ? (N * (N + 1)) / 2 : N * N;
  return { seen, steps, ways, pairs, full };
}

const STEP = 20;
const LEFT = 22;
const WIDE = LEFT + N * STEP + 2;

function build(lab) {
  const place = { text: (i) => String(i + 1) };
  lab.row(
    lab.select("pattern", "Pattern"),
    lab.range("stride", "Stride"),
    lab.range("query", "Query", place),
    lab.range("key", "Key", place),
    lab.checkbox("causal", "causal"),
  );
  const picture = drawn("svg", {
    viewBox: `0 0 ${WIDE} ${WIDE}`, role: "img",
    "aria-label": "Which query sees which key",
    style: `aspect-ratio: 1; max-width: ${1.3 * WIDE}px` });
  const cells = PLACES.map((i) => PLACES.map((j) => {
    const cell = drawn("rect", { x: LEFT + j * STEP + 1.5,
      y: LEFT + i * STEP + 1.5, width: STEP - 3, height: STEP - 3, rx: 3,
      class: "lab-column" });
    lab.explain(cell, (values, now) => cellSentence(i, j, values, now));
    cell.addEventListener("click", () => lab.set({ query: i, key: j }));
    return cell;
  }));
  const tick = (x, y, i) => drawn("text", { x, y, class: "lab-tick",
    "text-anchor": "middle" }, String(i + 1));
  const names = PLACES.filter((i) => i % 3 === 0).flatMap((i) => {
    const at = LEFT + (i + 0.5) * STEP;
    return [tick(at, 15, i), tick(11, at + 4, i)];
  });
  const chosen = drawn("g", { fill: "none", "stroke-width": 2,
    stroke: "currentColor" });
  const outline = (dashes) => drawn("rect", { width: STEP, height: STEP,
    rx: 4, "stroke-dasharray": dashes });
  const target = outline("none");
  const legs = Array.from({ length: 2 * N }, () => outline("3 2"));
  chosen.append(target, ...legs);
  picture.append(...cells.flat(), ...names, chosen);
  const caption = element("figcaption");
  const counts = namedNumbers("Counted");
  lab.root.append(element("div", { class: "lab-pair" },
    element("figure", { class: "lab-plane" }, caption, picture),
    element("div", { class: "lab-scroll" }, counts.frame)));
  lab.hint(() => "Point at a square, or press it: its row is the query, "
    + "its column the key.");

  return (values, now) => {
    const { query, key } = values;
    write(caption, `Queries down, keys across; row ${query + 1} is the query`);
    cells.forEach((row, i) => row.forEach((cell, j) => set(cell, {
      "fill-opacity": shade(i, j, query, now) })));
    const at = (i, j) => ({ x: LEFT + j * STEP, y: LEFT + i * STEP });
    set(target, at(query, key));
    legs.forEach((leg, i) => {
      const m = now.ways[i >> 1];
      const shown = m !== undefined && now.steps[key] === 2;
      set(leg, { display: shown ? null : "none" });
      if (shown) set(leg, i % 2 ? at(m, key) : at(query, m));
    });
    const count = (step) => now.steps.filter((s) => s === step).length;
    counts.show([
      ["keys that the query sees", String(count(1))],
      ["keys that it reaches in two steps only", String(count(2))],
      ["tokens between the query and the key", String(now.ways.length)],
      ["pairs looked at", String(now.pairs)],
      ["pairs without a pattern", String(now.full)],
    ]);
    lab.say(sees(values, now));
  };
}

// Dark if seen; in the query's row, half dark if reached in two steps.
function shade(i, j, query, { seen, steps }) {
  if (i !== query) return seen[i][j] ? 0.45 : 0.08;
  return [0.08, 1, 0.25][steps[j]];
}

// What a square says.
function cellSentence(i, j, { query }, { seen, steps }) {
  const pair = `Query ${i + 1}, key ${j + 1}: `;
  if (seen[i][j]) return `${pair}seen.`;
  if (i !== query) return `${pair}not seen.`;
  return steps[j] === 2 ? `${pair}not seen, but reached in two steps.`
    : `${pair}not seen, nor reached in two steps.`;
}

export default defineLab({ compute, build, sees, tasks });
