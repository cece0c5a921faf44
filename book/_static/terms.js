// What a term means, beside it, for a mouse, a finger or a keyboard: it stays
// while one points at it, and Escape takes it away. Without this script the
// browser shows the same words as the link's title, to a mouse alone.
(() => {
  const box = document.createElement("div");
  box.id = "term-says";
  box.className = "term-says";
  box.setAttribute("role", "tooltip");
  box.hidden = true;
  let shown = null;
  let leaving = 0;

  function hide() {
    clearTimeout(leaving);
    shown?.removeAttribute("aria-describedby");
    shown = null;
    box.hidden = true;
  }

  function show(term) {
    clearTimeout(leaving);
    if (shown === term) return;
    hide();
    shown = term;
    box.textContent = term.dataset.says;
    box.hidden = false;
    term.setAttribute("aria-describedby", box.id);
    const word = term.getClientRects()[0];
    const page = document.documentElement;
    const most = page.clientWidth - box.offsetWidth - 8;
    const above = word.bottom + box.offsetHeight + 8 > page.clientHeight;
    const top = above ? word.top - box.offsetHeight - 4 : word.bottom + 4;
    box.style.left = `${scrollX + Math.max(8, Math.min(word.left, most))}px`;
    box.style.top = `${scrollY + top}px`;
  }

  const leave = () => { leaving = setTimeout(hide, 200); };

  for (const term of document.querySelectorAll("a.term[title]")) {
    term.dataset.says = term.title;
    term.removeAttribute("title");
    let touched = false;
    const byMouse = (does) => ({ pointerType }) =>
      pointerType !== "touch" && does(term);
    term.addEventListener("pointerenter", byMouse(show));
    term.addEventListener("pointerleave", byMouse(leave));
    term.addEventListener("focus", () => show(term));
    term.addEventListener("blur", leave);
    term.addEventListener("pointerdown", ({ pointerType }) => {
      touched = pointerType === "touch" && shown !== term;
    });
    term.addEventListener("click", (event) => {
      if (touched) { // the first tap tells, no more
        event.preventDefault();
        show(term);
      }
      touched = false;
    });
  }
  box.addEventListener("pointerenter", () => clearTimeout(leaving));
  box.addEventListener("pointerleave", leave);
  addEventListener("keydown", ({ key }) => { if (key === "Escape") hide(); });
  document.body.append(box);
})();
