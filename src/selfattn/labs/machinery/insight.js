// What there is to see now, in a sentence, and what to try next, on buttons:
// above a lab's picture.

import { startOf } from "./settings.js";
import { element, write } from "./drawing.js";

// Puts both in their place; returns the function that says it anew.
export function addInsight(lab) {
  const insight = element("p", { class: "lab-insight" });
  lab.root.querySelector(".lab-controls").after(insight);
  const { nodes, moved } = taskButtons(lab);
  if (lab.tasks.length) lab.root.prepend(...nodes);
  return (values, result) => {
    write(insight, lab.sees(values, result));
    moved(values);
  };
}

// A button for each setting to try, and room for its question and its answer,
// which is worked out for that setting when the button is pressed, and says so
// once `moved(values)` is told of another.
function taskButtons(lab) {
  const question = element("p", {});
  const told = element("p", {});
  const past = element("p", { class: "lab-past", hidden: "" },
    "The lab has moved on: this is of the button’s setting.");
  const answer = element("details", {},
    element("summary", {}, "Answer"), past, told);
  let setting = "";
  const asked = element("div", { class: "lab-asked", hidden: "" },
    question, answer);
  // At the start nothing has been asked.
  lab.reset.addEventListener("click", () => {
    asked.hidden = true;
  });
  const buttons = lab.tasks.map((task) => {
    const button = element("button", { type: "button" }, task.name);
    button.addEventListener("click", () => {
      lab.letGo();
      lab.set({ ...startOf(lab.rules), ...task.set });
      write(question, task.ask);
      write(told, task.answer(lab.values(), lab.result));
      setting = JSON.stringify(lab.values());
      past.hidden = true;
      answer.open = false;
      asked.hidden = false;
    });
    return button;
  });
  const nodes = [element("div", { class: "lab-tasks" },
    element("span", {}, "Try:"), ...buttons), asked];
  const moved = (values) => {
    past.hidden = setting === JSON.stringify(values);
  };
  return { nodes, moved };
}
