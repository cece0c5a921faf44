// One weight, estimated: directions at random, and what each gives.

import { defineLab } from "./machinery/controls.js";
import { decimal, drawn, element, set } from "./machinery/drawing.js";
import { Plane, mark, namedNumbers } from "./machinery/pictures.js";
import { per, sees, tasks } from "./performer_insight.js";

const MOST = 256; // directions
const START = 20201; // of the generator; a draw is so many times as far
const MODULUS = 2147483647;
const EDGE = 4; // of the plane
const LARGEST = 14; // a dot's radius, if it carries all

// Standard normal, by Park and Miller's even numbers and Box and Muller's
// rule: one is a length, the next an angle.
function directionsOf({ draw, m, orthogonal }) {
  let [state, angle] = [(START * draw) % MODULUS, 0];
  const even = () => {
    state = (state * 16807) % MODULUS;
    return state / MODULUS;
  };
  return Array.from({ length: m }, (_, i) => {
    const length = Math.sqrt(-2 * Math.log(even()));
    const turn = 2 * Math.PI * even();
    angle = orthogonal && i % 2 === 1 ? angle + Math.PI / 2 : turn;
    return [length * Math.cos(angle), length * Math.sin(angle)];
  });
}

const dot = (a, b) => a[0] * b[0] + a[1] * b[1];

function compute(values) {
  const { length, angle, m, kind } = values;
  const half = (angle * Math.PI) / 360;
  const [across, up] = [length * Math.cos(half), length * Math.sin(half)];
  const [query, key] = [[across, up], [across, -up]];
  const [together, apart] = [[2 * across, 0], [0, 2 * up]];
  const directions = directionsOf(values);
  const score = dot(query, key);
  const squares = (dot(query, query) + dot(key, key)) / 2;
  const part = kind === "positive"
    ? (omega) => Math.exp(dot(omega, together) - squares - score)
    : (omega) => Math.cos(dot(omega, apart)) * Math.exp(squares - score);
  const parts = directions.map(part);
  const mean = parts.reduce((sum, x) => sum + x, 0) / m;
  const sizes = parts.map(Math.abs);
  const variance = kind === "positive"
    ? Math.expm1(dot(together, together))
    : Math.cosh(dot(apart, apart)) - 1;
  const exact = Math.exp(score);
  return {
    exact, estimate: exact * mean, off: mean - 1,
    spread: Math.sqrt(variance / m),
    largest: Math.max(...sizes) / sizes.reduce((sum, x) => sum + x, 0),
    parts, directions, query, key,
  };
}

function build(lab) {
  lab.row(
    lab.range("length", "Length of both", { text: (x) => decimal(x, 2) }),
    lab.range("angle", "Angle", { text: (x) => `${x}°` }),
    lab.range("m", "Directions"),
    lab.select("kind", "Features"),
    lab.checkbox("orthogonal", "in pairs at right angles"),
    lab.range("draw", "Draw"),
  );
  const plane = planeOf(lab);
  const numbers = namedNumbers("The estimate");
  lab.root.append(element("div", { class: "lab-pair" },
    plane.frame, numbers.frame));
  lab.hint(() => "Make both longer, and draw again. Point at or tap a dot.");
  return (values, now) => {
    plane.show(values, now);
    numbers.show([
      ["exponential of the score", decimal(now.exact)],
      ["estimate", decimal(now.estimate)],
      ["off by", per(now.off)],
      ["spread to expect", `±\u00a0${per(now.spread)}`],
      ["carried by the largest", per(now.largest)],
    ]);
    lab.say(sees(values, now));
  };
}

// Directions as dots, as large as what they give; query, key and their sum.
function planeOf(lab) {
  const plane = new Plane("Directions, as large as what each gives",
    { low: -EDGE, high: EDGE });
  const dots = Array.from({ length: MOST }, (_, i) => {
    const circle = drawn("circle", { class: "lab-drawn" });
    lab.explain(circle, (values, { directions, parts }) =>
      `Direction ${i + 1}, (${directions[i].map((x) => decimal(x, 2))
        .join(", ")}), gives ${decimal(parts[i])} times the exponential; `
      + `the estimate is the mean of all ${values.m}.`);
    return circle;
  });
  const line = (look) => drawn("line", { class: look });
  const [asks, listens] = [line("lab-query-line"), line("lab-key-line")];
  const q = mark("lab-query", "q",
    drawn("rect", { x: -4, y: -4, width: 8, height: 8 }));
  const k = mark("lab-key", "k", drawn("circle", { r: 4 }));
  plane.picture.append(...dots, asks, listens, q, k);

  function show({ m }, { directions, parts, query, key }) {
    const all = parts.reduce((sum, x) => sum + Math.abs(x), 0);
    dots.forEach((circle, i) => {
      circle.classList.toggle("lab-absent", i >= m);
      if (i >= m) return;
      const [cx, cy] = plane.place(directions[i]).map((x) => x.toFixed(1));
      const r = 1 + LARGEST * Math.sqrt(Math.abs(parts[i]) / all);
      circle.classList.toggle("lab-below", parts[i] < 0);
      set(circle, { cx, cy, r: r.toFixed(2) });
    });
    plane.move(asks, [0, 0], query);
    plane.move(listens, [0, 0], key);
    plane.shift(q, query);
    plane.shift(k, key);
    plane.letter([q, k], null, { axes: true });
  }
  return { frame: plane.frame, show };
}

export default defineLab({ compute, build, sees, tasks });
