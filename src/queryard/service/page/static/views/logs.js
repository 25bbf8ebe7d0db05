// The log of the server, as it is written.

import { address, get, repeat } from "../api.js";
import { h, Keyed, say, show } from "../dom.js";
import { moment } from "../format.js";
import { chip, choice, notice, queryLink } from "../parts.js";

export const title = "Logs";
const KEPT = 1000;
const PIECE = 200;

export function mount(root, { signal }) {
  const told = notice();
  let after = null;
  let lines = [];
  const level = choice("level", ["info", "warning", "error"], "info", () => {
    after = null;
    lines = [];
    load().catch(told.error);
  });
  const filter = h("input", { type: "search", placeholder: "Filter lines", "aria-label": "Filter lines", oninput: () => draw() });
  const follow = h("input", { type: "checkbox", checked: true });
  const body = h("tbody");
  const rows = new Keyed(body, row, () => null, (line) => line.seq);
  const none = h("p", { class: "empty" });
  const table = h("table", { class: "log-lines" }, h("caption", { class: "unseen" }, "Log, the newest line first"),
    h("thead", {}, h("tr", {}, ["Time", "Level", "Event", "Query", "Text"].map((name) => h("th", { scope: "col" }, name)))), body);
  root.append(
    h("h1", {}, "Logs"), told.node,
    h("div", { class: "row filter-row" }, filter, level.node, h("label", { class: "check" }, follow, "follow")),
    h("section", { class: "panel" }, h("div", { class: "table-box" }, table), none));

  async function load() {
    const wanted = level.select.value;
    const found = await get(address("/v1/logs", { after, level: wanted, limit: PIECE }), { signal });
    if (wanted !== level.select.value) return; // another level was chosen meanwhile
    after = found.last;
    lines = [...lines, ...found.lines].slice(-KEPT);
    draw();
  }

  function draw() {
    const wanted = filter.value.trim().toLowerCase();
    const shown = lines.filter((line) => !wanted || textOf(line).toLowerCase().includes(wanted)).reverse();
    rows.set(shown);
    say(none, wanted ? "No line matches." : "No line of this level yet.");
    show(none, shown.length === 0);
    show(table, shown.length > 0);
  }

  repeat(1, async () => {
    if (follow.checked || after === null) await load();
  }, told.polled, signal);
}

function textOf(line) {
  return [line.level, line.event, line.query, line.text].filter(Boolean).join(" ");
}

function row(line) {
  const node = h("tr", {},
    h("td", { class: "num" }, moment(line.at)),
    h("td", {}, line.level === "info" ? h("span", { class: "quiet" }, line.level) : chip(line.level)),
    h("td", {}, line.event),
    h("td", {}, line.query ? queryLink(line.query) : ""),
    h("td", { class: "k-text" }, line.query ? line.text.replace(`query=${line.query} `, "") : line.text));
  return { node };
}
