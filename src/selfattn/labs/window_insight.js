// The lab on windows: what there is to see, what to try.

export const grouped = (number) =>
  String(number).replace(/\B(?=(\d{3})+$)/g, ",");

const after = (layers) =>
  (layers === 1 ? "After 1 layer" : `After ${layers} layers`);

export function sees({ layers, token }, { heard, pairs, full }) {
  const top = heard.at(-1);
  const many = top.filter(Boolean).length;
  const away = Math.max(...top.map((h, i) => (h ? Math.abs(i - token) : 0)));
  const last = top.at(-1) ? "The last token is among them."
    : "The last token has not heard it.";
  const who = many === 1 ? "1 token has" : `${many} tokens have`;
  return `${after(layers)} ${who} heard token ${token + 1}, the farthest `
    + `${away} away. ${last} ${grouped(pairs)} of ${grouped(full)} `
    + "pairs were looked at.";
}

const count = ({ heard }) => heard.at(-1).filter(Boolean).length;

export const tasks = [
  { name: "1. one layer",
    set: { window: 4, layers: 1, causal: true, global_tokens: 0,
      full_last: false, token: 2 },
    ask: "A causal window of 4, one layer. Who hears token 3?",
    answer: (values, now) => `${count(now)} tokens: itself and the 3 after `
      + "it. A window counts the query’s own place." },
  { name: "2. five layers",
    set: { window: 4, layers: 5, causal: true, global_tokens: 0,
      full_last: false, token: 0 },
    ask: "How far does token 1 get in five such layers?",
    answer: (values, now) => `To ${count(now)} tokens, all there are: 5 · 3 `
      + "+ 1. One layer fewer, and the last three would not have heard it." },
  { name: "3. a global token",
    set: { window: 4, layers: 2, causal: false, global_tokens: 1,
      full_last: false, token: 8 },
    ask: "Both sides, one global token. How many layers until everybody has "
      + "heard token 9?",
    answer: (values, now) => `Two: the global token hears it in the first, `
      + `everybody hears that one in the second. That is ${count(now)} `
      + `tokens for ${grouped(now.pairs)} of ${grouped(now.full)} pairs.` },
  { name: "4. the same, causal",
    set: { window: 4, layers: 2, causal: true, global_tokens: 1,
      full_last: false, token: 8 },
    ask: "Now nobody sees what comes later. What has the global token "
      + "become?",
    answer: (values, now) => "Of no use to token 9: it stands first and "
      + `hears nothing but itself. ${count(now)} tokens have heard token 9.` },
  { name: "5. one full layer",
    set: { window: 4, layers: 2, causal: true, global_tokens: 0,
      full_last: true, token: 0 },
    ask: "A last layer without a window: who hears token 1, and what does "
      + "it cost?",
    answer: (values, now) => `All ${count(now)}, for ${grouped(now.pairs)} `
      + `of ${grouped(now.full)} pairs.` },
];
