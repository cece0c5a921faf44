// Who cannot see the picture on a copy button is told what the button does, and
// what the tick says that it shows afterwards.
(() => {
  const named = () => document.querySelectorAll(".copybtn:not([aria-label])")
    .forEach((e) => e.setAttribute("aria-label", "Copy this code"));
  named(); // some may be there already, and the others come with a library
  new MutationObserver(named)
    .observe(document.querySelector("article") ?? document.body,
      { childList: true, subtree: true });
  const said = document.createElement("div");
  said.className = "copied";
  said.setAttribute("aria-live", "polite");
  document.body.append(said);
  new MutationObserver((changes) => {
    for (const { target, oldValue } of changes) {
      if (!oldValue || !target.matches(".copybtn")) continue;
      const { tooltip } = target.dataset;
      said.textContent = tooltip === "Copy" ? "" : tooltip;
    }
  }).observe(document.body, {
    attributeFilter: ["data-tooltip"],
    attributeOldValue: true,
    subtree: true,
  });
})();
