// Elements of the page. Text goes in as text nodes only: nothing here reads markup.

const SVG = "http://www.w3.org/2000/svg";

// An element: `h("button", { class: "quiet", onclick: f }, "Cancel")`. Children may be nodes, texts,
// lists of them, or null for none.
export function h(name, given = {}, ...children) {
  return filled(document.createElement(name), given, children);
}

// The same for drawings.
export function s(name, given = {}, ...children) {
  return filled(document.createElementNS(SVG, name), given, children);
}

function filled(node, given, children) {
  for (const [key, value] of Object.entries(given)) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (key === "value" || key === "checked" || key === "disabled" || key === "selected") node[key] = value;
    else node.setAttribute(key, value === true ? "" : value);
  }
  append(node, children);
  return node;
}

export function append(node, children) {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    if (Array.isArray(child)) append(node, child);
    else node.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
}

// Set the text of a node; one that is the same is not touched, so that selections stay.
export function say(node, text) {
  const wanted = text === null || text === undefined ? "" : String(text);
  if (node.textContent !== wanted) node.textContent = wanted;
}

export function fill(node, ...children) {
  node.replaceChildren();
  append(node, children);
  return node;
}

export function toggle(node, name, on) {
  if (node.classList.contains(name) !== Boolean(on)) node.classList.toggle(name, Boolean(on));
}

export function show(node, on) {
  if (node.hasAttribute("hidden") === Boolean(on)) node.toggleAttribute("hidden", !on);
}

// Children of a container by key: rows that stay are updated in place, and moved only if they must.
export class Keyed {
  constructor(container, make, update, keyOf = (item) => item.id) {
    this.container = container;
    this.make = make;
    this.update = update;
    this.keyOf = keyOf;
    this.rows = new Map();
  }

  set(items) {
    // Those that are gone go first, so that those that stay need not move.
    const wanted = new Set(items.map(this.keyOf));
    for (const [key, row] of this.rows) {
      if (wanted.has(key)) continue;
      row.node.remove();
      this.rows.delete(key);
    }
    const seen = new Set();
    keepingFocus(this.container, () => {
      let place = this.container.firstElementChild;
      items.forEach((item, index) => {
        const key = this.keyOf(item);
        if (seen.has(key)) return;
        seen.add(key);
        let row = this.rows.get(key);
        if (row === undefined) {
          row = this.make(item);
          this.rows.set(key, row);
        }
        this.update(row, item, index);
        if (row.node === place) place = place.nextElementSibling;
        else this.container.insertBefore(row.node, place);
      });
    });
  }
}

// Do something to the children of a container. The element that had the focus has it again, if it is
// still there, else the one that `instead` gives.
export function keepingFocus(container, work, instead = () => null) {
  const before = document.activeElement;
  const isInside = before !== container && container.contains(before);
  work();
  if (!isInside || document.activeElement === before) return;
  const now = container.contains(before) ? before : instead();
  now?.focus({ preventScroll: true });
}
