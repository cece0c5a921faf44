// Asks for a prediction before the answer is unfolded, and keeps the guess
// beside what came out: in this browser, and nowhere else.
(() => {
  const page = location.pathname.split("/").at(-1);

  function stored(key, value) {
    try {
      if (value !== undefined) localStorage.setItem(key, value);
      return localStorage.getItem(key);
    } catch { // from disk, or where nothing may be kept
      return value ?? null;
    }
  }

  function element(tag, attributes, ...children) {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes))
      node.setAttribute(name, value);
    node.append(...children);
    return node;
  }

  // A field, or a button for each option; `guessed(text)` is told once.
  function form(fold, guessed) {
    const { kind, options } = fold.dataset;
    if (kind === "choice")
      return element("p", { class: "guess" }, ...options.split("|")
        .map((option) => {
          const button = element("button", { type: "button" }, option);
          button.addEventListener("click", () => guessed(option));
          return button;
        }));
    const field = element("input", { type: "text", maxlength: 200,
      inputmode: kind === "number" ? "decimal" : "text" });
    const whole = element("form", { class: "guess" },
      element("label", {}, kind === "number" ? "Your number " : "Your guess ",
        field), element("button", {}, "Guess"));
    whole.addEventListener("submit", (event) => {
      event.preventDefault();
      if (field.value.trim()) guessed(field.value.trim());
      else fold.open = true;
    });
    return whole;
  }

  for (const fold of document.querySelectorAll("details.predicted")) {
    const question = fold.previousElementSibling;
    const key = `predicted ${page} ${question.textContent.trim()}`;
    const said = element("p", { class: "guessed" });
    const tell = (guess) => { said.textContent = `You said: ${guess}`; };
    const ask = form(fold, (guess) => {
      stored(key, guess);
      tell(guess);
      ask.remove();
      fold.open = true;
    });
    fold.querySelector("summary").after(said);
    const before = stored(key);
    if (before === null) question.append(ask);
    else tell(before);
  }
})();
