// One query among 64 keys: how its scores spread, how its weights sharpen.

import { dotProducts, fixedNumbers, maskedSoftmax } from "./machinery/core.js";
import { defineLab } from "./machinery/controls.js";
import { decimal, drawn, element, set, write } from "./machinery/drawing.js";
import { sees, tasks } from "./scaling_insight.js";

const N_QUERIES = 8;
const N_KEYS = 64;
const WIDEST = 1024;
const LIMIT = 10; // the histogram's end; its bars are one wide

const DIVIDED = {
  none: () => 1, root: (d_k) => 1 / Math.sqrt(d_k), whole: (d_k) => 1 / d_k,
};
const WORDS = { none: "nothing", root: "√dₖ", whole: "dₖ" };
const EVERYONE = Array(N_KEYS).fill(true);

// Eight queries, then 64 keys.
const NUMBERS = fixedNumbers(20170612, (N_QUERIES + N_KEYS) * WIDEST);
const FEATURES = Array.from({ length: N_QUERIES + N_KEYS }, (_, row) =>
  NUMBERS.slice(row * WIDEST, (row + 1) * WIDEST));

const sum = (numbers) => numbers.reduce((total, x) => total + x, 0);

// The norm of the softmax's Jacobian, p_i (δ_ij − p_j). What the others have
// is added up, since 1 − p_i would lose its digits when p_i is nearly one.
function jacobianNorm(p) {
  let squares = 0;
  p.forEach((p_i, i) => {
    let others = 0;
    p.forEach((p_j, j) => {
      if (i === j) return;
      others += p_j;
      squares += (p_i * p_j) ** 2;
    });
    squares += (p_i * others) ** 2;
  });
  return Math.sqrt(squares);
}

// How many scores are in each bar: below -10, 20 bars, from 10 up.
function count(scaled) {
  const heights = Array(2 * LIMIT + 2).fill(0);
  for (const score of scaled) {
    const place = Math.floor(score);
    heights[Math.min(LIMIT, Math.max(-LIMIT - 1, place)) + LIMIT + 1] += 1;
  }
  return heights;
}

function compute({ d_k, divisor, query }) {
  const first = (row) => row.slice(0, d_k);
  const [scores] = dotProducts(
    [first(FEATURES[query])], FEATURES.slice(N_QUERIES).map(first));
  const scale = DIVIDED[divisor](d_k);
  const scaled = scores.map((score) => score * scale);
  const weights = maskedSoftmax(scaled, EVERYONE);
  return {
    scaled,
    weights,
    counts: count(scaled),
    deviation: Math.sqrt(sum(scaled.map((x) => x * x)) / N_KEYS),
    peak: Math.max(...weights),
    entropy: -sum(weights.map((p) => p > 0 ? p * Math.log(p) : 0)),
    slope: jacobianNorm(weights),
  };
}

function build(lab) {
  const d_k = () => [element("i", {}, "d"), element("sub", {}, "k")];
  lab.row(
    lab.range("d_k", ["Features ", ...d_k()]),
    lab.select("divisor", "Divide the scores by", WORDS),
    lab.range("query", "Query", { text: (i) => String(i + 1) }),
  );
  const scores = barChart(lab, "64 scores", 2 * LIMIT + 2, {
    ticks: [[0.5, "< −10"], [6, "−5"], [11, "0"], [16, "5"], [21.5, "> 10"]],
    explain: scoreSentence,
  });
  const weights = barChart(lab, "Weights of the keys", N_KEYS, {
    level: 1 / N_KEYS,
    ticks: [[0.5, "key 1"], [31.5, "32"], [63.5, "64"]],
    explain: (i, now) => `Key ${i + 1}: score ${decimal(now.scaled[i], 2)}, `
      + `weight ${decimal(now.weights[i])}.`,
  });
  const table = numberTable();
  lab.root.append(
    element("div", { class: "lab-pair" }, scores.frame, weights.frame),
    element("div", { class: "lab-scroll" }, table.frame));
  lab.hint(() =>
    "Widen the keys, and change what the scores are divided by.");

  function scoreSentence(i, now) {
    const low = i - LIMIT - 1;
    const where = i === 0 ? `below −${LIMIT}`
      : low === LIMIT ? `of ${LIMIT} and more`
        : `from ${decimal(low, 0)} to ${decimal(low + 1, 0)}`;
    return `Scores ${where}: ${now.counts[i]} of ${N_KEYS}.`;
  }

  return (values, now) => {
    scores.show(now.counts.map((n) => n / N_KEYS));
    weights.show(now.weights);
    table.show(values, now);
    lab.say(`${values.d_k} features, divided by ${WORDS[values.divisor]}: `
      + `largest weight ${decimal(now.peak)}, `
      + `entropy ${decimal(now.entropy, 2)}, `
      + `Jacobian ${decimal(now.slope)}.`);
  };
}

const WIDE = 240;
const HIGH = 120;

// Bars between 0 and 1, each of which tells its number when it is pointed at.
function barChart(lab, title, n, { level, ticks, explain }) {
  const step = WIDE / n;
  const picture = drawn("svg", {
    viewBox: `0 0 ${WIDE} ${HIGH + 14}`, role: "img", "aria-label": title,
    style: `aspect-ratio: ${WIDE} / ${HIGH + 14}` });
  const bars = Array.from({ length: n }, (_, i) => {
    const bar = drawn("rect", {
      x: i * step + step * 0.1, width: step * 0.8, class: "lab-column" });
    const reach = drawn("rect", {
      x: i * step, y: 0, width: step, height: HIGH, class: "lab-reach" });
    lab.explain(reach, (values, now) => explain(i, now));
    picture.append(bar, reach);
    return bar;
  });
  picture.append(drawn("line", {
    x1: 0, x2: WIDE, y1: HIGH, y2: HIGH, class: "lab-axis" }));
  if (level) picture.append(drawn("line", {
    x1: 0, x2: WIDE, y1: HIGH * (1 - level), y2: HIGH * (1 - level),
    class: "lab-axis", "stroke-dasharray": "3 3" }));
  for (const [at, word] of ticks) picture.append(drawn("text", {
    x: at * step, y: HIGH + 10, class: "lab-tick",
    "text-anchor": at < 2 ? "start" : at > n - 2 ? "end" : "middle" }, word));

  function show(shares) {
    shares.forEach((share, i) => set(bars[i], {
      y: (HIGH * (1 - share)).toFixed(2),
      height: (HIGH * share).toFixed(2),
    }));
  }
  const caption = element("figcaption", {}, title);
  const frame = element("figure", { class: "lab-plane" }, caption, picture);
  return { frame, show };
}

// How sharp the row is, in numbers.
function numberTable() {
  const caption = element("caption");
  const rows = {
    deviation: "typical size of a score",
    peak: "largest weight",
    entropy: "entropy (at most 4.159)",
    slope: "norm of the Jacobian",
  };
  const cells = Object.fromEntries(
    Object.keys(rows).map((name) => [name, element("td")]));
  const frame = element("table", {}, caption, element("tbody", {},
    ...Object.entries(rows).map(([name, words]) => element("tr", {},
      element("th", { scope: "row" }, words), cells[name]))));

  function show({ d_k, divisor, query }, now) {
    write(caption, `Query ${query + 1}, ${d_k} feature`
      + `${d_k === 1 ? "" : "s"}, divided by ${WORDS[divisor]}`);
    for (const name of Object.keys(rows))
      write(cells[name], decimal(now[name]));
  }
  return { frame, show };
}

export default defineLab({ compute, build, sees, tasks });
