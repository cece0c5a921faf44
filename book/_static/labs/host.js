// Runs the labs of a page without a kernel. Each lab's module arrives as text
// in window.selfattnLabs, its settings in the state that the page embeds. A
// classic script that imports a Blob, because browsers import nothing else on
// a page that was opened from disk.
(() => {
  const WIDGET = "application/vnd.jupyter.widget-";

  // As much of a widget's model as a lab needs.
  function makeModel(traits) {
    const data = { ...traits };
    const listeners = {};
    const tell = (event) => listeners[event]?.forEach((f) => f());
    return {
      get: (name) => data[name],
      set(name, value) {
        if (data[name] === value) return;
        data[name] = value;
        tell(`change:${name}`);
      },
      // All at once: between two of them the settings might not fit.
      setAll(values) {
        const changed = Object.keys(values)
          .filter((name) => data[name] !== values[name]);
        Object.assign(data, values);
        for (const name of changed) tell(`change:${name}`);
      },
      save_changes: () => tell("saved"),
      on: (event, f) => (listeners[event] ??= new Set()).add(f),
      off: (event, f) => listeners[event]?.delete(f),
    };
  }

  // The address says how the lab stands, once the hand rests.
  function keepLink(model, lab, name) {
    const rules = model.get("rules");
    let waiting;
    model.on("saved", () => {
      clearTimeout(waiting);
      waiting = setTimeout(() => {
        const now = Object.keys(rules).map((key) => [key, model.get(key)]);
        const link = lab.writeLink(name, rules, Object.fromEntries(now));
        const page = location.pathname + location.search;
        history.replaceState(history.state, "", page + link);
      }, 200);
    });
  }

  function takeLink(model, lab, name, hash = location.hash) {
    const link = lab.readLink(hash, name, model.get("rules"));
    if (!link) return false;
    model.setAll({ ...link.values, complaint: link.complaint });
    return true;
  }

  function giveUp(place, error) {
    console.error(error);
    place.classList.remove("lab-runs");
    place.querySelector(".selfattn-lab")?.remove();
    const note = document.createElement("p");
    note.className = "lab-failed";
    note.textContent =
      "This lab could not start in your browser; here is its picture.";
    place.append(note);
  }

  const folder = document.currentScript.src;
  const asksFor = (name) =>
    new URLSearchParams(location.hash.slice(1)).get("lab") === name;

  // Resolves once the place is nearly in sight, or the address asks for it.
  const needed = (place, name) => new Promise((resolve) => {
    const watch = new IntersectionObserver((seen) => {
      if (seen.some((entry) => entry.isIntersecting)) resolve();
    }, { rootMargin: "100%" });
    watch.observe(place);
    addEventListener("hashchange", () => asksFor(name) && resolve());
  });

  const fetched = (source) => new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = new URL(source, folder);
    script.onload = resolve;
    script.onerror = () => reject(new Error(`no script ${source}`));
    document.head.append(script);
  });

  async function moduleOf(stem) {
    const text = window.selfattnLabs?.[stem];
    if (!text) throw new Error(`no module for ${stem}`);
    const blob = new Blob([text], { type: "text/javascript" });
    return (await import(URL.createObjectURL(blob))).default;
  }

  // Of a lab in small: what to try, what there is to see, and its picture.
  const KEPT = ".lab-tasks, .lab-asked, .lab-insight, .lab-complaint,"
    + ".lab-spoken";

  // At a chapter's start. Its link leads on to all of the lab, as it stands.
  async function runSmall(small, traits, place) {
    const stem = small.dataset.small;
    const lab = await moduleOf(stem);
    const model = makeModel(traits);
    await lab.render({ model, el: small });
    small.addEventListener("lab-failed", () => small.remove(), { once: true });
    const root = small.querySelector(".selfattn-lab");
    const picture = root.querySelector(small.dataset.shows);
    for (const part of root.children)
      if (part !== picture && !part.matches(KEPT))
        part.classList.add("lab-left-out");
    const link = small.querySelector("a");
    const rules = model.get("rules");
    model.on("saved", () => {
      const now = Object.keys(rules).map((key) => [key, model.get(key)]);
      link.href = lab.writeLink(stem, rules, Object.fromEntries(now));
    });
    // An address that has not changed is no event.
    link.addEventListener("click", () =>
      setTimeout(() => place.scrollIntoView()));
  }

  async function run(place, traits, name) {
    if (place.dataset.script) await fetched(place.dataset.script);
    if (!traits) throw new Error(`no state for ${name}`);
    const lab = await moduleOf(place.dataset.lab);
    const model = makeModel(traits);
    const asked = takeLink(model, lab, name);
    await lab.render({ model, el: place });
    place.classList.add("lab-runs");
    place.addEventListener("lab-failed", (event) =>
      giveUp(place, event.detail), { once: true });
    keepLink(model, lab, name);
    // A link within the page, or a step back, changes no more than this. The
    // address may by now be that of the move before: the event has its own.
    addEventListener("hashchange", ({ newURL }) => {
      if (takeLink(model, lab, name, new URL(newURL).hash))
        place.scrollIntoView();
    });
    return asked && place;
  }

  document.addEventListener("DOMContentLoaded", async () => {
    const states = {};
    for (const stored of document.querySelectorAll(
      `script[type="${WIDGET}state+json"]`))
      Object.assign(states, JSON.parse(stored.textContent).state);
    const count = {};
    const running = [];
    for (const place of document.querySelectorAll("[data-lab]")) {
      const stem = place.dataset.lab;
      count[stem] = (count[stem] ?? 0) + 1;
      const name = count[stem] === 1 ? stem : `${stem}-${count[stem]}`;
      const view = place.querySelector(`script[type="${WIDGET}view+json"]`);
      const { model_id: id } = JSON.parse(view.textContent);
      const start = () => run(place, states[id]?.state, name)
        .catch((error) => giveUp(place, error));
      const small = document.querySelector(`[data-small="${name}"]`);
      if (small) runSmall(small, states[id]?.state, place).catch((error) => {
        console.error(error);
        small.remove();
      });
      if (!place.dataset.script || asksFor(name)) running.push(start());
      else needed(place, name).then(start).then((later) =>
        asksFor(name) && later?.scrollIntoView());
    }
    // Labs are taller than their pictures, so what was asked for has moved.
    // Who comes back to a page goes where they were; see back.js.
    const [{ type } = {}] = performance.getEntriesByType("navigation");
    const asked = (await Promise.all(running)).find(Boolean);
    if (asked || type === "navigate")
      (asked ?? document.querySelector(":target"))?.scrollIntoView();
  });
})();
