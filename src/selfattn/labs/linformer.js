// Mixtures of keys: a query's weights, and those that the mixtures stand for.

import { defineLab } from "./machinery/controls.js";
import { decimal, drawn, element, set, write } from "./machinery/drawing.js";
import { namedNumbers } from "./machinery/pictures.js";
import { percent, sees, tasks } from "./linformer_insight.js";

const N = 16;
const TOKENS = Array.from({ length: N }, (_, i) => i);
const START = 30203; // of the generator; a draw is so many times as far
const MODULUS = 2147483647;
const TEXTS = {
  "any order": [0, 9, 1, 4, 10, 5, 12, 0, 8, 15, 2, 9, 13, 6, 1],
  "neighbours alike": [0, 0, 1, 1, 2, 3, 4, 5, 6, 7, 8, 8, 9, 9, 10],
};

const dot = (a, b) => a.reduce((sum, x, i) => sum + x * b[i], 0);
const total = (many) => many.reduce((sum, x) => sum + x, 0);

function softmax(scores) {
  const most = Math.max(...scores);
  const powers = scores.map((s) => Math.exp(s - most));
  const sum = total(powers);
  return powers.map((p) => p / sum);
}

// Standard normal, by Park and Miller's even numbers and Box and Muller's
// rule, over the root of how many mixtures there are.
function randomMixtures(draw, m) {
  let state = (START * draw) % MODULUS;
  const even = () => {
    state = (state * 16807) % MODULUS;
    return state / MODULUS;
  };
  const found = [];
  while (found.length < m * N) {
    const length = Math.sqrt(-2 * Math.log(even()));
    const angle = 2 * Math.PI * even();
    found.push(length * Math.cos(angle), length * Math.sin(angle));
  }
  return Array.from({ length: m }, (_, row) =>
    TOKENS.map((j) => found[row * N + j] / Math.sqrt(m)));
}

// Each a mean of so many neighbours.
function means(m) {
  return Array.from({ length: m }, (_, row) =>
    TOKENS.map((j) => (Math.floor(j * m / N) === row ? m / N : 0)));
}

function compute({ text, mixtures, kind, draw, token, length, last }) {
  const x = [...TEXTS[text], last].map((turn) => {
    const angle = turn * 2 * Math.PI / N + 0.1;
    return [Math.cos(angle), Math.sin(angle)];
  });
  const mix = kind === "means" ? means(mixtures)
    : randomMixtures(draw, mixtures);
  const ask = (keys) => softmax(keys.map((key) =>
    length * dot(x[token], key) / Math.SQRT2));
  const read = (weights) => [0, 1].map((c) =>
    total(weights.map((w, j) => w * x[j][c])));
  const weights = ask(x);
  const shares = ask(mix.map(read));
  const stands = TOKENS.map((j) =>
    total(shares.map((share, row) => share * mix[row][j])));
  const [output, other] = [read(weights), read(stands)];
  const sizes = stands.map(Math.abs);
  return {
    weights, shares, stands, best: weights.indexOf(Math.max(...weights)),
    off: Math.hypot(other[0] - output[0], other[1] - output[1])
      / Math.max(Math.hypot(...output), 1e-300),
    later: total(sizes.slice(token + 1)) / total(sizes),
  };
}

const WIDE = 320;
const STEP = WIDE / N;
const HIGH = 70; // of the longest bar
const BASES = [HIGH + 20, 3 * HIGH + 56]; // where the two rows stand
const DEEP = BASES[1] + HIGH + 26;

function build(lab) {
  lab.row(
    lab.select("text", "Text"),
    lab.range("mixtures", "Mixtures"),
    lab.select("kind", "Kind"),
    lab.range("draw", "Draw"),
    lab.range("token", "Token", { text: (i) => String(i + 1) }),
    lab.range("length", "Length of queries"),
    lab.range("last", "Token 16 points at",
      { text: (i) => `${Math.round(22.5 * i)}°` }),
  );
  const picture = drawn("svg", { viewBox: `0 0 ${WIDE} ${DEEP}`, role: "img",
    "aria-label": "Weights of attention on sixteen tokens, above those that "
      + "the mixtures stand for", style: `aspect-ratio: ${WIDE} / ${DEEP}` });
  const rows = ["weights", "stands"].map((name, row) =>
    barsOf(lab, name, BASES[row]));
  const titles = [12, BASES[0] + 46].map((y) =>
    drawn("text", { x: 2, y, class: "lab-tick" }));
  const names = TOKENS.map((i) => drawn("text", { x: (i + 0.5) * STEP,
    y: BASES[0] + 16, class: "lab-tick", "text-anchor": "middle" },
  String(i + 1)));
  const edges = TOKENS.slice(1).map((i) => drawn("line", { x1: i * STEP,
    x2: i * STEP, y1: BASES[0] + 52, y2: DEEP - 4, class: "lab-grid" }));
  picture.append(...edges, ...rows.flatMap(({ parts }) => parts), ...titles,
    ...names);
  const caption = element("figcaption");
  const numbers = namedNumbers("Compared");
  lab.root.append(element("div", { class: "lab-pair" },
    element("figure", { class: "lab-plane" }, caption, picture),
    element("div", { class: "lab-scroll" }, numbers.frame)));
  lab.hint(() => "Point at a bar, or press it: its token becomes the one "
    + "that asks.");

  return (values, now) => {
    write(caption, `Token ${values.token + 1} asks`);
    write(titles[0], "weights of attention");
    write(titles[1], values.kind === "means"
      ? `through means of ${N / values.mixtures}` : "through random mixtures");
    const most = Math.max(...now.weights, ...now.stands.map(Math.abs));
    rows.forEach((row) => row.show(values, now, most));
    edges.forEach((edge, i) => set(edge, {
      display: values.kind === "means"
        && (i + 1) % (N / values.mixtures) === 0 ? null : "none" }));
    numbers.show([
      [`attention’s weight on token ${now.best + 1}`,
        percent(now.weights[now.best])],
      ["through mixtures", percent(now.stands[now.best])],
      ["on later tokens, through mixtures", percent(now.later)],
      ["output off by", `${decimal(now.off, 2)} of its size`],
      ["pairs scored, of all queries", String(N * values.mixtures)],
    ]);
    lab.say(sees(values, now));
  };
}

// A row of bars, upwards from its base, or downwards where below zero.
function barsOf(lab, name, base) {
  const bars = TOKENS.map((j) => {
    const bar = drawn("rect", { x: j * STEP + 2, width: STEP - 4,
      class: `lab-of-${name}` });
    lab.explain(bar, (values, now) => sentence(name, j, values, now));
    bar.addEventListener("click", () => lab.set({ token: j }));
    return bar;
  });
  const line = drawn("line", { x1: 0, x2: WIDE, y1: base, y2: base,
    class: "lab-axis" });
  function show({ token }, now, most) {
    bars.forEach((bar, j) => {
      const high = Math.abs(now[name][j]) / most * HIGH;
      const y = now[name][j] < 0 ? base : base - high;
      set(bar, { y: y.toFixed(2), height: Math.max(high, 0.8).toFixed(2),
        fill: j === token ? "var(--query)" : "var(--key)" });
    });
  }
  return { parts: [line, ...bars], show };
}

// What a bar says.
function sentence(name, j, { token }, now) {
  const who = j === token ? `Token ${j + 1}, which asks`
    : `Token ${j + 1}`;
  return name === "weights"
    ? `${who}: attention gives it ${percent(now.weights[j])}.`
    : `${who}: the mixtures stand for ${percent(now.stands[j])} on it.`;
}

export default defineLab({ compute, build, sees, tasks });
