// What a lab is on the screen: its settings, labelled native controls for
// them, and the lines that say what is shown.

import {
  highest, optionsOf, readLink, settle, startOf, wordsTyped, writeLink,
} from "./settings.js";
import { element, legible, set, write } from "./drawing.js";
import { addInsight } from "./insight.js";

// Makes a lab's module out of three functions and a list:
//   compute(values) → result   the arithmetic, which the tests compare
//   build(lab) → update        draws once; update(values, result) redraws
//   sees(values, result)       what there is to see now, in a sentence
//   tasks                      settings to try, each with a name, a question
//                              and the answer: { name, set, ask, answer }
export function defineLab({ compute, build, sees, tasks }) {
  function render({ model, el }) {
    const lab = new LabView(model, { compute, sees, tasks });
    lab.start(build(lab));
    el.append(lab.root);
    return () => lab.stop();
  }
  // For the tests: the sentence, and all that the buttons lead to.
  const seen = (values) => sees(values, compute(values));
  const tried = (start) => tasks.map((task) => {
    const values = { ...start, ...task.set };
    return [task.name, values, task.ask, answerOf(task, values)];
  });
  const answerOf = (task, values) => task.answer(values, compute(values));
  return { render, compute, readLink, writeLink, seen, tried };
}

// One lab on the screen: its settings, its controls, its lines of text.
class LabView {
  constructor(model, { compute, sees, tasks }) {
    Object.assign(this, { model, compute, sees, tasks });
    this.rules = model.get("rules");
    this.refreshers = [];
    this.root = element("section", { class: "selfattn-lab" });
    this.detailLine = element("p", { class: "lab-detail" });
    this.spoken = element("p", { class: "lab-spoken", role: "status" });
    this.complaint = element("p", { class: "lab-complaint", role: "alert" });
  }

  values() {
    const names = Object.keys(this.rules);
    return Object.fromEntries(names.map((name) =>
      [name, this.model.get(name)]));
  }

  // Changes settings, all at once, and redraws once.
  set(changes) {
    const values = settle(this.rules, { ...this.values(), ...changes });
    this.quiet = true;
    for (const [name, value] of Object.entries(values))
      this.model.set(name, value);
    this.quiet = false;
    this.model.save_changes();
    this.complain("");
    this.update();
  }

  start(update) {
    this.redraw = update;
    this.changed = () => this.quiet || this.update();
    for (const name of Object.keys(this.rules))
      this.model.on(`change:${name}`, this.changed);
    this.reset = element("button", { type: "button" }, "Back to the start");
    this.reset.addEventListener("click", () =>
      this.set(startOf(this.rules)));
    this.root.append(
      this.detailLine, this.complaint,
      element("div", { class: "lab-foot" }, this.reset), this.spoken);
    this.tellInsight = addInsight(this);
    this.letters = legible(this.root, () => {
      this.update();
      clearTimeout(this.speaking); // as below
    });
    // JupyterLab would take the arrow keys for itself.
    for (const node of this.root.querySelectorAll(
      "input, select, button, [tabindex]"))
      set(node, { "data-lm-suppress-shortcuts": true });
    this.complained = () => this.complain(this.model.get("complaint") ?? "");
    this.model.on("change:complaint", this.complained);
    this.complained();
    this.update();
    clearTimeout(this.speaking); // nobody has done anything yet
    this.keepHeight();
  }

  // The page below does not jump up when a move leaves less to show.
  keepHeight() {
    let width = 0;
    this.sizes = new ResizeObserver(() => {
      const { offsetWidth, style } = this.root;
      if (offsetWidth !== width) {
        width = offsetWidth;
        this.letGo();
      }
      const { height } = this.root.getBoundingClientRect();
      this.tallest = Math.max(this.tallest, height);
      style.minHeight = `${this.tallest}px`;
    });
    this.sizes.observe(this.root);
  }

  // What comes now starts anew, as tall as it is.
  letGo() {
    this.tallest = 0;
    this.root.style.minHeight = "";
  }

  stop() {
    clearTimeout(this.speaking);
    this.sizes.disconnect();
    this.letters.disconnect();
    this.model.off("change:complaint", this.complained);
    for (const name of Object.keys(this.rules))
      this.model.off(`change:${name}`, this.changed);
  }

  // All that is shown is drawn from the settings and from `result`.
  update() {
    try {
      const values = this.values();
      this.result = this.compute(values);
      for (const refresh of this.refreshers) refresh(values);
      this.redraw(values, this.result);
      this.tellInsight(values, this.result);
      this.tellDetail();
    } catch (error) {
      const failed = { bubbles: true, detail: error };
      if (!this.root.isConnected) throw error;
      this.root.dispatchEvent(new CustomEvent("lab-failed", failed));
    }
  }

  // The numbers behind the picture, where the pointer or the focus is: what
  // `tell(values, result)` says of `part`, now and after every change.
  detail(tell, part = null) {
    this.told = { tell, part };
    this.tellDetail();
  }

  // What the line says when nothing is pointed at.
  hint(tell) {
    this.resting = tell;
    this.told = { tell, part: null };
  }

  tellDetail() {
    if (this.told.part?.checkVisibility?.() === false) this.hint(this.resting);
    write(this.detailLine, this.told.tell(this.values(), this.result));
  }

  // For screen readers: what has come out, once the hand rests.
  say(text) {
    clearTimeout(this.speaking);
    this.speaking = setTimeout(() => write(this.spoken, text), 500);
  }

  complain(text) {
    this.complaint.textContent = text;
    this.complaint.hidden = text === "";
  }

  // A row for controls.
  row(...children) {
    const row = element("div", { class: "lab-controls" }, ...children);
    this.root.append(row);
    return row;
  }

  // A labelled slider. A choice of numbers makes one with a stop for each.
  // The label is text, or a list of text and elements. A setting that `along`
  // names goes along when a hand moves this one, as long as the two are equal.
  range(name, label, { when = () => true, text = String, along } = {}) {
    const rule = this.rules[name];
    const stopsNow = () => optionsOf(rule, this.values());
    const input = element("input", { type: "range", "data-setting": name });
    const shown = element("span", { class: "lab-value" });
    input.addEventListener("input", () => {
      const [now, stops] = [this.values(), stopsNow()];
      const place = Number(input.value);
      const moved = stops ? stops[place] : place;
      const also = now[along] === now[name] ? { [along]: moved } : {};
      this.set({ [name]: moved, ...also });
    });
    const whole = element("label", {},
      element("span", {}, ...[label].flat()), input, shown);
    set(shown, { "aria-hidden": "true" });
    this.refreshers.push((values) => {
      const value = values[name];
      const stops = stopsNow();
      set(input, stops
        ? { min: 0, max: stops.length - 1, step: 1 }
        : { min: rule.low, max: highest(rule, values), step: rule.step ?? 1 });
      input.value = stops ? stops.indexOf(value) : value;
      set(input, { "aria-valuetext": text(value) });
      write(shown, text(value));
      whole.hidden = !when(values);
    });
    return whole;
  }

  // A labelled drop-down list; `words` says the options in words.
  select(name, label, words = {}) {
    const options = this.rules[name].options;
    const select = element("select", { "data-setting": name },
      ...options.map((option, i) =>
        element("option", { value: i }, words[option] ?? String(option))));
    select.addEventListener("change", () =>
      this.set({ [name]: options[Number(select.value)] }));
    this.refreshers.push((values) => {
      select.value = options.indexOf(values[name]);
    });
    return element("label", {}, element("span", {}, label), select);
  }

  checkbox(name, label) {
    const input = element("input", {
      type: "checkbox", "data-setting": name });
    input.addEventListener("change", () =>
      this.set({ [name]: input.checked }));
    this.refreshers.push((values) => { input.checked = values[name]; });
    return element("label", {}, input, ` ${label}`);
  }

  // A line for words to type; `typed(words)` is told of those that count.
  typing(name, label, typed) {
    const rule = this.rules[name];
    const input = element("input", { type: "text", "data-setting": name,
      autocomplete: "off", autocapitalize: "off", spellcheck: "false",
      style: `--words: ${rule.most}` });
    input.addEventListener("input", () => {
      const words = wordsTyped(input.value, rule);
      if (words) typed(words);
      const most = input.value.split(/\s+/).filter(Boolean).length > rule.most;
      this.complain(most ? `${rule.most} words at most: the others are left `
        + "out." : "");
    });
    input.addEventListener("change", () => {
      input.value = this.values()[name];
      this.complain("");
    });
    this.refreshers.push((values) => {
      if (wordsTyped(input.value, rule) !== values[name])
        input.value = values[name];
    });
    return element("label", { class: "lab-typing" },
      element("span", {}, label), input);
  }

  // A row of words, of which one is chosen: the setting is its position.
  words(name, legend, words, count) {
    const group = `lab-${Math.random().toString(36).slice(2)}`;
    const inputs = words.map((_, i) => element("input", {
      type: "radio", name: group, value: i, "data-setting": name }));
    const labels = words.map((word, i) => {
      inputs[i].addEventListener("change", () => this.set({ [name]: i }));
      return element("label", {}, inputs[i], element("span", {}, word));
    });
    this.refreshers.push((values) => inputs.forEach((input, i) => {
      input.checked = values[name] === i;
      labels[i].hidden = i >= count(values);
    }));
    const choice = element("fieldset", { class: "lab-words" },
      element("legend", {}, legend), ...labels);
    return { choice, labels };
  }

  // Numbers of `node` are shown once it has the pointer or the focus.
  explain(node, tell) {
    const show = () => this.detail(tell, node);
    node.addEventListener("pointerenter", show);
    node.addEventListener("focus", show);
  }
}
