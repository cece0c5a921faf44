// The lab on origins: what there is to see, what to try.

const counted = (number, one) => `${number} ${one}${number === 1 ? "" : "s"}`;

export function sees({ output, token, n }, { hops, steps, heard }) {
  const apart = output - token;
  const where = apart ? `${counted(apart, "place")} back` : "its own place";
  return `Output ${output + 1} hears token ${token + 1}, ${where}, after `
    + `${counted(hops, "hop")}, and ${counted(heard, "token")} by then. All `
    + `${n} tokens take ${counted(steps, "step")}`
    + `${steps === 1 ? "" : " that wait for each other"}.`;
}

const ends = { n: 16, output: 15, token: 0 };

export const tasks = [
  { name: "1. one by one",
    set: { architecture: "recurrent", ...ends },
    ask: "Sixteen tokens, read one by one. How many hops from the first "
      + "token to the last output?",
    answer: (values, { hops }) =>
      `${hops}: each cell waits for the one before it.` },
  { name: "2. a stack of convolutions",
    set: { architecture: "convolution", kernel: 4, ...ends },
    ask: "A kernel of 4. How many layers does the way take?",
    answer: (values, { hops }) =>
      `${hops}: each layer goes three places back, and there are 15.` },
  { name: "3. dilated",
    set: { architecture: "dilated", kernel: 4, ...ends },
    ask: "Now the second layer sees tokens 4 apart. How many layers?",
    answer: (values, { hops, heard }) =>
      `${hops}: they hear four times four, all ${heard} tokens.` },
  { name: "4. attention",
    set: { architecture: "attention", ...ends },
    ask: "What does one hop cost here, beside the convolution’s?",
    answer: (values, { operations }) =>
      `${grouped(operations)} operations a layer: its matrices, and a score `
      + "and a sum for each pair of tokens." },
];

export const grouped = (number) =>
  String(number).replace(/\B(?=(\d{3})+$)/g, ",");
