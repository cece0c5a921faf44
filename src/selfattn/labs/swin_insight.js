// The lab on Swin: what there is to see, what to try.

const heard = ({ after }) => after.filter((x) => x >= 0).length;

export function sees({ layers, row, column, shifted, masked, window }, now) {
  const many = layers === 1 ? "1 layer" : `${layers} layers`;
  const who = `The token in row ${row + 1}, column ${column + 1}, has heard `
    + `${heard(now)} of 72 after ${many}.`;
  const near = ` Of the ${now.touching} that touch it, ${now.met} shared a `
    + "window with it in some layer.";
  const round = !masked && shifted && layers > 1 && window > 1
    ? " Nothing hides what the shift has brought round from the other edge."
    : "";
  return who + near + round;
}

const START = { window: 3, layers: 2, shifted: true, masked: true,
  row: 2, column: 2 };

export const tasks = [
  { name: "1. one layer", set: { ...START, layers: 1 },
    ask: "A token in the corner of its window. Of the eight that touch it, "
      + "how many does it see?",
    answer: (values, now) => `${now.met} of ${now.touching}: the others lie `
      + "behind a border." },
  { name: "2. six layers, no shift",
    set: { ...START, layers: 6, shifted: false },
    ask: "Six layers, and all have the same windows. How many tokens has it "
      + "heard?",
    answer: (values, now) => `${heard(now)}, its own window: what is said `
      + "in another one never gets in." },
  { name: "3. two layers, shifted", set: START,
    ask: "The windows of the second layer are moved by half of three, so by "
      + "one. How many tokens has it heard now?",
    answer: (values, now) => `${heard(now)}: two windows' width each way.` },
  { name: "4. touching at a corner", set: { ...START, column: 3 },
    ask: "Both layers together: has it been in one window with each of the "
      + "eight that touch it?",
    answer: (values, now) => `With ${now.met} of ${now.touching}. One `
      + "border parts it from the last in the first layer, another one in "
      + "the second." },
  { name: "5. corners not masked",
    set: { ...START, masked: false, row: 0, column: 0 },
    ask: "The picture is rolled round and cut evenly, and nothing is hidden. "
      + "What does the first token hear?",
    answer: (values, now) => `${heard(now)} tokens, among them those of the `
      + "opposite edges, which have nothing to do with it." },
];
