// On a phone the menu is hidden, and with it the search form in it. The
// theme's search button would put the cursor there, unseen: here it opens the
// theme's other form, which lies over the page.
(() => {
  const form = document.querySelector(".search-button__wrapper");
  const field = form?.querySelector("input");
  if (!field) return;
  const button = document.querySelector(".search-button__button");
  const open = (yes) => {
    form.classList.toggle("show", yes);
    (yes ? field : button)?.focus();
  };
  addEventListener("click", (event) => {
    const pressed = ".search-button__button, .search-button__overlay";
    if (!event.target.closest?.(pressed)) return;
    event.stopPropagation(); // before the theme hears of it
    open(!form.classList.contains("show"));
  }, true);
  form.addEventListener("keydown", (event) => {
    if (event.key === "Escape") open(false);
  });
})();
