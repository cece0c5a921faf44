// The lab on Reformer: what there is to see, what to try.

const count = ({ seen }) => seen.filter(Boolean).length;
const percent = (x) => `${Math.round(100 * x)}%`;

export function sees({ token, chunk }, now) {
  const name = `Token ${token + 1}`;
  const many = count(now);
  const keys = many === 1 ? "1 other" : `${many} others`;
  const cut = now.lost === 1 ? "1 more shares its bucket and was"
    : `${now.lost} more share its bucket and were`;
  const lost = now.lost === 0 ? ""
    : ` ${cut} cut off by the chunks of ${chunk}.`;
  if (many === 0)
    return `${name} finds no other of ${now.allowed}, and sees only itself.`
      + lost;
  return `${name} sees ${keys} of ${now.allowed}, to which full attention `
    + `gives ${percent(now.weight)} of its weight.${lost}`;
}

const START = { buckets: 4, rounds: 1, draw: 0, chunk: 16, causal: false,
  token: 9, last: 11 };

export const tasks = [
  { name: "1. two buckets", set: { ...START, buckets: 2 },
    ask: "Two buckets are two sides of a line through the middle. How many "
      + "of the others does token 10 keep, and how much of the weight?",
    answer: (values, now) => `${count(now)} of ${now.allowed}, and `
      + `${percent(now.weight)} of the weight: those far away had little.` },
  { name: "2. eight buckets", set: { ...START, buckets: 8 },
    ask: "Eight narrow buckets. Is every near token found?",
    answer: (values, now) => `No: ${count(now)} of ${now.allowed}, with `
      + `${percent(now.weight)} of the weight. A border may fall between `
      + "two that are close together." },
  { name: "3. four rounds", set: { ...START, buckets: 8, rounds: 4 },
    ask: "Eight buckets again, drawn four times. What do the other borders "
      + "bring back?",
    answer: (values, now) => `${count(now)} are seen now, with `
      + `${percent(now.weight)} of the weight: a pair that one border parts `
      + "is together in another draw." },
  { name: "4. short chunks", set: { ...START, buckets: 2, chunk: 2 },
    ask: "Two buckets, sorted and cut into chunks of 2. What is lost?",
    answer: (values, now) => `${now.lost} tokens of its own bucket lie in `
      + `other chunks; ${count(now)} are left.` },
  { name: "5. a later token turns",
    set: { ...START, buckets: 2, chunk: 2, causal: true, token: 8, last: 3 },
    ask: "Nobody sees what comes later. Turn the last token with its slider: "
      + "does token 9 go on seeing the same keys?",
    answer: (values, now) => `No. At this setting it sees ${count(now)}. The `
      + "last token is hidden from it, and takes a place in the sorted row "
      + "all the same: it pushes others over the border of a chunk." },
];
