// On paper a page is light, whatever it is on the screen, and the solutions
// stand last, each under the name of its exercise; so do a lab's answers.
(() => {
  const page = document.documentElement.dataset;
  let undo = null;

  function moved(solution, last) {
    const place = document.createComment("its solution is at the end");
    const name = document.createElement("h3");
    const exercise = solution.parentElement.closest("section");
    const head = exercise.querySelector("h2, h3");
    name.textContent = head.firstChild.textContent;
    solution.before(place);
    last.append(name, solution);
    return () => place.replaceWith(solution);
  }

  function prepare() {
    if (undo) return;
    const { theme } = page;
    page.theme = "light";
    const last = document.createElement("section");
    last.className = "solutions-on-paper";
    last.append(document.createElement("h2"));
    last.firstChild.textContent = "Solutions";
    const back = [...document.querySelectorAll(
      "article section > :is(h4, details.answer)")]
      .filter((e) => e.firstChild.textContent === "Solution"
        || e.firstChild.textContent === "Answers")
      .map((e) => moved(e.matches("h4") ? e.parentElement : e, last));
    if (back.length) document.querySelector("article.bd-article").append(last);
    undo = () => {
      page.theme = theme;
      for (const step of back) step();
      last.remove();
    };
  }

  function restore() {
    undo?.();
    undo = null;
  }

  addEventListener("beforeprint", prepare);
  addEventListener("afterprint", restore);
  matchMedia("print").addEventListener("change", ({ matches }) =>
    (matches ? prepare : restore)());
})();
