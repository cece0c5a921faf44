// Who cannot see the tick that a copy button shows is told what it says.
(() => {
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
