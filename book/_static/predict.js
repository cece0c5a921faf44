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

  const SVG = "http://www.w3.org/2000/svg";
  const DRAWN = /^M[\d .L]+$/; // a sketch, as an SVG has its paths

  // Two axes with their names, and a line that is being drawn, or was.
  function plane(path, axes) {
    const svg = document.createElementNS(SVG, "svg");
    svg.setAttribute("viewBox", "0 0 240 150");
    svg.setAttribute("class", "sketch");
    svg.setAttribute("role", "img");
    svg.setAttribute("aria-label", "Your sketch");
    const lines = [["axes", "M10 5L10 140L235 140"], ["line", path]];
    for (const [name, d] of lines) {
      const line = document.createElementNS(SVG, "path");
      line.setAttribute("class", name);
      line.setAttribute("d", d);
      svg.append(line);
    }
    const places = [[16, 16, "start"], [233, 134, "end"]];
    axes.forEach((name, i) => {
      const text = document.createElementNS(SVG, "text");
      const [x, y, anchor] = places[i];
      for (const [key, value] of Object.entries({ x, y, "text-anchor": anchor }))
        text.setAttribute(key, value);
      text.textContent = name;
      svg.append(text);
    });
    return svg;
  }

  // A place to draw a curve; who cannot draw says it in words.
  function pad(guessed, axes) {
    const svg = plane("", axes);
    const line = svg.querySelector(".line");
    let path = "";
    const add = (letter, { clientX, clientY }) => {
      const box = svg.getBoundingClientRect();
      const x = (clientX - box.left) / box.width * 240;
      const y = (clientY - box.top) / box.height * 150;
      path += `${letter}${Math.max(0, x).toFixed(0)} ${
        Math.max(0, y).toFixed(0)}`;
      line.setAttribute("d", path);
    };
    svg.addEventListener("pointerdown", (event) => {
      svg.setPointerCapture(event.pointerId);
      add("M", event);
    });
    svg.addEventListener("pointermove", (event) => {
      if (svg.hasPointerCapture(event.pointerId)) add("L", event);
    });
    const again = element("button", { type: "button" }, "Draw again");
    again.addEventListener("click", () => {
      path = "";
      line.setAttribute("d", path);
    });
    const field = element("input", { type: "text", maxlength: 200 });
    const whole = element("form", { class: "guess" }, svg, again,
      element("label", {}, "or in words ", field),
      element("button", {}, "Guess"));
    whole.addEventListener("submit", (event) => {
      event.preventDefault();
      guessed(path || field.value.trim());
    });
    whole.drawn = () => path;
    return whole;
  }

  const axesOf = (fold) => fold.dataset.options.split("|").filter(Boolean);

  // A field, or a button for each option; `guessed(text)` is told once.
  function form(fold, guessed) {
    const { kind, options } = fold.dataset;
    if (kind === "sketch") return pad(guessed, axesOf(fold));
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
    const tell = (guess) => {
      if (DRAWN.test(guess))
        said.replaceChildren("You drew: ", plane(guess, axesOf(fold)));
      else said.textContent = `You said: ${guess}`;
    };
    const guess = (guess) => {
      if (guess) stored(key, guess);
      if (guess) tell(guess);
      ask.remove();
      fold.open = true;
    };
    const ask = form(fold, guess);
    fold.querySelector("summary").after(said);
    // Who drew, and did not say so, has guessed all the same.
    fold.addEventListener("toggle", () => {
      if (fold.open && ask.isConnected && ask.drawn?.()) guess(ask.drawn());
    });
    const before = stored(key);
    if (before === null) question.append(ask);
    else tell(before);
  }
})();
