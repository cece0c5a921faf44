// Elements, texts and numbers, as the labs write them.

const SVG = "http://www.w3.org/2000/svg";

// element("p", { class: "note" }, "text", child): an HTML element.
export function element(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

// drawn("circle", { r: 3 }): an SVG element.
export function drawn(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

function fill(node, attributes, children) {
  set(node, attributes);
  node.append(...children);
  return node;
}

// Sets attributes that differ; null takes one away.
export function set(node, attributes) {
  for (const [name, value] of Object.entries(attributes))
    if (value === null) node.removeAttribute(name);
    else if (node.getAttribute(name) !== String(value))
      node.setAttribute(name, value);
}

// Writes a text that differs: touching every cell of a table at every move
// of the hand would make the browser lay it out anew.
export function write(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

// How large a share is, for the style sheet: a bar's length, a cell's shade.
export function share(node, weight) {
  const text = weight.toFixed(3);
  if (node.style.getPropertyValue("--share") !== text)
    node.style.setProperty("--share", text);
}

// Three decimals, a real minus sign, and no minus before zero.
export function decimal(x, digits = 3) {
  const text = x.toFixed(digits);
  const zero = Number(text) === 0;
  return text.replace("-", zero ? "" : "−");
}

// Letters in a drawing are as large as those around it, however small the
// drawing: each is told how many of its own units a pixel of the screen is,
// and `told()` that they were.
export function legible(root, told) {
  const sizes = new ResizeObserver((entries) => {
    for (const { target, contentRect: room } of entries) {
      const { width, height } = target.viewBox.baseVal;
      if (room.width) // the tighter side says how large the drawing is
        target.style.setProperty("--unit",
          Math.max(width / room.width, height / room.height).toFixed(3));
    }
    told();
  });
  for (const picture of root.querySelectorAll("svg[viewBox]"))
    sizes.observe(picture);
  return sizes;
}
