// Which of the mechanisms are left, and what does each cost?

import { defineLab } from "./machinery/controls.js";
import { element, set, write } from "./machinery/drawing.js";
import { scaled } from "./machinery/units.js";
import { INPUTS_IN_WORDS, inWords, sees, tasks } from "./overview_insight.js";
import { STORED } from "./overview_table.js";

const EXACT = ["attention", "flash"]; // and the only ones for any mask
const BOUNDS = { any: null, "two thirds": 2 / 3, "a third": 1 / 3,
  "a tenth": 0.1, none: 0 };
const NAMES = Object.keys(STORED.mechanisms)
  .filter((name) => name !== "average");

function errorOf(name, { n, causal, inputs }) {
  if (EXACT.includes(name)) return 0;
  const known = STORED.mechanisms[name].errors[inputs];
  return known[causal ? "causal" : "any"]?.[STORED.measured.indexOf(n)]
    ?? null;
}

function rowOf(name, values) {
  const known = STORED.mechanisms[name];
  const order = values.causal ? "causal" : "any";
  if (!(order in known.operations)) return {
    operations: null, bytes: null, error: null, why: "no causal order" };
  const at = STORED.lengths.indexOf(values.n);
  const operations = known.operations[order][at];
  const bytes = known.bytes[order][at];
  const error = errorOf(name, values);
  const bound = BOUNDS[values.error];
  let why = "";
  if (values.mask && !EXACT.includes(name)) why = "takes no such mask";
  else if (bytes > values.memory * 2 ** 20) why = "too many bytes";
  else if (bound !== null && error === null) why = "error not measured";
  else if (bound !== null && error > bound) why = "error too large";
  return { operations, bytes, error, why };
}

// The first of the least, by one number.
const least = (left, what) => left.reduce((best, name) =>
  (best === "" || what(name) < what(best) ? name : best), "");

function compute(values) {
  const rows = NAMES.map((name) => rowOf(name, values));
  const of = Object.fromEntries(NAMES.map((name, i) => [name, rows[i]]));
  const left = NAMES.filter((name) => of[name].why === "");
  const told = left.filter((name) => of[name].error !== null);
  return { rows, remain: left.length,
    cheapest: least(left, (name) => of[name].operations),
    nearest: least(told, (name) => of[name].error),
    average: errorOf("average", values) };
}

const grouped = (number) =>
  String(number).replace(/\B(?=(\d{3})+$)/g, ",");
const mebibytes = (many) =>
  (many < 1024 ? `${many} MiB` : `${many / 1024} GiB`);
const HEADS = ["mechanism", "error", "operations", "bytes", ""];

function build(lab) {
  lab.row(
    lab.range("n", ["Tokens ", element("i", {}, "n")], { text: grouped }),
    lab.range("memory", "Bytes of a head", { text: mebibytes }),
    lab.select("inputs", "Errors on", INPUTS_IN_WORDS),
    lab.select("error", "Largest error"),
    lab.checkbox("causal", "causal"),
    lab.checkbox("mask", "a mask of my own"),
  );
  const rows = NAMES.map((name) => {
    const row = element("tr", {},
      element("th", { scope: "row" }, inWords(name)),
      ...HEADS.slice(1).map(() => element("td")));
    lab.explain(row, (values, now) => sentence(name, values, now));
    return row;
  });
  const caption = element("caption");
  lab.root.append(element("div", { class: "lab-scroll", tabindex: 0,
    role: "region", "aria-label": "The mechanisms" },
  element("table", { class: "lab-chooser" }, caption,
    element("thead", {}, element("tr", {}, ...HEADS.map((head) => (head
      ? element("th", { scope: "col" }, head) : element("td"))))),
    element("tbody", {}, ...rows))));
  lab.hint(() => "Point at or tap a mechanism, or ask for more.");
  return (values, now) => {
    write(caption, `${now.remain} of ${NAMES.length} `
      + `${now.remain === 1 ? "remains" : "remain"} at `
      + `${grouped(values.n)} tokens`);
    now.rows.forEach((row, i) => show(rows[i], row));
    lab.say(sees(values, now));
  };
}

const known = (number, unit) =>
  (number === null ? "–" : scaled(number, unit));
const errorText = (error) => (error === null ? "–" : error.toFixed(2));

function show(line, { operations, bytes, error, why }) {
  const [, off, work, held, verdict] = line.cells;
  set(line, { class: why ? "lab-out" : null });
  write(work, known(operations, ""));
  write(held, known(bytes, "B"));
  write(off, errorText(error));
  write(verdict, why || "remains");
}

// What a row says.
function sentence(name, values, { rows }) {
  const { operations, bytes, error, why } = rows[NAMES.indexOf(name)];
  const out = why ? `drops out: ${why}` : "remains";
  if (operations === null) return `${inWords(name)} ${out}.`;
  const share = (100 * operations) / rows[0].operations;
  const off = error === null ? "its error was not measured here"
    : `its error is ${error.toFixed(3)}`;
  return `${inWords(name)} ${out}. ${share.toPrecision(3)}% of attention’s `
    + `operations, ${scaled(bytes, "B")}; ${off}.`;
}

export default defineLab({ compute, build, sees, tasks });
