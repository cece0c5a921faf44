// Checks an answer on the page as `check` does in the notebook: by the same
// record of the right answer and of the mistakes that have names.
(() => {
  const ROUNDING = 1e-9; // relative, as the doctor's for such numbers
  const NUMBER = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?$/i;

  // A number, or a fraction of two; NaN if it is neither.
  function number(word) {
    const parts = word.split("/");
    if (parts.length > 2 || !parts.every((part) => NUMBER.test(part)))
      return NaN;
    return parts.map(Number).reduce((a, b) => a / b);
  }

  // The numbers of a text: apart by commas or spaces; in one number alone a
  // comma parts thousands.
  function numbers(text, several) {
    let plain = text.replace(/[−–]/g, "-").replace(/[[\](){}]/g, " ").trim();
    if (!several) plain = plain.replace(/(\d)[,\u202f\u00a0 ](?=\d{3}\b)/g, "$1");
    return plain.split(/[\s,;]+/).filter(Boolean).map(number);
  }

  function close(given, wanted, tolerance) {
    return given.length === wanted.length && given.every((x, i) =>
      Math.abs(x - wanted[i]) <= tolerance + ROUNDING * Math.abs(wanted[i]));
  }

  // What to say of an answer: a mark, a mistake's name, and words.
  function judge(record, text) {
    const { answer, tolerance, mistakes } = record;
    const given = numbers(text, answer.length > 1);
    const asked = answer.length === 1 ? "One number is"
      : `${answer.length} numbers are`;
    if (!given.length || given.some(Number.isNaN)
        || given.length !== answer.length)
      return { mark: "○", name: "", words: `${asked} asked for.` };
    if (close(given, answer, tolerance))
      return { mark: "✓", name: "", words: "Right." };
    const made = mistakes.find((one) => close(given, one.answer, tolerance));
    if (made) return { mark: "✗", name: made.name, words: made.words };
    const seen = seenOfWeights(given, answer);
    return { mark: "✗", name: "", words: seen ? `Not right. ${seen}`
      : "Not right; and no mistake that has a name here." };
  }

  // What a row of weights cannot be, and this one is, or where to look: as
  // the doctor's `report/rows.py` says it. Nothing of what is no such row.
  function seenOfWeights(given, wanted) {
    const SUM = 0.02, NEAR = 0.02;
    const sum = (row) => row.reduce((a, b) => a + b, 0);
    if (wanted.length < 2 || wanted.some((x) => x < 0)
        || Math.abs(sum(wanted) - 1) >= 1e-3) return "";
    if (given.some((x) => x < 0)) return "One of them is below 0: no weight is.";
    const total = sum(given);
    if (Math.abs(total - 1) > SUM)
      return `They sum to ${total.toFixed(2)}: a query’s weights sum to 1.`;
    const within = (one, other, room) =>
      one.every((x, i) => Math.abs(x - other[i]) < room);
    const near = within(given, wanted, NEAR);
    const sorted = (row) => row.toSorted((a, b) => a - b);
    if (!near && within(sorted(given), sorted(wanted), SUM / 2))
      return "As numbers they are right, but not at these keys.";
    const got = given.findIndex((x, i) => wanted[i] === 0 && x > SUM);
    if (got >= 0)
      return `Number ${got + 1} gets a share, but must not be seen.`;
    return near ? "That is near: look for what was rounded on the way."
      : "They could be weights, but of other scores: look at these.";
  }

  function element(tag, attributes, ...children) {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes))
      node.setAttribute(name, value);
    node.append(...children);
    return node;
  }

  function place(at) {
    const record = JSON.parse(at.querySelector("script").textContent);
    const many = record.answer.length;
    const field = element("input", { type: "text", maxlength: 200,
      autocomplete: "off", spellcheck: "false" });
    const words = many === 1 ? "Your answer " : `Your ${many} numbers `;
    const said = element("p", { class: "answer-verdict", role: "status" });
    const form = element("form", { class: "guess" },
      element("label", {}, words, field), element("button", {}, "Check"));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      const { mark, name, words } = judge(record, field.value);
      said.dataset.mark = mark;
      said.replaceChildren(`${mark} `,
        ...(name ? [element("strong", {}, `${name}.`), " "] : []), words);
    });
    at.append(form, said);
  }

  document.querySelectorAll(".answer-place").forEach(place);
  window.selfattnAnswers = { judge };
})();
