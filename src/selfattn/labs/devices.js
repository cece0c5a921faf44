// Three ways to share attention out: what does a rank send, what does it hold?

import { defineLab } from "./machinery/controls.js";
import { drawn, element, set, write } from "./machinery/drawing.js";
import { scaled } from "./machinery/units.js";
import { sees, tasks } from "./devices_insight.js";

const BYTES = 2; // of a number in half precision
const WAYS = { heads: "heads dealt out", ring: "ring", swap: "all-to-all" };
// What the makers state, in gigabytes a second, each way.
const LINKS = { NVLink: 450, InfiniBand: 50, Ethernet: 1.25 };
const COLOURS = {
  heads: "var(--query)", ring: "var(--key)", swap: "var(--value)" };

function compute({ ranks, n, n_heads, d_head, link }) {
  const piece = BYTES * (n / ranks) * n_heads * d_head;
  const uneven = n_heads % ranks !== 0;
  const closed = `${n_heads} heads do not divide among ${ranks} ranks`;
  const sent = {
    heads: 2 * (ranks - 1) * piece, // one all-reduce, in a ring
    ring: 2 * (ranks - 1) * piece, // keys and values, hop by hop
    swap: 4 * (ranks - 1) * piece / ranks, // q, k, v and the output
  };
  const held = {
    heads: (2 * ranks + 4) * piece, // all of x and y; its heads' q … o
    // x, y, q … o; from two ranks on a block that comes, from three on one
    // that goes and is not its own.
    ring: (6 + 2 * (Math.min(ranks, 3) - 1)) * piece,
    swap: (ranks > 1 ? 10 : 6) * piece, // q … o, twice: its heads'
  };
  return Object.fromEntries(Object.keys(WAYS).map((way) => [way,
    uneven && way !== "ring"
      ? { sent: null, held: null, seconds: null, refused: closed }
      : { sent: sent[way], held: held[way],
        seconds: sent[way] / (LINKS[link] * 1e9), refused: "" }]));
}

const grouped = (number) =>
  String(number).replace(/\B(?=(\d{3})+$)/g, ",");

const bytes = (number) => (number ? scaled(number, "B") : "nothing");

export function time(seconds) {
  if (!seconds) return "no time";
  const [times, unit] = seconds < 1e-3 ? [1e6, "µs"]
    : seconds < 1 ? [1e3, "ms"] : [1, "s"];
  return `${(times * seconds).toPrecision(3)} ${unit}`;
}

function build(lab) {
  lab.row(
    lab.range("ranks", "Ranks", { text: grouped }),
    lab.range("n", ["Tokens ", element("i", {}, "n")], { text: grouped }),
    lab.range("n_heads", "Heads"),
    lab.range("d_head", "Features of a head"),
    lab.select("link", "Link", Object.fromEntries(Object.entries(LINKS)
      .map(([name, rate]) => [name, `${name}: ${rate} GB/s each way`]))),
  );
  const chart = bars(lab);
  const table = wayTable();
  lab.root.append(element("div", { class: "lab-pair" },
    chart.frame, table.frame));
  lab.hint(() => "Point at or tap one of the ways in the chart.");
  return (values, result) => {
    chart.show(result);
    table.show(result);
    lab.say(Object.entries(WAYS).map(([way, name]) =>
      `${name}: ${result[way].refused || bytes(result[way].sent)}`)
      .join("; ") + ".");
  };
}

const WIDE = 260;
const ROW = 56;
const [LOW, TOP] = [3, 12]; // powers of ten on the level axis

// Two bars a way: what is sent, and, fainter, what is held.
function bars(lab) {
  const high = 3 * ROW + 16;
  const x = (size) => size < 10 ** LOW ? 0
    : (Math.log10(size) - LOW) / (TOP - LOW) * WIDE;
  const picture = drawn("svg", {
    viewBox: `0 0 ${WIDE} ${high}`, role: "img",
    "aria-label": "What a rank sends and holds, two bars for each way",
    style: `aspect-ratio: ${WIDE} / ${high}` });
  for (const [power, name] of [[3, "1 kB"], [6, "1 MB"], [9, "1 GB"]]) {
    picture.append(drawn("line", { x1: x(10 ** power), x2: x(10 ** power),
      y1: 0, y2: 3 * ROW, class: "lab-grid" }));
    picture.append(drawn("text", { x: x(10 ** power), y: high - 3,
      class: "lab-tick", "text-anchor": power === 3 ? "start" : "middle" },
    name));
  }
  const parts = Object.keys(WAYS).map((way, place) => {
    const fill = { x: 0, height: 12, fill: COLOURS[way] };
    const sent = drawn("rect", { ...fill, y: place * ROW + 18 });
    const held = drawn("rect", { ...fill, y: place * ROW + 33,
      "fill-opacity": 0.4 });
    const name = drawn("text", { x: 2, y: place * ROW + 13,
      class: "lab-tick" });
    const reach = drawn("rect", { x: 0, y: place * ROW, width: WIDE,
      height: ROW, class: "lab-reach" });
    lab.explain(reach, (_, result) => told(way, result[way]));
    picture.append(sent, held, name, reach);
    return { way, sent, held, name };
  });
  const caption = element("figcaption", {},
    "Bytes of a rank: sent, and, fainter, held at least");
  const frame = element("figure", { class: "lab-plane" }, caption, picture);

  function show(result) {
    for (const { way, sent, held, name } of parts) {
      const share = result[way];
      set(sent, { width: x(share.sent ?? 0).toFixed(1) });
      set(held, { width: x(share.held ?? 0).toFixed(1) });
      write(name, share.refused ? `${WAYS[way]}: closed` : WAYS[way]);
    }
  }
  return { frame, show };
}

const told = (way, { sent, held, seconds, refused }) => refused
  ? `${WAYS[way]} is closed: ${refused}.`
  : `${WAYS[way]}: a rank sends ${bytes(sent)}, which takes `
    + `${time(seconds)} on this link, and holds at least ${bytes(held)}.`;

// The same in numbers.
function wayTable() {
  const heads = ["way", "sent", "on the link", "held at least"].map((text) =>
    element("th", { scope: "col" }, text));
  const body = element("tbody", {}, ...Object.values(WAYS).map((name) =>
    element("tr", {}, element("th", { scope: "row" }, name),
      element("td"), element("td"), element("td"))));
  const frame = element("table", { class: "lab-ways-table" },
    element("caption", {}, "One rank, one layer, one forward pass"),
    element("thead", {}, element("tr", {}, ...heads)), body);
  function show(result) {
    Object.keys(WAYS).forEach((way, i) => {
      const { sent, held, seconds, refused } = result[way];
      const words = refused ? ["closed", "–", "–"]
        : [bytes(sent), time(seconds), bytes(held)];
      words.forEach((text, j) => write(body.rows[i].cells[j + 1], text));
    });
  }
  return { frame, show };
}

export default defineLab({ compute, build, sees, tasks });
