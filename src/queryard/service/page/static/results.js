// Rows of an answer in a table with pages, and provisional answers with their intervals.

import { address, ask, digits, exactRows, insist, textOf } from "./api.js";
import { timeChart, whisker } from "./charts.js";
import { fill, h, say, show } from "./dom.js";
import { count, MISSING, seconds, several, share, significant } from "./format.js";
import { button } from "./parts.js";

const PAGE_ROWS = 100;
const NUMERIC = /^(U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?|DECIMAL.*|DOUBLE|FLOAT|REAL|NUMERIC.*)$/i;

function isNumeric(type) {
  return NUMERIC.test(type);
}

function cellText(value) {
  if (value === null) return h("span", { class: "null" }, "null");
  const exact = digits(value);
  if (exact !== null) return exact;
  if (typeof value === "object") return JSON.stringify(value, (_, each) => digits(each) ?? each);
  return String(value);
}

function head(columns) {
  return h("tr", {}, columns.map((column) => h("th", { scope: "col", class: isNumeric(column.type) ? "num" : "" }, column.name, h("span", {}, column.type))));
}

// The rows of a query, a page at a time; the server keeps them for a while.
export function rowsView(query, signal, failed) {
  const table = h("table", { class: "result" });
  const where = h("span", { class: "quiet" });
  let start = 0;
  let next = null;
  const before = button("‹ Before", () => load(Math.max(0, start - PAGE_ROWS)), { class: "small" });
  const after = button("Next ›", () => load(start + PAGE_ROWS), { class: "small" });
  const csv = button("Save as CSV", save, { class: "small quiet" });
  const node = h("div", {}, h("div", { class: "table-box" }, table), h("div", { class: "row pager" }, where, csv, before, after));

  async function load(from) {
    try {
      const path = address(`/v1/queries/${encodeURIComponent(query)}/rows`, { start: from, limit: PAGE_ROWS, format: "json" });
      const found = exactRows(await insist(() => whole(path), signal));
      start = from;
      next = digits(found.next) ?? found.next;
      draw(found);
    } catch (error) {
      failed(error);
    }
  }

  async function whole(path) {
    let response;
    do {
      response = await ask("GET", path, { signal, patience: 600_000 });
    } while (response.status === 202); // no rows within a minute: it waits, or is slow
    return textOf(response, signal);
  }

  function draw(found) {
    const { columns, rows } = found;
    if (found.returns === "nothing") {
      fill(table);
      say(where, "Done; the statement has no rows.");
    } else {
      fill(table, h("thead", {}, head(columns)), h("tbody", {}, rows.map((row) => h("tr", {},
        row.map((value, i) => h("td", { class: isNumeric(columns[i].type) ? "num" : "" }, cellText(value)))))));
      const last = start + rows.length;
      say(where, rows.length ? `rows ${count(start + 1)} to ${count(last)}${next === null ? ` of ${count(last)}` : ""}` : "no rows");
    }
    before.disabled = start === 0;
    after.disabled = next === null;
    show(before, start > 0 || next !== null);
    show(after, start > 0 || next !== null);
    show(csv, found.returns !== "nothing");
  }

  async function save() {
    try {
      const path = address(`/v1/queries/${encodeURIComponent(query)}/rows`, { format: "csv" });
      const blob = await (await ask("GET", path, { signal, patience: 600_000 })).blob();
      const link = h("a", { href: URL.createObjectURL(blob), download: `${query}.csv` });
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
    } catch (error) {
      failed(error);
    }
  }

  return { node, load };
}

// The newest answer of an online query; its intervals shrink as more of the data is read.
export function answerView() {
  const headline = h("p");
  const table = h("table", { class: "result online" });
  const error = timeChart({ title: "Error", series: [{ name: "largest relative error", kind: "line", class: "c1" }], format: (value) => share(value, value < 0.1 ? 1 : 0), height: 104, relative: true });
  const notes = h("p", { class: "quiet" });
  const node = h("div", {}, headline, error.node, h("div", { class: "table-box" }, table), notes);
  const seen = [];
  const scales = new Map();

  return {
    node,
    set(found) {
      const { answer } = found;
      if (answer === null) return;
      if (answer.error !== null && !seen.some(([at]) => at === answer.elapsed_s)) seen.push([answer.elapsed_s, answer.error]);
      error.set(seen.map(([at]) => at), [seen.map(([, value]) => value)], [0, Math.max(answer.elapsed_s, 0.1)]);
      show(error.node, seen.length > 1);
      const left = answer.exact || answer.eta_s?.exact === null || answer.eta_s?.exact === undefined ? "" : `; exact in about ${seconds(answer.eta_s.exact)}`;
      say(headline, answer.exact
        ? `Exact after ${seconds(answer.elapsed_s)}.`
        : `${share(answer.fraction, 1)} of the data after ${seconds(answer.elapsed_s)}; ${answer.error === null ? "no error known yet" : `error at most ${share(answer.error, 2)}`} at ${share(answer.confidence)} confidence${left}.`);
      drawAnswer(table, answer, scales);
      say(notes, [answer.sample, ...answer.notes].filter(Boolean).join(" · "));
    },
  };
}

const MOST_GROUPS = 200;

function drawAnswer(table, answer, scales) {
  const estimated = answer.columns.map((column) => answer.low[column.name] !== undefined);
  answer.columns.forEach((column, i) => {
    if (estimated[i]) widen(scales, column.name, answer.low[column.name], answer.high[column.name]);
  });
  const titles = answer.columns.flatMap((column, i) => {
    const made = h("th", { scope: "col", class: isNumeric(column.type) ? "num" : "" }, column.name, h("span", {}, column.type));
    return estimated[i] ? [made, h("th", { scope: "col" }, "interval")] : [made];
  });
  const rows = answer.rows.slice(0, MOST_GROUPS).map((row, number) => h("tr", {}, row.flatMap((value, i) => {
    const column = answer.columns[i];
    if (!estimated[i]) return [h("td", { class: isNumeric(column.type) ? "num" : "" }, cellText(value))];
    const low = answer.low[column.name][number];
    const high = answer.high[column.name][number];
    const shown = typeof value === "number" ? significant(value, 6) : cellText(value);
    if (low === null || high === null || low === undefined) return [h("td", { class: "num" }, shown), h("td", { class: "interval" }, answer.exact ? "exact" : MISSING)];
    const [from, to] = scales.get(column.name);
    const half = (high - low) / 2;
    return [
      h("td", { class: "num" }, shown),
      h("td", { class: "interval" }, whisker(low, typeof value === "number" ? value : null, high, from, to), half > 0 ? ` ± ${significant(half, 3)}` : " exact"),
    ];
  })));
  fill(table, h("thead", {}, h("tr", {}, titles)), h("tbody", {}, rows));
  if (answer.rows.length > MOST_GROUPS) table.append(h("caption", {}, `the first ${MOST_GROUPS} of ${several(answer.rows.length, "row")}`));
}

// The scale of a column only grows, so that intervals are seen to shrink.
function widen(scales, name, lows, highs) {
  const known = [...lows, ...highs].filter((value) => value !== null);
  if (!known.length) return;
  const [from, to] = scales.get(name) ?? [Infinity, -Infinity];
  scales.set(name, [Math.min(from, ...known), Math.max(to, ...known)]);
}
