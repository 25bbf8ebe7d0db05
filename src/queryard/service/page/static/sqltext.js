// SQL in colours, and a text area that helps to write it.

import { fill, h } from "./dom.js";
import { oneLine } from "./format.js";

const WORDS = new Set(("all alter analyze and any as asc attach begin between by case cast check column commit copy create cross "
  + "current database default delete desc describe distinct drop else end escape except exclude exists explain false fetch filter "
  + "first following for from full function group grouping having if ilike in index inner insert intersect interval into is join "
  + "last lateral left like limit natural not null nulls offset on or order outer over partition pivot preceding primary qualify "
  + "range recursive replace returning right rollback row rows sample schema select semi anti set sets show similar some summarize table "
  + "tablesample temp temporary then ties to true truncate unbounded union unique unpivot update using values view when where "
  + "window with").split(" "));
const PIECES = /(--[^\n]*|\/\*[\s\S]*?(?:\*\/|$))|('(?:[^']|'')*(?:'|$))|("(?:[^"]|"")*(?:"|$))|(\b\d[\d_]*(?:\.\d+)?(?:e[+-]?\d+)?\b)|([A-Za-z_]\w*)/gi;

// Spans of coloured text.
function coloured(sql) {
  const found = [];
  let last = 0;
  for (const match of sql.matchAll(PIECES)) {
    const [text, comment, quoted, name, number, word] = match;
    const kind = comment ? "comment" : quoted ? "text" : number ? "number" : word && WORDS.has(word.toLowerCase()) ? "word" : null;
    if (kind === null || name) continue;
    if (match.index > last) found.push(sql.slice(last, match.index));
    found.push(h("span", { class: `t-${kind}` }, text));
    last = match.index + text.length;
  }
  found.push(sql.slice(last));
  return found;
}

export function sqlBlock(sql) {
  return h("pre", { class: "sql-text", tabindex: "0", "aria-label": "Statement" }, coloured(sql));
}

// The editor: colours behind a text area of the same metrics. Tab indents, unless Esc came before it.
export function editor(text, { run, cancel, changed }) {
  const behind = h("pre", { "aria-hidden": "true" });
  let leaving = false;
  const area = h("textarea", {
    spellcheck: "false", autocapitalize: "off", autocomplete: "off", autocorrect: "off", "aria-label": "SQL statement",
    placeholder: "SELECT …    (Ctrl+Enter runs it)", value: text,
    oninput: () => draw(),
    onblur: () => (leaving = false),
    onkeydown: (event) => {
      const command = event.ctrlKey || event.metaKey;
      if (command && event.key === "Enter") {
        event.preventDefault();
        run();
      } else if (command && event.key === ".") {
        event.preventDefault();
        cancel();
      } else if (command && event.key === "/") {
        event.preventDefault();
        comment();
      } else if (event.key === "Escape") leaving = true;
      else if (event.key === "Tab" && !leaving && !command && !event.altKey) {
        event.preventDefault();
        indent(event.shiftKey);
      } else if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
        event.preventDefault();
        newLine();
      } else if (event.key !== "Shift") leaving = false;
    },
  });

  function draw() {
    fill(behind, coloured(area.value), "\n");
    changed(area.value);
  }

  // Through the browser's own command, so that undo works.
  function put(value) {
    area.focus();
    if (!document.execCommand("insertText", false, value)) area.setRangeText(value, area.selectionStart, area.selectionEnd, "end");
    draw();
  }

  function newLine() {
    const before = area.value.slice(0, area.selectionStart);
    const line = before.slice(before.lastIndexOf("\n") + 1);
    put(`\n${/^\s*/.exec(line)[0]}`);
  }

  function lines() {
    const start = area.value.lastIndexOf("\n", area.selectionStart - 1) + 1;
    const next = area.value.indexOf("\n", Math.max(area.selectionStart, area.selectionEnd - 1));
    return [start, next === -1 ? area.value.length : next];
  }

  function changeLines(change) {
    const [start, end] = lines();
    const changedText = change(area.value.slice(start, end).split("\n")).join("\n");
    area.setSelectionRange(start, end);
    put(changedText);
    area.setSelectionRange(start, start + changedText.length);
  }

  function indent(back) {
    if (!back && area.selectionStart === area.selectionEnd) put("  ");
    else changeLines((all) => all.map((line) => (back ? line.replace(/^ {1,2}/, "") : `  ${line}`)));
  }

  function comment() {
    changeLines((all) => (all.every((line) => line.startsWith("-- ") || !line.trim())
      ? all.map((line) => line.replace(/^-- /, ""))
      : all.map((line) => (line.trim() ? `-- ${line}` : line))));
  }

  draw();
  return {
    node: h("div", { class: "editor" }, behind, area),
    area,
    get value() {
      return area.value;
    },
    set value(text_) {
      area.value = text_;
      draw();
    },
    // What is selected, else all.
    get wanted() {
      const chosen = area.value.slice(area.selectionStart, area.selectionEnd).trim();
      return chosen || area.value.trim();
    },
    insert: put,
  };
}

// A statement in one line: a comment that it begins with, then the rest.
export function sqlLine(sql) {
  const found = /^\s*--([^\n]*)\n([\s\S]*)$/.exec(sql);
  if (found === null) return [oneLine(sql)];
  return [h("span", { class: "t-comment" }, found[1].trim()), " ", oneLine(found[2])];
}
