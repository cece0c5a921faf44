// The lab on sparse patterns: what there is to see, what to try.

const named = (places) => {
  const names = places.map((m) => String(m + 1));
  return names.length < 2 ? names.join("")
    : `${names.slice(0, -1).join(", ")} or ${names.at(-1)}`;
};

const many = (count) => (count === 1 ? "1 key" : `${count} keys`);

export function sees({ causal, query, key }, { steps, ways, pairs, full }) {
  const count = (step) => steps.filter((s) => s === step).length;
  const who = `Query ${query + 1} sees ${many(count(1))} and reaches `
    + `${count(2)} more in two steps.`;
  let way = `Key ${key + 1} it does not reach in two steps.`;
  if (causal && key > query)
    way = `Key ${key + 1} comes later, and is hidden.`;
  else if (steps[key] === 1) way = `Key ${key + 1} it sees itself.`;
  else if (steps[key] === 2)
    way = `Key ${key + 1} it reaches by way of ${named(ways)}.`;
  return `${who} ${way} ${pairs} of ${full} pairs are looked at.`;
}

export const tasks = [
  { name: "1. by way of whom?",
    set: { pattern: "strided", stride: 4, causal: true, query: 15, key: 1 },
    ask: "Query 16 does not see key 2, 14 places before it. Which tokens "
      + "could tell it what key 2 says?",
    answer: (values, now) => `Token ${named(now.ways)}: each is seen by the `
      + "query and sees the key." },
  { name: "2. a stride of 1",
    set: { pattern: "strided", stride: 1, causal: true, query: 15, key: 1 },
    ask: "With a stride of 1, how many pairs are left out?",
    answer: (values, now) => `${now.full - now.pairs}: every key is a whole `
      + "number of strides away." },
  { name: "3. the cheapest",
    set: { pattern: "strided", stride: 3, causal: true, query: 15, key: 1 },
    ask: "Which stride looks at the fewest pairs? The root of 16 is 4.",
    answer: (values, now) => `3, with ${now.pairs}: in causal order the `
      + "least lies near the root of half the length, 2.8." },
  { name: "4. fixed",
    set: { pattern: "fixed", stride: 4, causal: true, query: 15, key: 1 },
    ask: "The fixed pattern, the same stride. By way of whom now?",
    answer: (values, now) => `Of ${named(now.ways)} alone, the last of key `
      + "2's block. All that is to be known of a block goes through its "
      + "last token." },
  { name: "5. no way",
    set: { pattern: "fixed", stride: 5, causal: false, query: 2, key: 15 },
    ask: "Both sides, blocks of 5, so token 16 is a block of its own without "
      + "an end. Who hears it?",
    answer: (values, now) => (now.steps[values.key]
      ? "Everybody, in two steps."
      : "Nobody but itself, in however many steps: its block has no last "
        + "token to tell the others.") },
];
