// Past days: how many queries, how they fared, and each of them.

import { address, get, insist } from "../api.js";
import { h } from "../dom.js";
import { clock, count, seconds, several } from "../format.js";
import { button, chip, dataTable, notice, panel, queryLink } from "../parts.js";
import { performanceColumns } from "../performance_columns.js";
import { sqlLine } from "../sqltext.js";

export const title = "Archive";
const PAGE = 100;

export function mount(root, context) {
  const told = notice();
  if (context.argument) oneDay(root, told, context);
  else allDays(root, told, context);
}

async function allDays(root, told, { signal }) {
  const table = dataTable([
    { name: "Day", cell: (day) => h("a", { href: `#/archive/${encodeURIComponent(day.day)}` }, day.day) },
    { name: "Queries", class: "num", cell: (day) => count(day.queries) },
    { name: "Failed", class: "num", cell: (day) => (day.failed ? h("span", { class: "bad" }, count(day.failed)) : "0") },
    { name: "Tenants", class: "num", cell: (day) => count(day.tenants) },
    { name: "Mean response", class: "num", cell: (day) => seconds(day.mean_response_s) },
    { name: "Work", class: "num", cell: (day) => seconds(day.work_s) },
  ], { empty: "The history has no day yet.", caption: "Days" });
  root.append(h("h1", {}, "Archive"), told.node, h("section", { class: "panel" }, table.node));
  try {
    const found = await insist(() => get("/v1/archive", { signal }), signal);
    table.set([...found.days].sort((a, b) => (a.day < b.day ? 1 : -1)));
  } catch (error) {
    told.error(error);
  }
}

function oneDay(root, told, { argument: day, signal }) {
  const performance_ = dataTable(performanceColumns("tenant"), { empty: "No query has ended.", caption: "Performance by tenant" });
  const queries = dataTable([
    { name: "Query", cell: (query) => queryLink(query.id) },
    { name: "At", class: "whole", cell: (query) => clock(query.submitted_at) },
    { name: "Tenant", class: "whole", cell: (query) => query.tenant },
    { name: "Status", class: "whole", cell: (query) => chip(query.status) },
    { name: "Waited", class: "num", cell: (query) => seconds(query.waited_s) },
    { name: "Work", class: "num", cell: (query) => seconds(query.work_s) },
    { name: "Statement", class: "k-statement", cell: (query) => h("span", { class: "sql", title: query.sql }, sqlLine(query.sql ?? "")) },
  ], { empty: "No query was submitted.", caption: "Queries of the day" });
  const where = h("span", { class: "quiet" });
  let start = 0;
  const before = button("‹ Before", () => load(Math.max(0, start - PAGE)), { class: "small" });
  const after = button("Next ›", () => load(start + PAGE), { class: "small" });
  root.append(
    h("h1", {}, h("a", { href: "#/archive" }, "Archive"), ` · ${day}`), told.node,
    panel("Performance", performance_.node),
    panel("Queries", queries.node, h("div", { class: "row pager" }, where, before, after)));

  async function load(from) {
    try {
      const path = address(`/v1/archive/${encodeURIComponent(day)}`, { start: from, limit: PAGE });
      const found = await insist(() => get(path, { signal }), signal);
      start = from;
      performance_.set(found.performance.rows);
      queries.set(found.queries);
      const last = start + found.queries.length;
      const all = found.total;
      where.textContent = `${count(Math.min(start + 1, last))} to ${count(last)} of ${several(all, "query", "queries")}`;
      before.disabled = start === 0;
      after.disabled = found.next === null;
    } catch (error) {
      told.error(error);
    }
  }

  load(0);
}
