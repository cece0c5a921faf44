// Words beside points: each where it hides no other word, point or number.

// A letter of size 1: how far it goes above and below its line, and its width.
// Boxes are [left, top, right, bottom].
const LETTER = { high: 0.75, deep: 0.22 };
const widthOf = (letter) => (/[fijlrtI.,:]/.test(letter) ? 0.4
  : /[mwMW−]/.test(letter) ? 0.9 : 0.62);
const BESIDE = 4; // from a point's edge to its word
const BETWEEN = 0.3; // of a letter: less, and two words read as one

export function boxOf({ x, y, text, size, anchor = "start" }) {
  const width = size * [...text].reduce((sum, x) => sum + widthOf(x), 0);
  const left = x - width * { start: 0, middle: 0.5, end: 1 }[anchor];
  return [left, y - LETTER.high * size, left + width, y + LETTER.deep * size];
}

// A line as small boxes, one behind the other.
export function boxesAlong(from, to) {
  const steps = Math.ceil(Math.hypot(to[0] - from[0], to[1] - from[1]) / 4);
  return Array.from({ length: steps }, (_, i) => {
    const [x, y] = from.map((start, axis) =>
      start + ((i + 0.5) / steps) * (to[axis] - start));
    return [x - 2, y - 2, x + 2, y + 2];
  });
}

// Where a word may stand about a point of radius r, the best first.
function placesAbout(r, size) {
  const [up, down] = [-6, 6 + LETTER.high * size];
  const side = r + BESIDE, middle = (LETTER.high - LETTER.deep) * size / 2;
  return [
    [8, up, "start"], [-8, up, "end"], [8, down, "start"], [-8, down, "end"],
    [side, middle, "start"], [-side, middle, "end"],
    [0, -side, "middle"], [0, side + LETTER.high * size, "middle"],
  ];
}

function overlap(a, b) {
  const wide = Math.min(a[2], b[2]) - Math.max(a[0], b[0]);
  const high = Math.min(a[3], b[3]) - Math.max(a[1], b[1]);
  return Math.max(0, wide) * Math.max(0, high);
}

const area = ([left, top, right, bottom]) => (right - left) * (bottom - top);

function withRoom([left, top, right, bottom], room) {
  return [left - room, top, right + room, bottom];
}

// For points { x, y, r, text }: where the words go, { x, y, anchor } from
// each point, one after the other. `taken` are boxes with something in them,
// `sheet` is the picture's own.
export function letter(points, { size, taken, sheet }) {
  const full = [...taken, ...points.map(({ x, y, r }) =>
    [x - r, y - r, x + r, y + r])];
  return points.map((point) => {
    if (!point.text) return { x: 8, y: -6, anchor: "start" };
    const costs = placesAbout(point.r, size).map(([x, y, anchor], i) => {
      const box = boxOf({ ...point, x: point.x + x, y: point.y + y, size,
        anchor });
      const wide = withRoom(box, BETWEEN * size);
      const hidden = full.reduce((sum, one) => sum + overlap(wide, one), 0);
      const outside = area(box) - overlap(box, sheet);
      return { x, y, anchor, box, cost: hidden + 9 * outside + i / 10 };
    });
    const { x, y, anchor, box } = costs.reduce((best, one) =>
      (one.cost < best.cost ? one : best));
    full.push(box);
    return { x, y, anchor };
  });
}
