// What is wider than the page, and only that: who has no mouse can still scroll
// it, by a tab stop; a screen reader says what it is. On a phone it is first
// made a little smaller, if it fits then; if not, a bar below it says all the
// time that it scrolls, how much of it is seen, and where (custom.css).
(() => {
  const KINDS = [
    ["Formula", ".math, .katex-display", 0.75],
    ["Table", ".pst-scrollable-table-container, .printed-table", 0.83],
    ["Output", ".cell_output pre", 0.76],
    ["Code", "pre", 0.88],
    ["Picture", ".cell_output, .panels", 1],
  ];
  const NAME = ", scrolls sideways";
  const phone = matchMedia("screen and (max-width: 576px)");
  const kind = (box) => KINDS.find(([, which]) => box.matches(which));
  const scrolls = (box) =>
    /auto|scroll/.test(getComputedStyle(box).overflowX);
  const over = (box) => box.scrollWidth - box.clientWidth;

  // A little too wide, a table's letters stand closer: it need not scroll.
  const little = (box) => Math.max(13, 0.045 * box.clientWidth); // pixels
  function setCloser(box) {
    box.classList.remove("tight");
    const sticks = scrolls(box) ? over(box) : 0;
    box.classList.toggle("tight", sticks > 0 && sticks < little(box));
  }

  // What stands in the box may be so large beside what it is: a hundredth
  // less, for what is rounded.
  function share(box) {
    const look = getComputedStyle(box);
    const sides = parseFloat(look.paddingLeft) + parseFloat(look.paddingRight);
    const room = (box.clientWidth - sides) / (box.scrollWidth - sides);
    return Math.floor(100 * room - 0.5) / 100;
  }

  function fit(boxes) {
    const fitting = new Map(boxes
      .filter((box) => over(box) > 0 && scrolls(box))
      .map((box) => [box, share(box)]));
    while (fitting.size) {
      for (const [box, size] of fitting)
        if (size >= kind(box)[2]) box.style.setProperty("--fit", size);
      for (const [box, size] of fitting) {
        const fits = over(box) <= 0;
        if (!fits && size < kind(box)[2]) release(box);
        if (fits || size < kind(box)[2]) fitting.delete(box);
        else fitting.set(box, Math.round(100 * size - 2) / 100);
      }
    }
  }

  function release(box) {
    box.style.removeProperty("--fit");
    if (!box.getAttribute("style")) box.removeAttribute("style");
  }

  function tell(box, wider) {
    const told = { role: "group", "aria-label": kind(box)[0] + NAME };
    if (wider) box.tabIndex = 0;
    else if (box.ariaLabel?.endsWith(NAME)) box.removeAttribute("tabindex");
    for (const [attribute, value] of Object.entries(told))
      if (wider) box.setAttribute(attribute, value);
      else box.removeAttribute(attribute);
  }

  // A mouse's own bar, where there is one, takes room; then ours is too many.
  function sign(box, wider) {
    const own = box.offsetHeight - box.clientHeight > 8;
    const shown = wider && phone.matches && !own;
    box.classList.toggle("scrolls", shown);
    if (!box.className) box.removeAttribute("class");
    if (!shown) return;
    box.style.setProperty("--shown",
      `${Math.round(100 * box.clientWidth / box.scrollWidth)}%`);
    move(box);
  }

  function move(box) {
    const at = Math.min(1, Math.max(0, box.scrollLeft / over(box)));
    box.style.setProperty("--at", `${Math.round(100 * at)}%`);
    box.style.setProperty("--edge", at > 0.98 ? "0" : "0.8rem");
  }

  function update() {
    const boxes = [...document.querySelectorAll(
      KINDS.map(([, which]) => `.bd-article :is(${which})`).join())]
      .filter((box) => !box.closest(".lab-place"));
    for (const box of boxes) {
      box.classList.remove("scrolls");
      release(box);
    }
    if (phone.matches) fit(boxes);
    for (const box of boxes) if (box.matches(".printed-table")) setCloser(box);
    const wider = boxes.map((box) => scrolls(box) && over(box) > 0);
    boxes.forEach((box, i) => {
      tell(box, wider[i]);
      sign(box, wider[i]);
    });
  }

  update();
  addEventListener("resize", update);
  document.addEventListener("scroll", ({ target }) => {
    if (target.classList?.contains("scrolls")) move(target);
  }, { capture: true, passive: true });
  document.fonts?.ready.then(update);
})();
