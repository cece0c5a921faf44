// The lab of the overview: what there is to see, what to try.

export const INPUTS_IN_WORDS = {
  normal: "normal: weight everywhere", far: "far: weight on one, anywhere",
  near: "near: weight on one, close by",
  "first layer": "a trained model’s first layer",
  "last layer": "a trained model’s last layer",
};
const WORDS = {
  "window 64": "window of 64", "Longformer 64": "Longformer, 64",
  "Swin 64": "Swin, 64 in a row", "LSH 4": "Reformer, 4 rounds",
  "Linformer 64": "Linformer, 64 means", linear: "linear attention",
  "Performer 64": "Performer, 64",
};
export const inWords = (name) => WORDS[name] ?? name;
const commas = (number) => String(number).replace(/\B(?=(\d{3})+$)/g, ",");

export function sees({ n }, { remain, cheapest, nearest, average, rows }) {
  const here = `At ${commas(n)} tokens`;
  if (remain === 0) return `${here} nothing remains: ask for less.`;
  const none = average === null ? "Here no errors were measured."
    : `To average all values is ${average.toFixed(2)} off.`;
  const near = nearest ? ` The nearest is ${inWords(nearest)}.` : "";
  const many = `${remain} of ${rows.length}`;
  return `${here} ${many} ${remain === 1 ? "remains" : "remain"}. `
    + `Fewest operations: ${inWords(cheapest)}.${near} ${none}`;
}

const whole = { n: 8192, causal: true, error: "none", mask: false,
  memory: 4096, inputs: "normal" };
const free = { n: 2048, causal: false, error: "any", mask: false,
  memory: 4096 };
const leftOver = ({ rows }) => rows.filter(({ why }) => !why).length;

export const tasks = [
  { name: "1. nothing may change",
    set: { ...whole, memory: 512 },
    ask: "8,192 tokens, no error, half a gibibyte a head: what remains?",
    answer: (values, now) => `${leftOver(now)}: ${inWords(now.cheapest)}. `
      + "It holds no table, and in causal order it leaves out what lies in "
      + "the future; every other pair it compares." },
  { name: "2. weight everywhere",
    set: { ...free, inputs: "normal" },
    ask: "Normal queries and keys. Which is nearest of those that are not "
      + "exact, and is that better than the plain average?",
    answer: (values, now) => sees(values, now)
      + " Look at the column of errors: those that mix all are near it." },
  { name: "3. far away",
    set: { ...free, inputs: "far", error: "two thirds" },
    ask: "Each query fits one key, anywhere. What is at most two thirds off?",
    answer: (values, now) => sees(values, now) },
  { name: "4. close by",
    set: { ...free, inputs: "near", error: "two thirds" },
    ask: "The same, but the key is close by. Who has come in?",
    answer: (values, now) => sees(values, now) },
  { name: "5. a model that writes",
    set: { ...free, causal: true, inputs: "first layer", error: "a third" },
    ask: "The first layer of a trained model of letters, causal: what is at "
      + "most a third off?",
    answer: (values, now) => sees(values, now) },
  { name: "6. a short text",
    set: { ...free, n: 128, inputs: "near" },
    ask: "128 tokens. Which of these saves nothing?",
    answer: (values, { rows }) => {
      const dear = rows.filter((row) => row.operations
        >= rows[0].operations).length - 1;
      return `${dear} of the others do as many operations as attention, or `
        + "more: what is cheaper for long texts need not be for short ones.";
    } },
];
