// How far one token is from another, and how many hops wait for each other.

import { defineLab } from "./machinery/controls.js";
import { drawn, element, set, write } from "./machinery/drawing.js";
import { namedNumbers } from "./machinery/pictures.js";
import { grouped, sees, tasks } from "./origins_insight.js";

const WIDTH = 64; // features of a token, for the counts of one layer
const MOST = 16; // tokens
const ACROSS = 320;
const DOWN = 200;

function hopsOf(architecture, distance, kernel) {
  if (architecture === "attention" || architecture === "dense") return 1;
  if (architecture === "recurrent") return distance + 1;
  let [layers, reached] = [1, kernel - 1];
  while (reached < distance) {
    reached += (kernel - 1) * (architecture === "dilated"
      ? kernel ** layers : 1);
    layers += 1;
  }
  return layers;
}

const parametersOf = ({ architecture, kernel, n }) => WIDTH * WIDTH * {
  recurrent: 2, convolution: kernel, dilated: kernel, attention: 4,
  dense: n * n,
}[architecture];

function operationsOf(values) {
  const { architecture, n } = values;
  const weights = parametersOf(values);
  if (architecture === "dense") return 2 * weights;
  const pairs = architecture === "attention" ? 4 * n * n * WIDTH : 0;
  return 2 * n * weights + pairs;
}

// What a node is made of: [layer, place], from its own place backwards.
function sourcesOf({ architecture, kernel, n }, [layer, place]) {
  const back = (count) => Array.from({ length: count }, (_, i) => i);
  if (architecture === "recurrent")
    return [[0, place], ...place ? [[1, place - 1]] : []];
  if (architecture === "dense")
    return back(n).map((i) => [layer - 1, n - 1 - i]);
  if (architecture === "attention")
    return back(place + 1).map((i) => [layer - 1, place - i]);
  const apart = architecture === "dilated" ? kernel ** (layer - 1) : 1;
  return back(kernel).map((i) => [layer - 1, place - apart * i])
    .filter(([, j]) => j >= 0);
}

function edgesTo(values, node) {
  const [edges, waiting, known] = [[], [node], new Set([String(node)])];
  while (waiting.length) {
    const end = waiting.shift();
    for (const start of sourcesOf(values, end)) {
      edges.push([start, end]);
      if (!start[0] || known.has(String(start))) continue;
      known.add(String(start));
      waiting.push(start);
    }
  }
  return edges;
}

function wayTo({ architecture, kernel, token }, node) {
  const path = [node];
  while (path[0][0] > 0) {
    const [layer, place] = path[0];
    if (architecture === "recurrent")
      path.unshift(place === token ? [0, place] : [1, place - 1]);
    else if (architecture === "attention" || architecture === "dense")
      path.unshift([0, token]);
    else {
      const apart = architecture === "dilated" ? kernel ** (layer - 1) : 1;
      const taken = Math.min(kernel - 1, Math.floor((place - token) / apart));
      path.unshift([layer - 1, place - apart * taken]);
    }
  }
  return path;
}

function compute(values) {
  const { architecture, kernel, n, output, token } = values;
  const hops = hopsOf(architecture, output - token, kernel);
  const top = [architecture === "recurrent" ? 1 : hops, output];
  const edges = edgesTo(values, top);
  const below = edges.filter(([[layer]]) => layer === 0)
    .map(([[, place]]) => place);
  return {
    hops,
    steps: hopsOf(architecture, n - 1, kernel),
    heard: new Set(below).size,
    parameters: parametersOf(values),
    operations: operationsOf(values),
    path: wayTo(values, top),
    edges,
  };
}

const isConvolution = ({ architecture }) =>
  architecture === "convolution" || architecture === "dilated";

function build(lab) {
  lab.row(
    lab.select("architecture", "Connected by", {
      recurrent: "recurrence: one after the other",
      convolution: "convolution: neighbours",
      dilated: "dilated: ever further apart",
      attention: "attention: everyone before",
      dense: "a dense layer: everyone",
    }),
    lab.range("kernel", "Kernel", { when: isConvolution }),
  );
  lab.row(
    lab.range("n", ["Tokens ", element("i", {}, "n")]),
    lab.range("output", "Output at", { text: (i) => String(i + 1) }),
    lab.range("token", "Token at", { text: (i) => String(i + 1) }),
  );
  const network = networkOf(lab);
  const counts = namedNumbers("Counted");
  lab.root.append(element("div", { class: "lab-pair" }, network.frame,
    element("div", { class: "lab-scroll" }, counts.frame)));
  lab.hint(() => "Point at a place, or press it: it becomes the token.");
  return (values, now) => {
    network.show(values, now);
    counts.show([
      ["hops on the way", String(now.hops)],
      [`steps that wait, for all ${values.n} tokens`, String(now.steps)],
      ["tokens heard by then", String(now.heard)],
      [`weights of one layer, ${WIDTH} features`, grouped(now.parameters)],
      ["operations of one layer", grouped(now.operations)],
    ]);
    lab.say(sees(values, now));
  };
}

// Places across, layers upwards; all ways to the output thin, one way thick.
function networkOf(lab) {
  const all = drawn("path", { class: "lab-ways" });
  const nodes = drawn("path", { class: "lab-nodes" });
  const way = drawn("path", { class: "lab-way" });
  const picture = drawn("svg", { viewBox: `0 0 ${ACROSS} ${DOWN}`,
    role: "img", "aria-label": "The way from the token to the output",
    style: `aspect-ratio: ${ACROSS} / ${DOWN}` });
  const ticks = Array.from({ length: MOST }, () =>
    drawn("text",
      { class: "lab-tick", y: DOWN - 4, "text-anchor": "middle" }));
  const columns = Array.from({ length: MOST }, (_, place) => {
    const column = drawn("rect", { y: 0, height: DOWN, class: "lab-above" });
    lab.explain(column, (values) => placeSentence(place, values));
    column.addEventListener("click", () => {
      if (place <= lab.values().output) lab.set({ token: place });
    });
    return column;
  });
  picture.append(all, nodes, way, ...ticks, ...columns);
  const caption = element("figcaption");
  const frame = element("figure", { class: "lab-plane" }, caption, picture);

  function show(values, now) {
    const { n, output, token } = values;
    const top = now.path.at(-1)[0];
    const width = ACROSS / n;
    const at = ([layer, place]) => [(place + 0.5) * width,
      DOWN - 30 - (layer / top) * (DOWN - 46)];
    const point = (node) => at(node).map((x) => x.toFixed(1)).join(" ");
    set(all, { d: now.edges.map(([start, end]) =>
      `M${point(start)}L${point(end)}`).join("") });
    set(way, { d: `M${now.path.map(point).join("L")}` });
    const layers = Array.from({ length: top + 1 }, (_, layer) => layer);
    set(nodes, { d: layers.flatMap((layer) => columns.slice(0, n)
      .map((_, place) => `M${point([layer, place])}h.01`)).join("") });
    columns.forEach((column, place) => {
      column.classList.toggle("lab-absent", place >= n);
      ticks[place].classList.toggle("lab-absent", place >= n);
      if (place >= n) return;
      set(column, { x: (place * width).toFixed(1), width: width.toFixed(1) });
      set(ticks[place], { x: ((place + 0.5) * width).toFixed(1) });
      const named = [0, n - 1, output, token].includes(place);
      write(ticks[place], named ? String(place + 1) : "");
    });
    write(caption, `From token ${token + 1}, below, to output ${output + 1}, `
      + `above: ${now.hops} ${now.hops === 1 ? "hop" : "hops"}`);
  }
  return { frame, show };
}

function placeSentence(place, { architecture, kernel, output }) {
  const name = `Token ${place + 1}`;
  if (place > output) return architecture === "dense"
    ? `${name} comes later, and is heard all the same.`
    : `${name} comes after the output: it is not heard.`;
  const hops = hopsOf(architecture, output - place, kernel);
  return `${name}: ${hops} ${hops === 1 ? "hop" : "hops"} to output `
    + `${output + 1}. Click to choose it.`;
}

export default defineLab({ compute, build, sees, tasks });
