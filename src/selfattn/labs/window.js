// A stack of layers, each within a window: who can hear one token.

import { defineLab } from "./machinery/controls.js";
import { drawn, element, set, write } from "./machinery/drawing.js";
import { namedNumbers } from "./machinery/pictures.js";
import { grouped, sees, tasks } from "./window_insight.js";

const N = 16;
const MOST = 6; // layers

// May a token look at another, in a layer with a window or without?
function looks({ window: w, causal, global_tokens: first }, full) {
  return (i, j) => (!causal || j <= i)
    && (full || Math.abs(i - j) < w || i < first || j < first);
}

function compute(values) {
  const { layers, causal, full_last, token } = values;
  const places = Array.from({ length: N }, (_, i) => i);
  const heard = [places.map((i) => i === token)];
  let [pairs, kept] = [0, 0];
  for (let layer = 1; layer <= layers; layer += 1) {
    const may = looks(values, full_last && layer === layers);
    const seen = places.map((i) => places.filter((j) => may(i, j)));
    heard.push(seen.map((row) => row.some((j) => heard[layer - 1][j])));
    pairs += seen.reduce((sum, row) => sum + row.length, 0);
    kept += seen[N - 1].length;
  }
  const full = layers * (causal ? (N * (N + 1)) / 2 : N * N);
  return { heard, pairs, full, kept };
}

const WIDE = 320;
const STEP = WIDE / N;
const ROW = 20;
const HIGH = (MOST + 1) * ROW;

function build(lab) {
  lab.row(
    lab.range("window", "Window"),
    lab.range("layers", "Layers"),
    lab.range("global_tokens", "Global tokens"),
    lab.range("token", "Token", { text: (i) => String(i + 1) }),
    lab.checkbox("causal", "causal"),
    lab.checkbox("full_last", "last layer without a window"),
  );
  const picture = drawn("svg", {
    viewBox: `0 0 ${WIDE} ${HIGH + 18}`, role: "img",
    "aria-label": "Who can hear the token, layer by layer",
    style: `aspect-ratio: ${WIDE} / ${HIGH + 18}` });
  const rows = Array.from({ length: MOST + 1 }, (_, layer) =>
    Array.from({ length: N }, (__, i) => {
      const cell = drawn("rect", { x: i * STEP + 2,
        y: HIGH - (layer + 1) * ROW + 2, width: STEP - 4, height: ROW - 4,
        rx: 3, class: "lab-column" });
      lab.explain(cell, (values, now) => cellSentence(layer, i, values, now));
      cell.addEventListener("click", () => lab.set({ token: i }));
      return cell;
    }));
  const names = Array.from({ length: N }, (_, i) => drawn("text", {
    x: (i + 0.5) * STEP, y: HIGH + 13, class: "lab-tick",
    "text-anchor": "middle" }, String(i + 1)));
  picture.append(...rows.flat(), ...names);
  const caption = element("figcaption");
  const counts = namedNumbers("Counted");
  lab.root.append(element("div", { class: "lab-pair" },
    element("figure", { class: "lab-plane" }, caption, picture),
    element("div", { class: "lab-scroll" }, counts.frame)));
  lab.hint(() => "Point at a square, or press it: it becomes the token.");

  return (values, now) => {
    write(caption, `Token ${values.token + 1}, at the bottom, `
      + "and who has heard it after each layer");
    rows.forEach((row, layer) => row.forEach((cell, i) => set(cell, {
      "fill-opacity": now.heard[layer]?.[i] ? 1 : 0.12,
      display: layer < now.heard.length ? null : "none" })));
    counts.show([
      ["tokens that have heard it", String(now.heard.at(-1)
        .filter(Boolean).length)],
      ["pairs looked at, in all layers", grouped(now.pairs)],
      ["pairs without a window", grouped(now.full)],
      ["keys that the last token sees, in all layers", String(now.kept)],
    ]);
    lab.say(sees(values, now));
  };
}

// What a square says.
function cellSentence(layer, i, { token, layers }, now) {
  if (layer > layers) return "";
  const name = `Token ${i + 1}`;
  if (layer === 0) return i === token
    ? `${name} says something.` : `${name} knows only itself.`;
  const after = `after layer ${layer}`;
  return now.heard[layer][i]
    ? `${name} can have heard token ${token + 1} ${after}.`
    : `${name} has not heard token ${token + 1} ${after}.`;
}

export default defineLab({ compute, build, sees, tasks });
