// A page that is loaded anew, or gone back to, is found as it was left: what
// was unfolded is, and its reader is where they were. A browser by itself opens
// the fold that an address points into only when somebody goes there, and then
// takes the place in a page that was longer for a place in one that is shorter.
(() => {
  const KEY = `left ${location.pathname}`;
  const FOLDS = "article.bd-article details:not(.lab-place *)";
  const SECTIONS = "article.bd-article section[id]";
  const folds = () => [...document.querySelectorAll(FOLDS)];

  // The section that the top of the window is in, and how far in.
  function place() {
    const seen = [...document.querySelectorAll(SECTIONS)]
      .filter((e) => e.checkVisibility());
    const above = seen.filter((e) => e.getBoundingClientRect().top <= 0);
    const section = above.at(-1);
    return section && { id: section.id,
      far: -section.getBoundingClientRect().top };
  }

  function leave() {
    const open = folds().flatMap((e, i) => e.open ? [i] : []);
    const kept = { hash: location.hash, open, at: place() };
    try {
      sessionStorage.setItem(KEY, JSON.stringify(kept));
    } catch { /* where nothing may be kept */ }
  }

  function left() {
    const [{ type } = {}] = performance.getEntriesByType("navigation");
    if (type !== "reload" && type !== "back_forward") return null;
    try {
      const kept = JSON.parse(sessionStorage.getItem(KEY));
      return kept?.hash === location.hash ? kept : null;
    } catch {
      return null;
    }
  }

  // Open all that an element is folded in, and what a section has folded but
  // its title; whether anything was shut.
  function unfold(element) {
    let shut = false;
    const own = element?.querySelector(":scope > details.second-reading");
    for (let e = own ?? element?.parentElement; e; e = e.parentElement)
      if (e.matches("details:not([open])")) shut = e.open = true;
    return shut;
  }

  function asked() {
    try {
      return document.getElementById(
        decodeURIComponent(location.hash.slice(1)));
    } catch { // no text, though it has a % in it
      return null;
    }
  }

  function show() {
    const target = asked();
    if (unfold(target)) target.scrollIntoView();
  }

  // Where the reader was; else where the address points, if it was folded.
  function arrive() {
    const kept = left();
    if (!kept) return show();
    const all = folds();
    for (const i of kept.open) if (all[i]) all[i].open = true;
    const back = () => {
      const section = kept.at && document.getElementById(kept.at.id);
      const top = section?.getBoundingClientRect().top ?? -scrollY;
      scrollTo({ top: scrollY + top + (kept.at?.far ?? 0),
        behavior: "instant" });
    };
    back();
    // The browser goes to its own place when all is loaded: once more after
    // it, unless the reader has gone on.
    const gone = new AbortController();
    for (const type of ["wheel", "pointerdown", "keydown", "touchstart"])
      addEventListener(type, () => gone.abort(), { signal: gone.signal });
    addEventListener("pageshow", () => requestAnimationFrame(() =>
      setTimeout(() => { if (!gone.signal.aborted) back(); gone.abort(); })),
      { signal: gone.signal });
  }

  arrive();
  addEventListener("hashchange", show);
  addEventListener("pagehide", leave);
})();
