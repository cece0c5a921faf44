// Where a token is: waves, turns and distances, and what they do to a score.

import { defineLab } from "./machinery/controls.js";
import { decimal, drawn, element, set, write } from "./machinery/drawing.js";
import { sees, tasks } from "./positions_insight.js";

const MOST_PAIRS = 32;
const MOST_HEADS = 12;

// Angle per position of each pair of features, base^(-2i/d).
export function frequencies(d, base) {
  return Array.from({ length: d / 2 }, (_, i) => base ** ((-2 * i) / d));
}

// 2^(-8/h), 2^(-16/h) … for a power of two; else those of the power below,
// and the rest from every second of the power above.
export function alibiSlopes(heads) {
  const below = 2 ** Math.floor(Math.log2(heads));
  return Array.from({ length: heads }, (_, i) => i < below
    ? 2 ** ((-8 / below) * (i + 1))
    : 2 ** ((-4 / below) * (2 * (i - below) + 1)));
}

const radians = (degrees) => (degrees * Math.PI) / 180;

// Each encoding gives the rows of its picture, one column a position, and the
// curves under it: what the query at its place makes of every position.
const ENCODINGS = {
  sinusoidal({ n, d, base, query }) {
    const turns = frequencies(d, base);
    const rows = turns.flatMap((w) => [
      positions(n, (p) => Math.sin(p * w)),
      positions(n, (p) => Math.cos(p * w)),
    ]);
    const curve = positions(n, (j) =>
      rows.reduce((sum, row) => sum + row[query] * row[j], 0));
    return { turns, rows, curves: [curve] };
  },
  rope({ n, d, base, query, turn }) {
    // In every pair the query is (1, 0), and the key is turned away from it.
    const turns = frequencies(d, base);
    const key = radians(turn);
    const rows = turns.flatMap((w) => [
      positions(n, (p) => Math.cos(p * w + key)),
      positions(n, (p) => Math.sin(p * w + key)),
    ]);
    const asked = turns.flatMap((w) =>
      [Math.cos(query * w), Math.sin(query * w)]);
    const curve = positions(n, (j) =>
      rows.reduce((sum, row, f) => sum + asked[f] * row[j], 0));
    return { turns, rows, curves: [curve] };
  },
  alibi({ n, query, heads }) {
    const curves = alibiSlopes(heads).map((slope) =>
      positions(n, (j) => -slope * Math.abs(query - j)));
    const rows = curves.map((curve) => curve.map((bias) => Math.exp(bias)));
    return { turns: [], rows, curves };
  },
};

function positions(n, at) {
  return Array.from({ length: n }, (_, p) => at(p));
}

function compute(values) {
  return ENCODINGS[values.encoding](values);
}

const SAYS = {
  sinusoidal: {
    map: "The table: features down, positions across",
    curve: "Row of the query · row of each position",
  },
  rope: {
    map: "One key, turned: features down, positions across",
    curve: "Query · key, for a key at each position",
  },
  alibi: {
    map: "What a weight is multiplied by: heads down, positions across",
    curve: "Added to the score of a key at each position",
  },
};

function build(lab) {
  const waves = ({ encoding }) => encoding !== "alibi";
  lab.row(
    lab.select("encoding", "Encoding", {
      sinusoidal: "sinusoidal: a table to add",
      rope: "RoPE: queries and keys turn",
      alibi: "ALiBi: distance costs",
    }),
    lab.range("n", ["Positions ", element("i", {}, "n")]),
    lab.range("d", ["Features ", element("i", {}, "d")], { when: waves }),
    lab.range("base", "Base", { when: waves, text: grouped }),
    lab.range("heads", "Heads", { when: (values) => !waves(values) }),
    lab.range("query", "Query at"),
    lab.range("key", "Key at"),
    lab.range("turn", "Key turned by", {
      when: ({ encoding }) => encoding === "rope",
      text: (degrees) => `${decimal(degrees, 0)}°` }),
  );
  const parts = [mapOf(lab), chartOf(lab), dialsOf(lab)];
  lab.root.append(...parts.map(({ frame }) => frame));
  lab.hint(sentence);
  return (values, result) => {
    for (const part of parts) part.show(values, result);
    lab.say(sentence(values, result));
    lab.hint(sentence);
  };
}

const grouped = (number) =>
  String(number).replace(/\B(?=(\d{3})+$)/g, ",");

// "Query at 20, key at 12, 8 back: product 5.123."
function sentence(values, { curves }) {
  const { encoding, query, key } = values;
  const away = query - key;
  const where = `Query at ${query}, key at ${key}, `
    + (away === 0 ? "the same place" : `${Math.abs(away)} `
      + (away > 0 ? "back" : "ahead"));
  if (encoding !== "alibi")
    return `${where}: product ${decimal(curves[0][key])}.`;
  const steepest = decimal(curves[0][key]);
  const flattest = curves.length === 1 ? ""
    : `, head ${curves.length} ${decimal(curves.at(-1)[key])}`;
  return `${where}: head 1 adds ${steepest} to the score${flattest}.`;
}

// One pixel a number: black is 1, white is the least there can be.
function mapOf(lab) {
  const caption = element("figcaption");
  const canvas = element("canvas", { class: "lab-waves", role: "img" });
  const frame = element("figure", { class: "lab-plane" }, caption, canvas);
  canvas.addEventListener("pointermove", (event) => {
    const box = canvas.getBoundingClientRect();
    const { rows } = lab.result;
    const place = (x, size, count) =>
      Math.min(count - 1, Math.max(0, Math.floor((x / size) * count)));
    const f = place(event.clientY - box.top, box.height, rows.length);
    const p = place(event.clientX - box.left, box.width, rows[0].length);
    lab.detail((values, result) => pixel(values, result.rows, f, p));
  });

  function show({ encoding }, { rows }) {
    write(caption, SAYS[encoding].map);
    set(canvas, { width: rows[0].length, height: rows.length,
      "aria-label": `${SAYS[encoding].map}; `
        + `${rows.length} rows, ${rows[0].length} columns` });
    const low = encoding === "alibi" ? 0 : -1;
    const pen = canvas.getContext("2d");
    const picture = pen.createImageData(rows[0].length, rows.length);
    rows.flat().forEach((x, i) => {
      picture.data[4 * i + 3] = Math.round((255 * (x - low)) / (1 - low));
    });
    pen.putImageData(picture, 0, 0);
  }
  return { frame, show };
}

function pixel({ encoding }, rows, f, p) {
  const number = decimal(rows[f][p]);
  if (encoding === "alibi")
    return `Head ${f + 1}, position ${p}: weight times ${number}.`;
  const waves = encoding === "rope" ? ["first", "second"] : ["sine", "cosine"];
  return `Feature ${f}, ${waves[f % 2]} of pair ${Math.floor(f / 2)}, `
    + `position ${p}: ${number}.`;
}

const WIDE = 480;
const HIGH = 150;
const EDGE = 12; // room above and below for a curve's ends

// The curves over the positions, and where the query and the key stand.
function chartOf(lab) {
  const picture = drawn("svg", {
    viewBox: `0 0 ${WIDE} ${HIGH}`, role: "img",
    style: `aspect-ratio: ${WIDE} / ${HIGH}; max-width: none` });
  const caption = element("figcaption");
  const zero = drawn("line", { x1: 0, x2: WIDE, class: "lab-axis" });
  const lines = Array.from({ length: MOST_HEADS }, () =>
    drawn("polyline", { class: "lab-curve" }));
  const ticks = ["hanging", "auto"].map((baseline) =>
    drawn("text", { class: "lab-tick", x: 3, "dominant-baseline": baseline }));
  const asks = drawn("line", { y1: 0, y2: HIGH, class: "lab-query-line" });
  const asked = drawn("circle", { r: 5, class: "lab-key-dot" });
  picture.append(zero, asks, ...lines, asked, ...ticks);
  const frame = element("figure", { class: "lab-plane" }, caption, picture);
  lab.explain(picture, sentence);

  function show({ encoding, n, d, query, key }, { curves }) {
    const top = encoding === "alibi" ? 0 : d / 2;
    const bottom = encoding === "alibi"
      ? Math.min(-1, ...curves.flat()) : -d / 2;
    const x = (p) => ((p + 0.5) * WIDE) / n;
    const y = (value) =>
      EDGE + ((top - value) / (top - bottom)) * (HIGH - 2 * EDGE);
    write(caption, SAYS[encoding].curve);
    set(picture, { "aria-label": SAYS[encoding].curve });
    lines.forEach((line, h) => set(line, { points: (curves[h] ?? [])
      .map((value, p) => `${x(p).toFixed(1)},${y(value).toFixed(2)}`)
      .join(" ") }));
    set(zero, { y1: y(0), y2: y(0) });
    set(asks, { x1: x(query), x2: x(query) });
    set(asked, { cx: x(key).toFixed(1), cy: y(curves[0][key]).toFixed(2) });
    [top, bottom].forEach((value, i) => {
      set(ticks[i], { y: i ? HIGH - 1 : 1 });
      write(ticks[i], decimal(value, 0));
    });
  }
  return { frame, show };
}

// A clock for each pair: the query's hand and the key's.
function dialsOf(lab) {
  const row = element("div", { class: "lab-dials" });
  const frame = element("figure", { class: "lab-plane" },
    element("figcaption", {}, "The angle of each pair"), row);
  const dials = Array.from({ length: MOST_PAIRS }, (_, i) => {
    const hands = ["lab-key-line", "lab-query-line"].map((look) =>
      drawn("line", { x1: 0, y1: 0, class: look }));
    const dial = drawn("svg", { viewBox: "-12 -12 24 24", role: "img",
      tabindex: 0 }, drawn("circle", { r: 11, class: "lab-dial" }), ...hands);
    lab.explain(dial, (values, result) => dialSentence(values, result, i));
    row.append(dial);
    return { dial, hands };
  });

  function show(values, { turns }) {
    const { encoding, query, key, turn } = values;
    frame.hidden = turns.length === 0;
    const ahead = encoding === "rope" ? radians(turn) : 0;
    dials.forEach(({ dial, hands }, i) => {
      // An SVG has no `hidden` of its own.
      dial.classList.toggle("lab-absent", i >= turns.length);
      if (i >= turns.length) return;
      set(dial, { "aria-label": dialSentence(values, { turns }, i) });
      [key * turns[i] + ahead, query * turns[i]].forEach((angle, hand) =>
        set(hands[hand], { x2: (10 * Math.cos(angle)).toFixed(2),
          y2: (-10 * Math.sin(angle)).toFixed(2) }));
    });
  }
  return { frame, show };
}

// "Pair 3, once round in 35.3 positions: query at 204°, key at 122°."
function dialSentence({ encoding, query, key, turn }, { turns }, i) {
  const ahead = encoding === "rope" ? turn : 0;
  const degrees = (p, more) =>
    decimal((((p * turns[i] * 180) / Math.PI + more) % 360 + 360) % 360, 0);
  return `Pair ${i}, once round in ${decimal((2 * Math.PI) / turns[i], 1)} `
    + `positions: query at ${degrees(query, 0)}°, `
    + `key at ${degrees(key, ahead)}°.`;
}

export default defineLab({ compute, build, sees, tasks });
