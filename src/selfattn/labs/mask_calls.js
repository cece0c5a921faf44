// The calls that use a mask, as text: for this package, for PyTorch's fused
// function, for its layer and for FlexAttention. The tests run them all.

export const CALLS = {
  ours: "This book’s package",
  sdpa: "F.scaled_dot_product_attention",
  layer: "nn.MultiheadAttention",
  flex: "FlexAttention",
};

export function writeCalls(values) {
  return {
    ours: ours(values), sdpa: sdpa(values), layer: layer(values),
    flex: flex(values),
  };
}

// How far query 0 is from key 0.
function offset({ n, n_q, alignment }) {
  return alignment === "first" ? 0 : n - n_q;
}

function isOnlyCausal({ kind, causal, padded, flipped }) {
  return padded === 0 && flipped.length === 0
    && (kind === "causal" || (kind === "none" && causal));
}

function isOpen({ kind, causal, padded, flipped }) {
  return kind === "none" && !causal && padded === 0 && flipped.length === 0;
}

// Comparisons of positions: those of i and j, and those of j alone.
const TERMS = {
  none: () => [],
  causal: () => ["j <= i"],
  prefix: ({ size }) => [`(j <= i) | (j < ${size})`],
  window: ({ size }) => [`(i - j).abs() < ${size}`],
  block: ({ size }) => [`i // ${size} == j // ${size}`],
  documents({ n, n_q, alignment }) {
    if (n_q <= n) return ["documents[i] == documents[j]"];
    return alignment === "first" // queries outside the text
      ? [`i < ${n}`, `documents[i.clamp(max=${n - 1})] == documents[j]`]
      : ["i >= 0", "documents[i.clamp(min=0)] == documents[j]"];
  },
};

function pairTerms(values) {
  const { kind, causal } = values;
  const terms = TERMS[kind](values);
  return causal && kind !== "causal" ? [...terms, "j <= i"] : terms;
}

function padTerms({ n, padded, left }) {
  if (padded === 0) return [];
  return [left ? `j >= ${padded}` : `j < ${n - padded}`];
}

function joined(terms) {
  return terms.length === 1 ? terms[0]
    : terms.map((term) => `(${term})`).join(" & ");
}

function documentLines({ kind, lengths }) {
  return kind !== "documents" ? [] : [
    `documents = torch.repeat_interleave(torch.tensor([${
      lengths.join(", ")}]))`];
}

// "keep[3, [4, 5]] ^= True", a line a row.
function flipLines({ flipped }, table, then) {
  const rows = new Map();
  for (const [i, j] of flipped) rows.set(i, [...(rows.get(i) ?? []), j]);
  return [...rows].map(([i, js]) =>
    `${table}${i}, [${js.join(", ")}]] ${then}`);
}

// The lines that make `keep` from positions, with torch alone.
function compareLines(values, terms) {
  const { n, n_q, flipped } = values;
  const shift = offset(values);
  const plus = shift === 0 ? "" : ` ${shift < 0 ? "-" : "+"} ${
    Math.abs(shift)}`;
  const lines = [`i = torch.arange(${n_q})[:, None]${plus}`,
    `j = torch.arange(${n})[None, :]`, ...documentLines(values)];
  const pairs = terms.some((term) => /\bi\b.*\bj\b|\bj\b.*\bi\b/.test(term));
  if (terms.length === 0)
    return [`keep = torch.ones(${n_q}, ${n}, dtype=torch.bool)`,
      ...flipLines(values, "keep[", "^= True")];
  const wide = pairs ? joined(terms)
    : `(${joined(terms)}).expand(${n_q}, ${n})${
      flipped.length ? ".clone()" : ""}`;
  const used = terms.some((term) => /\bi\b/.test(term)) ? lines
    : lines.slice(1);
  return [...used, `keep = ${wide}`,
    ...flipLines(values, "keep[", "^= True")];
}

function sdpa(values) {
  const { n, n_q, alignment } = values;
  const head = ["import torch",
    "from torch.nn.functional import scaled_dot_product_attention", ""];
  const call = (more) => `output = scaled_dot_product_attention(q, k, v${
    more})`;
  if (isOpen(values)) return [...head.slice(1), call("")].join("\n");
  if (isOnlyCausal(values) && (n === n_q || alignment === "first"))
    return [...head.slice(1), call(", is_causal=True")].join("\n");
  const terms = [...pairTerms(values), ...padTerms(values)];
  return [...head, ...compareLines(values, terms),
    call(", attn_mask=keep")].join("\n");
}

function layer(values) {
  const { n, n_q, flipped, padded, empty } = values;
  const from = n === n_q ? "x, x, x" : "x, context, context";
  const lines = ["import torch", ""];
  const given = [];
  // Padding has an argument of its own, unless something is drawn on top.
  const apart = padded > 0 && flipped.length === 0;
  const terms = [...pairTerms(values), ...(apart ? [] : padTerms(values))];
  if (terms.length || flipped.length) {
    lines.push(...compareLines(values, terms));
    given.push("attn_mask=~keep");
  }
  if (apart) {
    if (!terms.some((term) => /\bi\b/.test(term)))
      lines.push(`j = torch.arange(${n})[None, :]`);
    lines.push(`real = (${padTerms(values)[0]}).expand(len(x), -1)`);
    given.push("key_padding_mask=~real");
  }
  if (empty.length)
    lines.push("# An empty row: NaN with need_weights=True, and in eval()",
      "# when no gradients are kept.");
  lines.push(`output, _ = layer(${
    [from, ...given, "need_weights=False"].join(", ")})`);
  return lines.join("\n");
}

function flex(values) {
  const { n, n_q, flipped } = values;
  const source = "from torch.nn.attention.flex_attention import ";
  if (isOpen(values))
    return `${source}flex_attention\n\noutput = flex_attention(q, k, v)`;
  const shift = offset(values);
  const terms = [...pairTerms(values), ...padTerms(values)];
  const moved = shift !== 0 && terms.some((term) => /\bi\b/.test(term));
  const row = moved ? "row" : "i";
  const lines = ["import torch",
    `${source}create_block_mask, flex_attention`, "",
    ...documentLines(values)];
  if (flipped.length)
    lines.push(`drawn = torch.zeros(${n_q}, ${n}, dtype=torch.bool)`,
      ...flipLines(values, "drawn[", "= True"));
  if (lines.at(-1) !== "") lines.push("");
  lines.push("def keep(b, h, " + row + ", j):");
  if (moved)
    lines.push(`    i = row ${shift < 0 ? "-" : "+"} ${Math.abs(shift)}`);
  const drawn = flipped.length ? `drawn[${row}, j]` : "";
  const said = terms.length === 0 ? `~${drawn}`
    : drawn ? `(${joined(terms)}) ^ ${drawn}` : joined(terms);
  lines.push(`    return ${said}`, "",
    `blocks = create_block_mask(keep, None, None, ${n_q}, ${n}, `
      + "device=q.device)",
    "output = flex_attention(q, k, v, block_mask=blocks)");
  return lines.join("\n");
}

// The package's masks put the last query on the last key. For the first on
// the first, a square one is made and cut.
function packageMask(name, values, ...how) {
  const { n, n_q, alignment } = values;
  if (alignment === "last" || n === n_q)
    return `${name}(${[n_q, n, ...how].join(", ")})`;
  const side = Math.max(n, n_q);
  const cut = n_q < n ? `[:${n_q}]` : `[:, :${n}]`;
  return `${name}(${[side, side, ...how].join(", ")})${cut}`;
}

function packageDocuments({ n, n_q, alignment }) {
  const whole = "document_mask(documents[None])[0, 0]";
  if (n_q === n) return { lines: [], mask: whole };
  if (n_q < n)
    return { lines: [], mask: whole
      + (alignment === "first" ? `[:${n_q}]` : `[-${n_q}:]`) };
  const part = alignment === "first" ? `:${n}` : `-${n}:`;
  return { mask: "known", lines: [
    `known = torch.zeros(${n_q}, ${n}, dtype=torch.bool)`,
    `known[${part}] = ${whole}`] };
}

function ours(values) {
  const { kind, n, n_q, size, causal, padded, left, flipped, alignment } =
    values;
  if (isOpen(values))
    return "from selfattn import attention\n\noutput = attention(q, k, v)";
  if (isOnlyCausal(values) && (n === n_q || alignment === "last"))
    return "from selfattn import attention\n\n"
      + "output = attention(q, k, v, causal=True)";
  const used = new Set();
  const named = (name, ...how) => {
    used.add(name);
    return packageMask(name, values, ...how);
  };
  const parts = [];
  const lines = [...documentLines(values)];
  if (kind === "documents") {
    used.add("document_mask");
    const made = packageDocuments(values);
    lines.push(...made.lines);
    parts.push(made.mask);
  } else if (kind === "causal") parts.push(named("causal_mask"));
  else if (kind !== "none") parts.push(named(`${kind}_mask`, size));
  if (causal && kind !== "causal") parts.push(named("causal_mask"));
  if (padded > 0) {
    used.add("padding_mask");
    const wide = parts.length === 0 && flipped.length
      ? `.repeat(1, 1, ${n_q}, 1)` : "";
    parts.push(`padding_mask(torch.tensor([${n - padded}]), ${n})${
      left ? ".flip(-1)" : ""}${wide}`);
  }
  if (parts.length === 0)
    parts.push(`torch.ones(${n_q}, ${n}, dtype=torch.bool)`);
  const imports = used.size === 0 ? []
    : [`from selfattn.masks import ${[...used].sort().join(", ")}`];
  return ["import torch", "from selfattn import attention", ...imports, "",
    ...lines, `keep = ${parts.join(" & ")}`,
    ...flipLines(values, "keep[..., ", "^= True"),
    "output = attention(q, k, v, mask=keep)"].join("\n");
}
