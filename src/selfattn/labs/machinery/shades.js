// A table of shades on a canvas, for tables of a hundred rows and more. It is
// drawn in black, which a dark page turns round.

import { element } from "./drawing.js";

// A pixel a cell, black by `rows`, numbers from 0 to 1. All cells at once: one
// by one, a large table takes longer than a frame.
export function dotted(rows) {
  const [n_q, n] = [rows.length, rows[0].length];
  const dots = element("canvas", { width: n, height: n_q });
  const pen = dots.getContext("2d");
  const picture = pen.createImageData(n, n_q);
  const { data } = picture;
  let at = 3;
  for (const row of rows)
    for (let j = 0; j < n; j += 1, at += 4) data[at] = 0.45 * 255 * row[j];
  pen.putImageData(picture, 0, 0);
  return dots;
}

export class Shades {
  constructor(title, look, textsUpTo) {
    this.canvas = element("canvas", { role: "img", "aria-label": title });
    this.textsUpTo = textsUpTo; // beyond, cells are too small for them
    this.frame = element("figure", { class: `lab-plane lab-shades ${look}` },
      element("figcaption", {}, title), this.canvas);
  }

  // Dots as of `dotted`; text(i, j) if there is room for it.
  show(dots, text, { marked, struck = [] } = {}) {
    const { width: n, height: n_q } = dots;
    const most = Math.max(n_q, n);
    const worded = most <= this.textsUpTo;
    const side = worded ? 40 : Math.max(4, Math.floor(480 / most));
    Object.assign(this.canvas, { width: n * side, height: n_q * side });
    this.canvas.style.width = `${(100 * n) / most}%`;
    this.canvas.style.imageRendering = worded ? "auto" : "pixelated";
    const pen = this.canvas.getContext("2d");
    pen.imageSmoothingEnabled = false;
    pen.drawImage(dots, 0, 0, n * side, n_q * side);
    if (worded) this.details(pen, side, n_q, n, text);
    this.strike(pen, side, n, worded ? n : n / 64, struck);
    if (marked) {
      pen.lineWidth = Math.max(2, side / 14);
      pen.strokeRect(marked[1] * side + 1, marked[0] * side + 1,
        side - 2, side - 2);
    }
  }

  // Rows with nothing in them: a line through each; where rows are thin, only
  // its two ends, for lines in every row would be a shade.
  strike(pen, side, n, long, rows) {
    for (const i of rows)
      for (const from of [0, n - long])
        pen.fillRect(from * side, (i + 0.5) * side - 1, long * side, 2);
  }

  details(pen, side, n_q, n, text) {
    pen.globalAlpha = 0.25;
    for (let i = 1; i < n_q; i += 1) pen.fillRect(0, i * side, n * side, 1);
    for (let j = 1; j < n; j += 1) pen.fillRect(j * side, 0, 1, n_q * side);
    pen.globalAlpha = 1;
    // A small table is shown at half its size or less, and −∞ is wide: it is
    // lower than others. As high, and squeezed, it would be a blot.
    const size = this.textsUpTo > 8 ? 16 : 30;
    Object.assign(pen, { textAlign: "center", textBaseline: "middle" });
    for (let i = 0; i < n_q; i += 1)
      for (let j = 0; j < n; j += 1) {
        const told = text(i, j), high = told === "−∞" ? 0.72 * size : size;
        pen.font = `${high}px system-ui, sans-serif`;
        pen.fillText(told, (j + 0.5) * side, (i + 0.5) * side, side - 4);
      }
  }

  // The cell under the pointer.
  pointed(event, { n, n_q }) {
    const box = this.canvas.getBoundingClientRect();
    const part = (x, size, count) =>
      Math.min(count - 1, Math.max(0, Math.floor((x / size) * count)));
    return [part(event.clientY - box.top, box.height, n_q),
      part(event.clientX - box.left, box.width, n)];
  }
}
