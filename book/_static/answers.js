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
    return { mark: "✗", name: "",
      words: "Not right; and no mistake that has a name here." };
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
    const said = element("p", { class: "verdict", role: "status" });
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
