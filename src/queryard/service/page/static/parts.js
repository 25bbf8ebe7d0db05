// What views are made of: panels, tables, tiles, messages, dialogs.

import { Lost, Problem } from "./api.js";
import { h, keepingFocus, say, show } from "./dom.js";
import { shortId } from "./format.js";

// A box with a heading.
export function panel(title, ...children) {
  const heading = h("h2", {}, title);
  return h("section", { class: "panel" }, heading, children);
}

export function queryLink(id, text = shortId(id)) {
  return h("a", { class: "mono", href: `#/query/${encodeURIComponent(id)}`, title: id }, text);
}

// A line for what goes wrong, and for what was done. `polled` is for what is asked again and again:
// its errors go away when it succeeds, those of what a person did stay.
export function notice() {
  const node = h("p", { class: "notice", role: "status", "aria-live": "polite", hidden: true });
  let isPolled = false;

  function put(kind, text, polled = false) {
    isPolled = polled;
    node.className = `notice ${kind}`;
    say(node, text);
    show(node, Boolean(text));
  }

  function error(problem, polled = false) {
    // The frame tells of a lost connection.
    if (problem instanceof Lost || problem.name === "AbortError") return;
    put("bad", problem instanceof Problem ? problem.message : `The page fails: ${problem.message}`, polled);
    if (!(problem instanceof Problem)) reportError(problem);
  }

  return {
    node,
    error: (problem) => error(problem),
    polled(problem) {
      if (problem !== null) error(problem, true);
      else if (isPolled) put("bad", "");
    },
    good: (text) => put("good", text),
    clear: () => put("good", ""),
  };
}

// A table by columns { name, title, class, cell(item) → node or text }; `set(items)` fills it. Rows
// whose item is the same stay as they are, so that focus and selections stay, too.
export function dataTable(columns, { empty = "Nothing here.", caption = "", onRow = null } = {}) {
  const body = h("tbody");
  const head = h("tr", {}, columns.map((column) => h("th", { scope: "col", class: column.class, title: column.title }, column.name)));
  const none = h("p", { class: "empty" }, empty);
  const table = h("table", {}, caption ? h("caption", { class: "unseen" }, caption) : null, h("thead", {}, head), body);
  const node = h("div", { class: "table-box" }, table, none);

  function made(item) {
    const row = h("tr", {}, columns.map((column) => h("td", { class: column.class }, column.cell(item))));
    if (onRow) onRow(row, item);
    return row;
  }

  let drawn = null;
  return {
    node,
    set(items) {
      const texts = items.map((item) => JSON.stringify(item));
      if (drawn !== null && texts.length === drawn.length && texts.every((text, i) => text === drawn[i].text)) return;
      show(none, items.length === 0);
      show(table, items.length > 0);
      const kept = new Map((drawn ?? []).map((each) => [each.text, each.row]));
      const rows = items.map((item, i) => {
        const row = kept.get(texts[i]) ?? made(item);
        kept.delete(texts[i]); // of items that are alike, each has a row
        return { text: texts[i], key: keyOf(item, i), row };
      });
      const place = placeOf(body, drawn ?? []);
      keepingFocus(body, () => body.replaceChildren(...rows.map((each) => each.row)), () => elementAt(rows, place));
      drawn = rows;
    },
  };
}

function keyOf(item, number) {
  return item.id ?? item.name ?? item.key ?? number;
}

const FOCUSABLE = "a, button, input, select, summary";

// Where the focus is in a table: the key of the row, the cell, and which element of the cell; a link
// is known by its address, wherever it is in the cell by then.
function placeOf(body, rows) {
  const cell = body.contains(document.activeElement) ? document.activeElement.closest("td") : null;
  if (cell === null) return null;
  return {
    key: rows.find((each) => each.row === cell.parentNode)?.key,
    cell: [...cell.parentNode.children].indexOf(cell),
    number: [...cell.querySelectorAll(FOCUSABLE)].indexOf(document.activeElement),
    address: document.activeElement.getAttribute("href"),
  };
}

function elementAt(rows, place) {
  const row = rows.find((each) => each.key === place?.key)?.row;
  const found = [...(row?.children[place.cell]?.querySelectorAll(FOCUSABLE) ?? [])];
  if (place?.address) return found.find((each) => each.getAttribute("href") === place.address) ?? null;
  return found[place?.number] ?? null;
}

export function choice(label, options, value, onchange) {
  const select = h("select", { onchange: () => onchange?.(select.value) },
    options.map((option) => {
      const [key, text] = Array.isArray(option) ? option : [option, option];
      return h("option", { value: key, selected: key === value }, text);
    }));
  return { node: h("label", { class: "field" }, h("span", {}, label), select), select };
}

export function field(label, given = {}) {
  const input = h("input", given);
  return { node: h("label", { class: "field" }, h("span", {}, label), input), input };
}

export function button(text, onclick, given = {}) {
  return h("button", { type: "button", onclick, ...given }, text);
}

// Ask before something that cannot be taken back, or that others notice. Gives true or false.
export function confirmed(question, action, detail = "") {
  return new Promise((resolve) => {
    const dialog = h("dialog", { class: "small", "aria-label": question },
      h("h2", {}, question),
      detail ? h("p", {}, detail) : null,
      h("div", { class: "row end" },
        button("Leave it", () => dialog.close("no"), { class: "quiet" }),
        button(action, () => dialog.close("yes"), { class: "main", autofocus: true })));
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(dialog.returnValue === "yes");
    });
    document.body.append(dialog);
    dialog.showModal();
  });
}

export function chip(status) {
  return h("span", { class: `chip ${status}` }, status);
}

// A number with its name.
export function tile(name) {
  const value = h("span", { class: "tile-value" });
  const more = h("span", { class: "tile-more" });
  const node = h("div", { class: "tile" }, h("span", { class: "tile-name" }, name), value, more);
  return {
    node,
    set(text, detail = "") {
      say(value, text);
      say(more, detail);
    },
    add(child) {
      node.append(child);
    },
  };
}

// A list of names and values.
export function facts(pairs) {
  return h("dl", { class: "facts" }, pairs.filter(([, value]) => value !== null && value !== undefined && value !== "")
    .map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))));
}
