// Powers of ten over the blocks of a stack, on one chart.

import { drawn, element, set, write } from "./machinery/drawing.js";

export const LEAST = 1e-12; // below that there is nothing but rounding
const ACROSS = 260;
const DOWN = 170;
const LEFT = 46;
const HIGHEST = 8;
const LOWEST = -12;

// Powers of ten over the blocks, two lines to a chart: whole and dashed.
export function depthChart(lab, title, names) {
  const picture = drawn("svg", {
    viewBox: `0 0 ${ACROSS} ${DOWN}`, role: "img", "aria-label": title,
    style: `aspect-ratio: ${ACROSS} / ${DOWN}` });
  const y = (x) => {
    const log = Math.log10(Math.max(x, LEAST));
    return 8 + (HIGHEST - Math.min(HIGHEST, log)) / (HIGHEST - LOWEST)
      * (DOWN - 28);
  };
  for (let log = LOWEST; log <= HIGHEST; log += 4) picture.append(
    drawn("line", { x1: LEFT, x2: ACROSS, y1: y(10 ** log), y2: y(10 ** log),
      class: log ? "lab-grid" : "lab-axis" }),
    drawn("text", { x: LEFT - 4, y: y(10 ** log) + 3, class: "lab-tick",
      "text-anchor": "end" }, log === LOWEST ? "≤10⁻¹²" : tenTick(log)));
  const ends = [drawn("text", { x: LEFT, y: DOWN - 4, class: "lab-tick" },
    "0"), drawn("text", { x: ACROSS - 4, y: DOWN - 4, class: "lab-tick",
    "text-anchor": "end" })];
  const lines = names.map((name, place) => drawn("polyline", {
    class: place ? "lab-depth-dashed" : "lab-depth" }));
  const dots = names.map(() => Array.from({ length: 13 }, () =>
    drawn("circle", { r: 2.5, class: "lab-depth-dot" })));
  const columns = Array.from({ length: 13 }, (_, i) => {
    const column = drawn("rect", { y: 0, height: DOWN - 14,
      class: "lab-depth-reach" });
    lab.explain(column, (values, now) => blockSentence(i, now));
    return column;
  });
  picture.append(...ends, ...lines, ...dots.flat(), ...columns);
  const caption = element("figcaption", {}, `${title}: ${NAMES[names[0]]} `
    + `(whole line), ${NAMES[names[1]]} (dashed)`);
  const frame = element("figure", { class: "lab-plane" }, caption, picture);

  function show({ depth }, now) {
    const x = (i) => LEFT + 6 + (i / depth) * (ACROSS - LEFT - 14);
    write(ends[1], `${depth} blocks`);
    names.forEach((name, place) => {
      const points = now[name].map((value, i) => [x(i), y(value)]);
      set(lines[place], { points: points.map((p) =>
        p.map((z) => z.toFixed(1)).join(",")).join(" ") });
      dots[place].forEach((dot, i) => {
        dot.classList.toggle("lab-absent", i >= points.length);
        if (i < points.length) set(dot,
          { cx: points[i][0].toFixed(1), cy: points[i][1].toFixed(1) });
      });
    });
    const width = (ACROSS - LEFT - 14) / depth;
    columns.forEach((column, i) => {
      column.classList.toggle("lab-absent", i > depth);
      if (i <= depth) set(column, { x: (x(i) - width / 2).toFixed(1),
        width: width.toFixed(1) });
    });
  }
  return { frame, show };
}

function tenTick(log) {
  return log ? `10${log < 0 ? "⁻" : ""}${"⁰¹²³⁴⁵⁶⁷⁸⁹"[Math.abs(log)]}` : "1";
}
