// Pictures that several labs draw: a plane with points, and a heat map.

import { decimal, drawn, element, set, share, write } from "./drawing.js";
import { boxOf, boxesAlong, letter } from "./lettering.js";
import { snap } from "./settings.js";

const SIZE = 240; // of the plane, in its own units

// A square plane for points from `low` to `high`, with its grid, and a margin
// for what is drawn around them.
export class Plane {
  constructor(title, { low, high }) {
    this.low = low - 0.6;
    this.high = high + 0.6;
    this.marks = new Map(); // where each is, and its radius
    this.ticks = [];
    this.picture = drawn("svg", {
      viewBox: `0 0 ${SIZE} ${SIZE}`, role: "group", "aria-label": title });
    for (let x = Math.ceil(low); x <= high; x += 1)
      this.picture.append(
        this.line([x, low], [x, high], x ? "lab-grid" : "lab-axis"),
        this.line([low, x], [high, x], x ? "lab-grid" : "lab-axis"));
    for (const x of [low, high])
      this.picture.append(this.tick([x, 0], x), this.tick([0, x], x));
    this.frame = element("figure", { class: "lab-plane" },
      element("figcaption", {}, title), this.picture);
  }

  // From the plane's numbers to the picture's, y upwards.
  place([x, y]) {
    const unit = SIZE / (this.high - this.low);
    return [(x - this.low) * unit, (this.high - y) * unit];
  }

  line(from, to, look) {
    const line = drawn("line", { class: look });
    this.move(line, from, to);
    return line;
  }

  move(line, from, to) {
    const [x1, y1] = this.place(from);
    const [x2, y2] = this.place(to);
    set(line, { x1, y1, x2, y2 });
  }

  tick(point, x) {
    const [left, top] = this.place(point);
    const at = { x: left + 3, y: top + 10 };
    this.ticks.push({ ...at, text: decimal(x, 0) });
    return drawn("text", { class: "lab-tick", ...at }, decimal(x, 0));
  }

  // Puts a mark, whose shapes go `r` to each side, at a point.
  shift(group, point, r = 6) {
    const [x, y] = this.place(point);
    set(group, { transform: `translate(${x} ${y})` });
    this.marks.set(group, { x, y, r });
  }

  // Puts the words beside these marks where they are in no other's way, and
  // not on the arrow from the middle to a point, nor on axes that count.
  letter(groups, arrow = null, { axes = false } = {}) {
    const shown = groups.filter((group) =>
      !group.classList.contains("lab-absent"));
    const words = shown.map((group) => group.querySelector("text"));
    const unit = Number(this.picture.style.getPropertyValue("--unit")) || 1;
    const points = shown.map((group, i) =>
      ({ ...this.marks.get(group), text: words[i].textContent }));
    const taken = this.ticks.map((tick) =>
      boxOf({ ...tick, size: 12 * unit }));
    if (arrow)
      taken.push(...boxesAlong(this.place([0, 0]), this.place(arrow)));
    if (axes) taken.push(
      ...boxesAlong(this.place([this.low, 0]), this.place([this.high, 0])),
      ...boxesAlong(this.place([0, this.low]), this.place([0, this.high])));
    letter(points, { size: 13 * unit, taken, sheet: [0, 0, SIZE, SIZE] })
      .forEach(({ x, y, anchor }, i) =>
        set(words[i], { x, y, "text-anchor": anchor }));
  }

  // Where the pointer is, in the plane's numbers.
  pointed(event) {
    const box = this.picture.getBoundingClientRect();
    const unit = (this.high - this.low) / box.width;
    return [this.low + (event.clientX - box.left) * unit,
      this.high - (event.clientY - box.top) * unit];
  }
}

// A labelled mark on a plane: shapes, and a word beside them.
export function mark(look, word, ...shapes) {
  return drawn("g", { class: `lab-mark ${look}` }, ...shapes,
    drawn("text", {}, word));
}

const ARROWS = {
  ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowDown: [0, -1], ArrowUp: [0, 1],
};

// Lets a group of shapes be dragged, by pointer and by arrow keys (with Shift
// five steps at a time). `where()` is its point, `moved(point)` is told.
export function makeHandle(group, plane, rule, name, { where, moved }) {
  set(group, {
    role: "slider", tabindex: 0, "aria-label": name,
    "aria-roledescription": "point to move with the arrow keys",
    "aria-valuemin": rule.low, "aria-valuemax": rule.high,
  });
  const go = (point) => moved(point.map((x) => snap(x, rule)));
  let held = null;
  group.addEventListener("pointerdown", (event) => {
    const at = plane.pointed(event);
    held = where().map((x, axis) => x - at[axis]);
    group.setPointerCapture(event.pointerId);
  });
  group.addEventListener("pointermove", (event) => {
    if (held) go(plane.pointed(event).map((x, axis) => x + held[axis]));
  });
  for (const end of ["pointerup", "pointercancel"])
    group.addEventListener(end, () => { held = null; });
  group.addEventListener("keydown", (event) => {
    const arrow = ARROWS[event.key];
    if (!arrow || event.ctrlKey || event.altKey || event.metaKey) return;
    const step = rule.step * (event.shiftKey ? 5 : 1);
    go(where().map((x, axis) => x + arrow[axis] * step));
    event.preventDefault(); // the page would scroll,
    event.stopPropagation(); // or the theme turn to another chapter
  });
}

// Tells screen readers where a handle is, and what that does.
export function sayHandle(group, [x, y], consequence) {
  set(group, {
    "aria-valuenow": x,
    "aria-valuetext": `${decimal(x, 1)}, ${decimal(y, 1)}; ${consequence}`,
  });
}

// Corners of the smallest convex figure around some points, in order
// (Andrew's monotone chain).
export function hull(points) {
  const sorted = [...points].sort(([a, b], [c, d]) => a - c || b - d);
  const turn = ([ax, ay], [bx, by], [cx, cy]) =>
    (bx - ax) * (cy - ay) - (by - ay) * (cx - ax);
  const half = (chain) => chain.reduce((kept, point) => {
    while (kept.length > 1 && turn(kept.at(-2), kept.at(-1), point) <= 0)
      kept.pop();
    return [...kept, point];
  }, []).slice(0, -1);
  const corners = [...half(sorted), ...half(sorted.reverse())];
  return corners.length ? corners : sorted;
}

// Two decimals, for a small cell: .31, and 1.0 for one.
function short(weight) {
  return decimal(weight, 2).replace(/^0/, "").replace("1.00", "1.0");
}

// A table of weights, one row a query, coloured by weight. The words are both
// the queries and the keys.
export class HeatMap {
  constructor(lab, caption, words) {
    this.lab = lab;
    this.words = words;
    this.body = element("tbody");
    this.head = element("tr");
    this.table = element("table", { class: "lab-heat" },
      element("caption", {}, caption),
      element("thead", {}, this.head), this.body);
  }

  // Makes the cells anew only when their number has changed.
  show(weights, mask, chosen) {
    if (this.body.rows.length !== weights.length) this.make(weights.length);
    weights.forEach((row, i) => {
      set(this.body.rows[i], { class: i === chosen ? "lab-chosen" : null });
      row.forEach((weight, j) => {
        const cell = this.cells[i][j];
        share(cell, weight);
        set(cell, { class: mask[i][j] ? null : "lab-hidden" });
        write(cell, mask[i][j] ? short(weight) : "·");
      });
    });
    this.weights = weights;
    this.mask = mask;
  }

  make(n) {
    const words = this.words.slice(0, n);
    this.head.replaceChildren(element("td"), ...words.map((word) =>
      element("th", { scope: "col" }, element("span", {}, word))));
    this.table.style.setProperty("--n", n);
    this.cells = words.map(() => words.map(() => element("td")));
    this.body.replaceChildren(...words.map((word, i) => element("tr", {},
      element("th", { scope: "row" }, word), ...this.cells[i])));
    this.cells.forEach((row, i) => row.forEach((cell, j) =>
      this.lab.explain(cell, () => this.sentence(i, j))));
  }

  sentence(i, j) {
    const pair = `${this.words[i]} → ${this.words[j]}: `;
    if (!this.mask[i][j]) return `${pair}hidden by the mask.`;
    return `${pair}weight ${decimal(this.weights[i][j])}.`;
  }
}

// A table of names and numbers whose rows never change their number, under
// these two heads, if any.
export function namedNumbers(caption, heads = []) {
  const body = element("tbody");
  const head = heads.map((text) => element("th", { scope: "col" }, text));
  const top = head.length ? [element("thead", {},
    element("tr", {}, ...head))] : [];
  const frame = element("table", {}, element("caption", {}, caption), ...top,
    body);
  function show(rows) {
    while (body.rows.length < rows.length)
      body.append(element("tr", {}, element("th", { scope: "row" }),
        element("td")));
    rows.forEach(([name, text], i) => {
      write(body.rows[i].cells[0], name);
      write(body.rows[i].cells[1], text);
    });
  }
  return { frame, show };
}
