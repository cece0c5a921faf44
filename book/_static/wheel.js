// The line that installs the doctor, from where this page comes from: it can be
// pasted as it stands. A page from disk has no such address; it tells which
// file to save first.
(() => {
  const saved = document.querySelector(".wheel-saved");
  if (!saved || !location.protocol.startsWith("http")) return;
  const wheel = saved.querySelector("a");
  const line = saved.closest("section").querySelector("div.highlight-sh pre");
  if (!line.textContent.includes("://"))
    line.textContent = line.textContent
      .replace(wheel.textContent, wheel.href);
  saved.hidden = true;
})();
