// On a phone the page's contents are a drawer over the text: whoever has
// chosen a section wants to see it.
(() => {
  const open = document.getElementById("pst-secondary-sidebar-checkbox");
  document.querySelector(".bd-sidebar-secondary")?.addEventListener("click",
    ({ target }) => {
      if (target.closest('a[href*="#"]')) open.checked = false;
    });
})();
