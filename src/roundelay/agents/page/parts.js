// How this page is built: elements and text, never markup from data. A picture of the model is the one exception: the agent has drawn
// it, with every word of others escaped, and it is read as XML, of which nothing runs.

const SVG = "http://www.w3.org/2000/svg";

const dress = (node, attributes, children) => {
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
};

export const byId = (id) => document.getElementById(id);
export const element = (name, attributes = {}, ...children) => dress(document.createElement(name), attributes, children);
export const drawn = (name, attributes = {}, ...children) => dress(document.createElementNS(SVG, name), attributes, children);

export const drawing = (markup) => document.importNode(new DOMParser().parseFromString(markup, "image/svg+xml").documentElement, true);

// Text that has not changed is left alone: what a reader has selected stays so, and nothing is read out twice.
export const say = (node, text) => {
  if (node.textContent !== text) node.textContent = text;
};

// Builds the contents of a node anew, but only where what they show has changed.
const shown = new WeakMap();
export const refill = (node, about, build) => {
  const key = JSON.stringify(about);
  if (shown.get(node) === key) return;
  shown.set(node, key);
  node.replaceChildren(...build());
};
