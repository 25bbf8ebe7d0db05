// Statements: written, run, watched, cancelled; their rows and provisional answers.

import { events, get, insist, Lost, post, Problem, remove } from "../api.js";
import { meter } from "../charts.js";
import { fill, h, say, show } from "../dom.js";
import { bytes, count, seconds, several, share } from "../format.js";
import { button, choice, field, notice, queryLink } from "../parts.js";
import { answerView, rowsView } from "../results.js";
import { statementSession } from "../session.js";
import { editor } from "../sqltext.js";

export const title = "SQL";
const DRAFT = "queryard.sql";
const PAST = "queryard.statements";
const PAST_KEPT = 30;

export function mount(root, { signal }) {
  const told = notice();
  const result = h("div", { class: "panel", hidden: true });
  const session = statementSession(told, signal);
  let current = null;

  const write = editor(sessionStorage.getItem(DRAFT) ?? "", {
    run: () => run(),
    cancel: () => stop(),
    changed: (text) => sessionStorage.setItem(DRAFT, text),
  });
  const online = h("input", { type: "checkbox" });
  const stopAt = choice("stop at", [["", "exact"], ["0.05", "5 %"], ["0.02", "2 %"], ["0.01", "1 %"], ["0.001", "0.1 %"]], "");
  const deadline = field("deadline", { class: "short", placeholder: "10 s", "aria-label": "Deadline" });
  const plan = choice("plan", ["auto", "native", "staged"], "auto");
  const go = button("Run", () => run(), { class: "main", title: "Ctrl+Enter" });
  const cancel = button("Cancel", () => stop(), { title: "Ctrl+.", hidden: true });
  const past = choice("", [["", "Earlier …"]], "", (value) => {
    const found = statements()[Number(value)];
    if (found !== undefined) write.value = found;
    past.select.value = "";
  });
  past.select.setAttribute("aria-label", "Earlier statements");
  drawPast();

  root.append(
    h("h1", { class: "unseen" }, "SQL"),
    h("div", { class: "sql-page" },
      tableList((name) => write.insert(name), (sql) => {
        write.value = sql;
        run();
      }, signal),
      h("div", {},
        write.node,
        h("div", { class: "row sql-bar" },
          go, cancel,
          h("label", { class: "check", title: "Answer early and often, with intervals" }, online, "online"), stopAt.node,
          deadline.node, plan.node, session.node,
          h("span", { class: "grow" }),
          button("Explain", () => look("explain"), { class: "quiet" }),
          button("Estimate", () => look("estimate"), { class: "quiet" }),
          past.node),
        told.node, result)));
  if (matchMedia("(min-width: 761px)").matches) write.area.focus();

  function statements() {
    return JSON.parse(sessionStorage.getItem(PAST) ?? "[]");
  }

  function remember(sql) {
    const kept = [sql, ...statements().filter((each) => each !== sql)].slice(0, PAST_KEPT);
    sessionStorage.setItem(PAST, JSON.stringify(kept));
    drawPast();
  }

  function drawPast() {
    fill(past.select, h("option", { value: "" }, "Earlier …"),
      statements().map((sql, i) => h("option", { value: String(i) }, sql.replace(/\s+/g, " ").slice(0, 80))));
  }

  function body() {
    const sql = write.wanted;
    if (!sql) {
      told.good("Write a statement first.");
      return null;
    }
    return { sql, plan: plan.select.value === "auto" ? undefined : plan.select.value };
  }

  // --- running -----------------------------------------------------------------------------------

  async function run() {
    const wanted = body();
    if (wanted === null) return;
    current?.leave.abort();
    if (online.checked) wanted.online = { every: 0.1, ...(stopAt.select.value ? { stop_at: Number(stopAt.select.value) } : {}) };
    if (deadline.input.value.trim()) wanted.deadline = deadline.input.value.trim();
    // With a key, a statement that is sent again after a lost connection runs once.
    wanted.idempotency_key = `page-${[...crypto.getRandomValues(new Uint32Array(4))].join("-")}`;
    told.clear();
    remember(wanted.sql);
    const leave = new AbortController();
    const mine = (current = { leave, id: null });
    const both = AbortSignal.any([signal, leave.signal]);
    busy(true);
    try {
      const state = await session.within((named) => insist(() => post("/v1/queries", { ...wanted, ...named }, { signal: both }), both), both);
      mine.id = state.id;
      await watch(state, both);
    } catch (error) {
      if (!both.aborted) failed(error);
    } finally {
      if (current === mine) busy(false);
    }
  }

  function failed(error) {
    if (error instanceof Problem && error.line) {
      told.error(new Problem({ detail: `Line ${error.line}: ${error.message}` }, error.status));
    } else told.error(error);
  }

  function busy(on) {
    show(cancel, on);
  }

  async function stop() {
    const id = current?.id ?? null;
    if (id === null) return;
    try {
      await insist(() => remove(`/v1/queries/${encodeURIComponent(id)}`), signal);
    } catch (error) {
      told.error(error);
    }
  }

  // Progress, then rows; of an online query each answer as it comes.
  async function watch(state, leave) {
    const line = h("span", { class: "grow quiet" });
    const bar = meter("progress");
    fill(result, h("div", { class: "row" }, queryLink(state.id, state.id), line, bar.node));
    show(result, true);
    const path = `/v1/queries/${encodeURIComponent(state.id)}`;
    if (state.online) watchAnswers(path, leave);
    else rows(state.id, leave); // read while it runs: a query whose rows are not read pauses
    let last = null;
    try {
      await toTheEnd(`${path}/events`, (name, found) => {
        if (!found.timing) return; // the token was revoked
        last = found;
        drawState(line, bar, found);
      }, leave);
    } catch (error) {
      say(line, "What became of it is not known.");
      throw error;
    } finally {
      show(bar.node, false);
    }
    if (last?.error) {
      const { detail, line: at } = last.error;
      if (last.state === "cancelled") told.good("The query is cancelled.");
      else failed(new Problem({ detail, line: at }, 422));
    }
  }

  // The events of a query until its end, however often the connection is lost meanwhile.
  async function toTheEnd(path, heed, leave) {
    let isOver = false;
    await insist(async () => {
      await events(path, (name, found) => {
        isOver ||= name === "end";
        heed(name, found);
      }, leave);
      if (!isOver) throw new Lost("the events end before the query does");
    }, leave);
  }

  async function rows(id, leave) {
    // The state of the query tells its own errors.
    const view = rowsView(id, leave, (error) => error.query !== id && failed(error));
    result.append(view.node);
    await view.load(0);
  }

  async function watchAnswers(path, leave) {
    const view = answerView();
    result.append(view.node);
    show(view.node, false);
    try {
      await toTheEnd(`${path}/answers`, (name, found) => {
        if (found.answer) show(view.node, true);
        if (found.answer !== undefined) view.set(found);
        if (name === "end" && found.in_rows) {
          if (found.reason) told.good(`It ran exactly: ${found.reason}`);
          rows(found.query, leave);
          show(view.node, false);
        }
      }, leave);
    } catch (error) {
      if (!leave.aborted) told.error(error);
    }
  }

  // --- looking -----------------------------------------------------------------------------------

  async function look(what) {
    const wanted = body();
    if (wanted === null) return;
    told.clear();
    try {
      const found = await session.within((named) => post(`/v1/${what}`, { ...wanted, ...named }, { signal, patience: 60_000 }), signal);
      fill(result, h("pre", { class: "plan", tabindex: "0" }, found.text));
      show(result, true);
    } catch (error) {
      failed(error);
    }
  }
}

function drawState(line, bar, found) {
  const { timing } = found;
  const began = timing.started_s ?? found.now_s;
  const end = timing.ended_s ?? found.now_s;
  const words = {
    waiting: found.why?.reasons?.[0] ?? "waits",
    running: `runs, ${share(found.progress)}`,
    finished: `finished in ${seconds(end - timing.submitted_s)} (waited ${seconds(began - timing.submitted_s)}, work ${seconds(timing.work_s)})`,
  };
  say(line, words[found.state] ?? found.state);
  bar.set(found.progress);
}

// The tables with their columns; a name that is chosen goes into the statement.
function tableList(insert, run, signal) {
  const list = h("div");
  const filter = h("input", { type: "search", placeholder: "Tables and columns", "aria-label": "Filter tables", oninput: () => draw() });
  let tables = [];

  function draw() {
    const wanted = filter.value.trim().toLowerCase();
    const found = tables.filter((table) => table.name.toLowerCase().includes(wanted)
      || (table.columns ?? []).some((column) => column.name.toLowerCase().includes(wanted)));
    fill(list, found.length ? found.map((table) => entry(table, wanted)) : h("p", { class: "empty" }, "No such table."));
  }

  function entry(table, wanted) {
    const columns = table.columns ?? [];
    const size = table.rows === null ? bytes(table.bytes) : several(table.rows, "row");
    return h("details", { open: Boolean(wanted) && found(columns, wanted) },
      h("summary", { title: `${table.kind}, ${bytes(table.bytes)}, ${size}` },
        h("span", { class: "grow" }, table.name), h("span", { class: "quiet" }, table.rows === null ? "" : count(table.rows))),
      table.error ? h("p", { class: "bad" }, table.error) : null,
      h("ul", {},
        h("li", {},
          h("button", { type: "button", onclick: () => insert(quoted(table.name)) }, "insert name"),
          h("button", { type: "button", onclick: () => run(`SELECT *\nFROM ${quoted(table.name)}\nLIMIT 100`) }, "first rows")),
        columns.map((column) => h("li", {},
          h("button", { type: "button", title: "insert", onclick: () => insert(quotedPart(column.name)) }, column.name), h("span", {}, column.type)))));
  }

  insist(() => get("/v1/tables", { signal }), signal).then((answer) => {
    tables = answer.tables;
    draw();
  }).catch((error) => {
    if (!signal.aborted) fill(list, h("p", { class: "bad" }, error.message));
  });
  return h("aside", { class: "panel tables-list", "aria-label": "Tables" }, filter, list);
}

function found(columns, wanted) {
  return columns.some((column) => column.name.toLowerCase().includes(wanted));
}

function quotedPart(name) {
  return /^[a-z_][a-z0-9_]*$/.test(name) ? name : `"${name.replaceAll('"', '""')}"`;
}

function quoted(name) {
  return name.split(".").map(quotedPart).join(".");
}
