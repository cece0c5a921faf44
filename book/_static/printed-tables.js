// What a reader may do with a printed table: copy it, with tabs between its
// cells, as spreadsheets take it; shade it, if it is small; sort it, if it has
// a header. Without this script its numbers stand there all the same.
(() => {
  const cells = (row) => [...row.cells].map((cell) => cell.textContent);
  const text = (table) =>
    [...table.rows].map((row) => cells(row).join("\t")).join("\n");
  const value = (word) =>
    Number(word.replaceAll(",", "").replace("−", "-").replace(/[%*]/, "")
      .replace(/inf$/, "Infinity").replace(/^[–-]$/, "NaN"));

  function button(words, name, parent) {
    const made = document.createElement("button");
    made.type = "button";
    made.textContent = words;
    if (name) made.setAttribute("aria-label", name);
    parent.append(made);
    return made;
  }

  function say(words) {
    const said = document.querySelector(".copied");
    if (said) said.textContent = words;
  }

  function addCopy(table, tools) {
    const copy = button("Copy", "Copy the table", tools);
    copy.addEventListener("click", async () => {
      let done = "Copied!";
      try {
        await navigator.clipboard.writeText(text(table));
      } catch {
        done = window.ClipboardJS?.copy(text(table)) ? done : "Not copied";
      }
      copy.textContent = done;
      say(done);
      setTimeout(() => {
        copy.textContent = "Copy";
        say("");
      }, 2000);
    });
  }

  function addShades(table, tools) {
    const all = [...table.querySelectorAll("td.n")];
    const numbers = all.map((cell) => value(cell.textContent));
    const finite = numbers.filter(Number.isFinite);
    const [least, most] = [Math.min(...finite), Math.max(...finite)];
    if (!(least < most)) return;
    all.forEach((cell, i) => {
      const share = (numbers[i] - least) / (most - least);
      const shown = Number.isNaN(share) ? 0 : Math.min(1, Math.max(0, share));
      cell.style.setProperty("--share", shown.toFixed(3));
    });
    const shade = button("Shade", "Shade the cells by their size", tools);
    shade.setAttribute("aria-pressed", "false");
    shade.addEventListener("click", () => {
      const on = table.classList.toggle("shaded");
      shade.setAttribute("aria-pressed", String(on));
    });
  }

  function sort(table, column, up) {
    const body = table.tBodies[0];
    const word = (row) => row.cells[column].textContent;
    const number = table.rows[1].cells[column].matches(".n");
    const rows = [...body.rows].sort((a, b) => {
      const [one, other] = [a, b].map((row) => value(word(row)));
      if (!number) return word(a).localeCompare(word(b)) * (up ? 1 : -1);
      if (Number.isNaN(one - other) && one !== other)
        return Number.isNaN(one) - Number.isNaN(other); // these are last
      return (one === other ? 0 : one - other) * (up ? 1 : -1);
    });
    body.append(...rows);
  }

  function addSorting(table) {
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, column) => {
      const words = head.textContent;
      if (!words) return;
      head.textContent = "";
      button(words, "", head).addEventListener("click", () => {
        const up = head.getAttribute("aria-sort") !== "ascending";
        for (const other of heads) other.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", up ? "ascending" : "descending");
        sort(table, column, up);
      });
    });
  }

  // Beside the table, or above its end where it leaves no room.
  function keepInside(box, tools) {
    const place = () => {
      const end = box.getBoundingClientRect().right + tools.offsetWidth;
      const last = box.parentElement.getBoundingClientRect().right;
      tools.classList.toggle("inside", end > last);
    };
    box.addEventListener("pointerenter", place);
    box.addEventListener("focusin", place);
    place();
  }

  for (const table of document.querySelectorAll("table.printed")) {
    const tools = document.createElement("div");
    const box = document.createElement("div");
    tools.className = "printed-tools";
    table.parentElement.replaceWith(box);
    const scrolls = document.createElement("div");
    scrolls.className = "printed-table";
    scrolls.append(table);
    box.append(scrolls, tools);
    if (table.tHead) addSorting(table);
    if (table.matches(".tensor.small")) addShades(table, tools);
    addCopy(table, tools);
    keepInside(box, tools);
  }
})();
