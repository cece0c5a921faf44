// The settings of a lab: their bounds, and their form in a shared link.
//
// A rule is what settings.py tells of one setting: its kind, its bounds, and
// the value at the start. `values` is an object with all settings by name.

// A length may bound a position: `of` names the setting that does. Of words
// their number is the length.
export function highest(rule, values) {
  if (!rule.of) return rule.high;
  const bound = values[rule.of];
  const length = typeof bound === "string" ? bound.split(" ").length : bound;
  return Math.min(rule.high, length + rule.plus);
}

// What was typed, as words with one space between two, and as many and as
// long as the rule allows; empty if nothing was typed.
export function wordsTyped(text, { most, longest }) {
  return text.split(/[\s\p{Cc}]+/u).filter(Boolean).slice(0, most)
    .map((word) => [...word].slice(0, longest).join("")).join(" ");
}

// The options of a choice: some divide another setting, without rest.
export function optionsOf(rule, values) {
  return rule.options?.filter((option) =>
    !rule.divides || values[rule.divides] % option === 0);
}

// What another setting bounds is lowered when that one has changed.
export function settle(rules, values) {
  const settled = { ...values };
  for (const [name, rule] of Object.entries(rules))
    if (rule.of)
      settled[name] = Math.min(settled[name], highest(rule, settled));
    else if (rule.divides)
      settled[name] = optionsOf(rule, settled)
        .findLast((option) => option <= settled[name]);
  return settled;
}

// To the nearest step, and free of the binary dust that multiples of 0.1 have.
export function snap(x, { low, high, step }) {
  const near = Math.round((Math.min(high, Math.max(low, x)) - low) / step);
  return Number((low + near * step).toFixed(10));
}

export function startOf(rules) {
  return Object.fromEntries(
    Object.entries(rules).map(([name, rule]) => [name, rule.start]));
}

// Each kind reads a setting from a link: [value, complaint or ""].
const READ = {
  whole: (text, rule, name, values) =>
    readNumber(text, { ...rule, high: highest(rule, values), step: 1 }, name),
  number: readNumber,
  choice(text, rule, name, values) {
    const options = optionsOf(rule, values);
    const found = options.find((option) => String(option) === text);
    if (found !== undefined) return [found, ""];
    const why = rule.divides
      ? `, which divide ${rule.divides}=${values[rule.divides]}` : "";
    return [values[name],
      `${name} must be one of ${options.join(", ")}${why}, but the link says `
      + `“${text}”; it stays ${values[name]}.`];
  },
  flag(text, rule, name) {
    if (text === "true" || text === "false") return [text === "true", ""];
    return [rule.start,
      `${name} must be true or false, but the link says “${text}”; `
      + `it stays ${rule.start}.`];
  },
  points(text, rule, name) {
    const points = rule.start.map((point) => [...point]);
    const complaints = text.split(",").map((part) => {
      const [index, ...xy] = part.split(":");
      if (!/^\d+$/.test(index) || !(index in points) || xy.length !== 2)
        return `${name} has no point “${part}”; it is left out.`;
      const read = xy.map((x) => readNumber(x, rule, `${name}[${index}]`));
      if (xy.every((x) => isNumber(x))) points[index] = read.map(([x]) => x);
      return read.map(([, complaint]) => complaint).find(Boolean) ?? "";
    });
    return [points, complaints.filter(Boolean).join(" ")];
  },
  words(text, rule, name) {
    const words = wordsTyped(text, rule);
    if (words && words === text) return [words, ""];
    return [words || rule.start,
      `${name} must be one to ${rule.most} words of at most `
      + `${rule.longest} characters, but the link says “${text}”; `
      + `it is set to “${words || rule.start}”.`];
  },
  cells(text, rule, name) {
    const parts = [...new Set(text.split(","))];
    const good = parts.filter((part) => /^\d+\.\d+$/.test(part)
      && part.split(".").every((x) => Number(x) < rule.side));
    const cells = good.map((part) => part.split(".").map(Number));
    const left = parts.length - Math.min(cells.length, rule.most);
    return [inOrder(cells.slice(0, rule.most)), left === 0 ? ""
      : `${name} must be at most ${rule.most} cells such as 3.4, with numbers `
        + `below ${rule.side}; ${left} of those in the link are left out.`];
  },
};

// Cells of a table by rows, and within a row by columns.
export function inOrder(cells) {
  return cells.toSorted(([a, b], [c, d]) => a - c || b - d);
}

function isNumber(text) {
  return text.trim() !== "" && Number.isFinite(Number(text));
}

function readNumber(text, rule, name) {
  if (!isNumber(text))
    return [rule.start,
      `${name} must be a number, but the link says “${text}”`
      + (typeof rule.start === "number" ? `; it stays ${rule.start}.` : ".")];
  const value = snap(Number(text), rule);
  if (value === Number(text)) return [value, ""];
  return [value, `${name} must lie between ${rule.low} and ${rule.high}`
    + (rule.step === 1 ? " and be whole" : `, in steps of ${rule.step}`)
    + `, but the link says ${text}; it is set to ${value}.`];
}

// A link to a setting ends in `#lab=dot_product&n=5&mask=causal`.
// Returns null if it is another lab's, or an ordinary link to a heading.
export function readLink(fragment, name, rules) {
  const asked = new URLSearchParams(fragment.replace(/^#/, ""));
  if (asked.get("lab") !== name) return null;
  asked.delete("lab");
  const complaints = [...new Set(asked.keys())]
    .filter((key) => !Object.hasOwn(rules, key))
    .map((key) => `This lab has no setting “${key}”.`);
  let values = startOf(rules);
  // What bounds others comes first.
  for (const [key, rule] of Object.entries(rules).sort(
    ([, a], [, b]) => Boolean(a.of ?? a.divides)
      - Boolean(b.of ?? b.divides))) {
    values = settle(rules, values);
    if (!asked.has(key)) continue;
    const [value, complaint] =
      READ[rule.kind](asked.get(key), rule, key, values);
    values[key] = value;
    if (complaint) complaints.push(complaint);
  }
  return { values: settle(rules, values), complaint: complaints.join(" ") };
}

// Only what differs from the start is written; nothing, if nothing does.
export function writeLink(name, rules, values) {
  const parts = Object.entries(rules)
    .map(([key, rule]) => [key, linkText(rule, values[key])])
    .filter(([, text]) => text !== "")
    .map(([key, text]) => `&${key}=${text}`);
  return parts.length ? `#lab=${name}${parts.join("")}` : "";
}

function linkText(rule, value) {
  if (rule.kind === "cells")
    return value.map((cell) => cell.join(".")).join(",");
  if (rule.kind !== "points")
    return value === rule.start ? "" : encodeURIComponent(String(value));
  return value
    .map(([x, y], i) => [`${i}:${x}:${y}`, rule.start[i]])
    .filter(([, start], i) => String(start) !== String(value[i]))
    .map(([text]) => text)
    .join(",");
}
