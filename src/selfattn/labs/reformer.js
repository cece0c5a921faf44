// Tokens in a plane, hashed, sorted and cut into chunks: whom a query finds.

import { defineLab } from "./machinery/controls.js";
import { drawn, element, set, write } from "./machinery/drawing.js";
import { namedNumbers } from "./machinery/pictures.js";
import { STORED } from "./reformer_draws.js";
import { sees, tasks } from "./reformer_insight.js";

const N = 16;
const LONG = 3;
const POINTS = [0, 9, 1, 4, 10, 5, 12, 0, 8, 15, 2, 9, 13, 6, 1];
const TOKENS = Array.from({ length: N }, (_, i) => i);

function directions(last) {
  return [...POINTS, last].map((turn) => {
    const angle = turn * 2 * Math.PI / 16 + 0.1;
    return [Math.cos(angle), Math.sin(angle)];
  });
}

const dot = ([a, b], [c, d]) => a * c + b * d;

// The nearest of some directions and of their opposites. `drawn` holds the
// first numbers of the directions, then the second ones.
function bucketOf(x, [first, second], half) {
  if (half === 0) return 0;
  const products = first.map((a, i) => dot(x, [a, second[i]]));
  const sizes = products.map(Math.abs);
  const nearest = sizes.indexOf(Math.max(...sizes));
  return nearest + (products[nearest] < 0 ? half : 0);
}

function compute({ buckets, rounds, draw, chunk, causal, token, last }) {
  const half = Math.floor(buckets / 2);
  const x = directions(last);
  const draws = half ? STORED[String(buckets)][draw] : [[], [], [], []];
  const found = draws.slice(0, rounds).map((round) =>
    x.map((one) => bucketOf(one, round, half)));
  const orders = found.map((of) =>
    [...TOKENS].sort((a, b) => of[a] - of[b] || a - b));
  const piece = orders.map((order) =>
    TOKENS.map((i) => Math.floor(order.indexOf(i) / chunk)));
  const other = (i, j) => (causal ? j < i : j !== i);
  const alike = (r, i, j) => found[r][i] === found[r][j];
  const near = (r, i, j) => piece[r][i] - piece[r][j] === 0
    || piece[r][i] - piece[r][j] === 1;
  const inRounds = [...found.keys()];
  const looks = (i) => TOKENS.map((j) => other(i, j)
    && inRounds.some((r) => alike(r, i, j) && near(r, i, j)));
  const shares = TOKENS.map((j) => other(token, j)
    && inRounds.some((r) => alike(r, token, j)));
  const seen = looks(token);
  const powers = x.map((one, j) => (other(token, j)
    ? Math.exp(LONG * dot(one, x[token]) / Math.SQRT2) : 0));
  const sum = (many) => many.reduce((total, p) => total + p, 0);
  return {
    buckets: found, order: orders[0], seen,
    lost: shares.filter((yes, j) => yes && !seen[j]).length,
    allowed: TOKENS.filter((j) => other(token, j)).length,
    weight: sum(powers.filter((_, j) => seen[j]))
      / Math.max(sum(powers), 1e-300),
    pairs: sum(TOKENS.map((i) => looks(i).filter(Boolean).length)),
  };
}

const WIDE = 320;
const MIDDLE = WIDE / 2;
const FAR = 96; // of the innermost tokens from the middle
const ROW = 2 * MIDDLE + 24;
const STEP = WIDE / N;

// Tokens that point the same way stand one behind the other.
function places(last) {
  const turns = [...POINTS, last];
  return directions(last).map(([x, y], i) => {
    const behind = turns.slice(0, i).filter((t) => t === turns[i]).length;
    const far = FAR + 24 * behind;
    return [MIDDLE + far * x, MIDDLE - far * y];
  });
}

function build(lab) {
  lab.row(
    lab.range("buckets", "Buckets"),
    lab.range("rounds", "Rounds"),
    lab.range("draw", "Draw", { text: (i) => String(i + 1) }),
    lab.range("chunk", "Chunk"),
    lab.range("token", "Token", { text: (i) => String(i + 1) }),
    lab.range("last", "Token 16 points at",
      { text: (i) => `${Math.round(22.5 * i)}°` }),
    lab.checkbox("causal", "causal"),
  );
  const picture = drawn("svg", { viewBox: `0 0 ${WIDE} ${ROW + 40}`,
    role: "img", "aria-label": "Where each token points, and all of them "
      + "sorted by bucket in the first round",
    style: `aspect-ratio: ${WIDE} / ${ROW + 40}` });
  const rays = Array.from({ length: 4 }, () => drawn("line", {
    x1: MIDDLE, y1: MIDDLE, class: "lab-axis" }));
  const tokens = TOKENS.map((i) => tokenMark(lab, i));
  const sorted = TOKENS.map((place) => box(lab, place));
  const edges = TOKENS.slice(1).map((place) => drawn("line", {
    x1: place * STEP, x2: place * STEP, y1: ROW - 6, y2: ROW + 38,
    class: "lab-query-line" }));
  picture.append(...rays, ...tokens.map(({ group }) => group),
    ...sorted.map(({ group }) => group), ...edges);
  const caption = element("figcaption");
  const counts = namedNumbers("Counted");
  lab.root.append(element("div", { class: "lab-pair" },
    element("figure", { class: "lab-plane" }, caption, picture),
    element("div", { class: "lab-scroll" }, counts.frame)));
  lab.hint(() => "Point at a token, or press it: it becomes the one that "
    + "asks.");

  return (values, now) => {
    write(caption, `Token ${values.token + 1} asks; below, all sorted by `
      + "the buckets of round 1");
    showRays(rays, values);
    const at = places(values.last);
    tokens.forEach((one, i) => one.show(at[i], values, now));
    sorted.forEach((one) => one.show(values, now));
    edges.forEach((edge, i) => set(edge, {
      display: (i + 1) % values.chunk === 0 ? null : "none" }));
    counts.show([
      ["others seen", String(now.seen.filter(Boolean).length)],
      ["others that it might see", String(now.allowed)],
      ["weight on them in full attention",
        `${Math.round(100 * now.weight)}%`],
      ["in its bucket, but cut off", String(now.lost)],
      ["pairs looked at, by all tokens", String(now.pairs)],
    ]);
    lab.say(sees(values, now));
  };
}

// The directions of the first round, each with its opposite.
function showRays(rays, { buckets, draw }) {
  const [first, second] = buckets > 1
    ? STORED[String(buckets)][draw][0] : [[], []];
  rays.forEach((ray, i) => {
    const long = Math.hypot(first[i] ?? 0, second[i] ?? 0);
    if (!long) return set(ray, { display: "none" });
    const [x, y] = [first[i] / long, second[i] / long];
    return set(ray, { display: null,
      x1: MIDDLE - (FAR - 22) * x, y1: MIDDLE + (FAR - 22) * y,
      x2: MIDDLE + (FAR - 22) * x, y2: MIDDLE - (FAR - 22) * y });
  });
}

function colours(i, { token }, { seen }) {
  const colour = i === token ? "var(--query)" : "var(--key)";
  return { fill: colour, "fill-opacity": i === token || seen[i] ? 0.9 : 0.12 };
}

// Its number, on its own colour or on that of a key.
const lettered = (i, { token }) =>
  `fill: var(${i === token ? "--ground" : "--on-key"})`;

// A token on the circle.
function tokenMark(lab, i) {
  const circle = drawn("circle", { r: 11, class: "lab-token" });
  const word = drawn("text", { class: "lab-tick", "text-anchor": "middle",
    "pointer-events": "none" }, String(i + 1));
  const group = drawn("g", {}, circle, word);
  lab.explain(group, (values, now) => sentence(i, values, now));
  group.addEventListener("click", () => lab.set({ token: i }));
  function show([x, y], values, now) {
    set(circle, { cx: x.toFixed(1), cy: y.toFixed(1),
      ...colours(i, values, now) });
    const shown = i === values.token || now.seen[i];
    set(word, { x: x.toFixed(1), y: (y + 4).toFixed(1),
      style: shown ? lettered(i, values) : null });
  }
  return { group, show };
}

// A place in the sorted row: the token in it, and its bucket.
function box(lab, place) {
  const cell = drawn("rect", { x: place * STEP + 2, y: ROW, width: STEP - 4,
    height: 16, rx: 3, class: "lab-sorted" });
  const middle = (place + 0.5) * STEP;
  const [name, bucket] = [12, 31].map((down) => drawn("text", { x: middle,
    y: ROW + down, class: "lab-tick", "text-anchor": "middle",
    "pointer-events": "none" }));
  const group = drawn("g", {}, cell, name, bucket);
  lab.explain(group, (values, now) =>
    sentence(now.order[place], values, now));
  function show(values, now) {
    const i = now.order[place];
    set(cell, colours(i, values, now));
    const shown = i === values.token || now.seen[i];
    write(name, String(i + 1));
    set(name, { style: shown ? lettered(i, values) : null });
    write(bucket, "abcdefgh"[now.buckets[0][i]]);
  }
  return { group, show };
}

// What a token says.
function sentence(i, { token }, now) {
  const own = now.buckets.map((of) => "abcdefgh"[of[i]]).join(", ");
  const name = `Token ${i + 1}, by rounds in ${own}`;
  if (i === token) return `${name}: it asks.`;
  return now.seen[i] ? `${name}: seen by token ${token + 1}.`
    : `${name}: not seen by token ${token + 1}.`;
}

export default defineLab({ compute, build, sees, tasks });
