// What runs and what waits, by tenant, with why and when; the last minutes of slots and queries.

import { remove } from "../api.js";
import { meter, timeChart } from "../charts.js";
import { h, Keyed, say, show, toggle } from "../dom.js";
import { bytes, clock, count, MISSING, moment, seconds, several, share, shortId } from "../format.js";
import { counts, listOnly, live, SHOWN } from "../live.js";
import { button, chip, notice, panel, tile } from "../parts.js";
import { sqlLine } from "../sqltext.js";

export const title = "Now";
const WINDOW_S = 300;
const MOST_TENANTS = 24;

export function mount(root, { signal }) {
  const told = notice();
  const tiles = { slots: tile("Slots busy"), running: tile("Running"), waiting: tile("Waiting"), memory: tile("Memory reserved"), policy: tile("Policy") };
  const slotsMeter = meter("slots");
  const memoryMeter = meter("memory");
  tiles.slots.add(slotsMeter.node);
  tiles.memory.add(memoryMeter.node);
  const slots = timeChart({ title: "Slots", series: [{ name: "busy", kind: "area", class: "c1" }], format: count, whole: true, least: 1 });
  const queue = timeChart({ title: "Queries", series: [{ name: "waiting", kind: "line", class: "c1" }, { name: "running", kind: "line", class: "c2" }], format: count, whole: true, least: 2 });
  const filter = h("input", { type: "search", placeholder: "Filter by text, tenant or id", "aria-label": "Filter queries", oninput: () => draw() });
  const tenants = tenantStrip((name) => {
    filter.value = filter.value === `tenant:${name}` ? "" : `tenant:${name}`;
    draw();
  });
  const cancel = async (id) => {
    try {
      await remove(`/v1/queries/${encodeURIComponent(id)}`, { signal });
      told.good(`Query ${id} is cancelled.`);
    } catch (error) {
      told.error(error);
    }
  };
  const running = queryTable("running", cancel);
  const waiting = queryTable("waiting", cancel);
  const ended = queryTable("ended", null);
  const more = h("p", { class: "quiet", hidden: true });
  const runningTitle = h("h2", {}, "Running");
  const waitingTitle = h("h2", {}, "Waiting");
  root.append(
    h("h1", { class: "unseen" }, "Now"),
    told.node,
    h("div", { class: "tiles" }, Object.values(tiles).map((each) => each.node)),
    h("div", { class: "charts" }, slots.node, queue.node),
    h("div", { class: "row filter-row" }, filter, tenants.node),
    h("section", { class: "panel" }, runningTitle, running.node),
    h("section", { class: "panel" }, waitingTitle, waiting.node, more),
    panel("Ended lately", ended.node));

  function draw() {
    const doc = live.doc;
    if (doc === null) return;
    const now = counts(doc);
    tiles.slots.set(`${now.busy} / ${now.total}`);
    slotsMeter.set(now.total ? now.busy / now.total : 0);
    tiles.running.set(count(now.running));
    tiles.waiting.set(count(now.waiting));
    tiles.memory.set(bytes(doc.memory.reserved_bytes), `of ${bytes(doc.memory.pool_bytes)}`);
    tiles.memory.node.title = `The process has ${bytes(doc.memory.process_bytes)}.`;
    memoryMeter.set(doc.memory.pool_bytes ? doc.memory.reserved_bytes / doc.memory.pool_bytes : 0);
    tiles.policy.set(doc.policy.name, doc.policy.reason || (doc.policy.since_at ? `since ${moment(doc.policy.since_at)}` : ""));
    tiles.policy.node.title = [doc.policy.reason, doc.policy.by && `by ${doc.policy.by}`].filter(Boolean).join("; ");
    const points = live.points;
    const ends = [doc.at - WINDOW_S, doc.at];
    const xs = points.map((point) => point.at);
    slots.set(xs, [points.map((point) => point.busy)], ends);
    queue.set(xs, [points.map((point) => point.waiting), points.map((point) => point.running)], ends);
    const text = filter.value.trim();
    tenants.set(doc.tenants, text);
    const only = tenantMeant(text, doc.tenants);
    listOnly(only);
    if (live.tenant !== null && live.tenant !== only) return; // the lists of others are on their way
    const wanted = wantedBy(text);
    // The server looks through all queries for a tenant; for a text, only those that are here.
    const isPart = text !== "" && live.tenant === null && doc.more_waiting > 0;
    const found = { running: doc.running.filter(wanted), waiting: doc.waiting.filter(wanted), ended: doc.ended.filter(wanted) };
    running.set(found.running.slice(0, SHOWN), doc.at, text ? "No query that runs matches." : "No query runs.");
    waiting.set(found.waiting, doc.at, isPart ? `None of the first ${SHOWN} matches.` : text ? "No query that waits matches." : "No query waits.");
    ended.set(found.ended, doc.at, text ? "None of those that ended last matches." : "None has ended yet.");
    const heading = (name, shown, all) => `${name} · ${text ? `${count(shown)} of ` : ""}${count(all)}`;
    say(runningTitle, heading("Running", found.running.length, now.running));
    say(waitingTitle, heading("Waiting", found.waiting.length + (live.tenant === null ? 0 : doc.more_waiting), now.waiting));
    say(more, `${several(doc.more_waiting, "more query", "more queries")} behind the first ${SHOWN}${isPart ? "; the filter does not look at them" : ""}.`);
    show(more, doc.more_waiting > 0);
  }

  live.addEventListener("now", draw, { signal });
  signal.addEventListener("abort", () => listOnly(null));
  draw();
}

// The tenant that a filter names, if there is such a one; else null.
function tenantMeant(text, tenants) {
  if (!text.startsWith("tenant:")) return null;
  const wanted = text.slice(7).toLowerCase();
  const found = tenants.map((each) => each.name).find((name) => `${name}/`.toLowerCase().startsWith(`${wanted}/`));
  return wanted && found !== undefined ? found.slice(0, wanted.length) : null;
}

// Which queries a filter means: a tenant with those below it, else a text.
function wantedBy(text) {
  const wanted = text.trim().toLowerCase();
  if (!wanted) return () => true;
  if (wanted.startsWith("tenant:")) {
    const tenant = wanted.slice(7);
    return (query) => query.tenant.toLowerCase() === tenant || query.tenant.toLowerCase().startsWith(`${tenant}/`);
  }
  return (query) => [query.sql, query.tenant, query.id].some((each) => each.toLowerCase().includes(wanted));
}

function tenantStrip(choose) {
  const list = h("span", { class: "tenants" });
  const others = h("span", { class: "quiet", hidden: true });
  const node = h("div", { class: "tenants", role: "group", "aria-label": "Tenants" }, list, others);
  const rows = new Keyed(list, (tenant) => {
    const name = h("b", {}, tenant.name);
    const text = h("span", { class: "num" });
    const made = h("button", { type: "button", class: "tenant", onclick: () => choose(tenant.name) }, name, text);
    return { node: made, text };
  }, (row, tenant) => {
    const parts = [tenant.running && `${tenant.running} running`, tenant.waiting && `${tenant.waiting} waiting`, tenant.slots && several(tenant.slots, "slot")];
    say(row.text, parts.filter(Boolean).join(", ") || "idle");
  }, (tenant) => tenant.name);
  return {
    node,
    set(tenants, filter) {
      // The busiest, where there are many; they keep the order of their names.
      const busiest = tenants.length <= MOST_TENANTS ? tenants : [...tenants]
        .sort((a, b) => b.running + b.waiting - a.running - a.waiting).slice(0, MOST_TENANTS)
        .sort((a, b) => (a.name < b.name ? -1 : 1));
      rows.set(busiest);
      say(others, `and ${several(tenants.length - busiest.length, "more tenant")}`);
      show(others, tenants.length > busiest.length);
      for (const [name, row] of rows.rows) {
        const on = filter === `tenant:${name}`;
        toggle(row.node, "on", on);
        row.node.setAttribute("aria-pressed", String(on));
      }
    },
  };
}

const COLUMNS = {
  running: ["Query", "Tenant", "Statement", "Slots", "Progress", "Waited", "Runs for", "Ends in about", "Deadline", ""],
  waiting: ["Query", "Tenant", "Statement", "Why", "Waits for", "Starts in about", "Ends in about", "Work", "Deadline", ""],
  ended: ["Query", "Tenant", "Statement", "Status", "Waited", "Took", "Work", "Predicted"],
};
const NUMBERS = new Set(["Slots", "Waited", "Runs for", "Waits for", "Starts in about", "Ends in about", "Deadline", "Work", "Took", "Predicted"]);

// Rows of queries that are updated in place, so that focus and selections stay.
function queryTable(kind, cancel) {
  const names = COLUMNS[kind];
  const body = h("tbody");
  const head = h("tr", {}, names.map((name) => h("th", { scope: "col", class: `${NUMBERS.has(name) ? "num" : ""} k-${key(name)}` }, name)));
  const table = h("table", { class: `queries ${kind}` }, h("caption", { class: "unseen" }, `Queries ${kind}`), h("thead", {}, head), body);
  const none = h("p", { class: "empty" });
  const rows = new Keyed(body, make, update);
  let now = 0;

  function make(query) {
    const cells = {};
    const href = `#/query/${encodeURIComponent(query.id)}`;
    const node = h("tr", {}, names.map((name) => {
      const cell = h("td", { class: `${NUMBERS.has(name) ? "num" : ""} k-${key(name)}`, "data-name": name });
      cells[name] = cell;
      return cell;
    }));
    cells.Query.append(h("a", { class: "mono", href, title: query.id }, shortId(query.id)));
    say(cells.Tenant, query.tenant);
    const statement = h("a", { class: "sql", href, tabindex: "-1", title: query.sql }, sqlLine(query.sql));
    cells.Statement.append(statement);
    if (kind === "running") {
      const bar = meter("progress");
      const text = h("span", { class: "num" });
      cells.Progress.append(bar.node, text);
      cells.bar = bar;
      cells.percent = text;
    }
    if (kind === "ended") cells.Status.append(chip(query.status));
    if (cancel) {
      cells[""].append(button("Cancel", async (event) => {
        event.target.disabled = true;
        await cancel(query.id);
        event.target.disabled = false;
      }, { class: "quiet small", "aria-label": `Cancel query ${query.id}` }));
    }
    return { node, cells };
  }

  function update(row, query) {
    const { cells } = row;
    const put = (name, text) => cells[name] && say(cells[name], text);
    const end = query.ended_at ?? now;
    const began = query.started_at;
    put("Slots", query.slots);
    put("Waited", seconds(query.waited_s));
    put("Waits for", seconds(query.waited_s));
    put("Runs for", began === null ? MISSING : seconds(Math.max(0, now - began)));
    put("Starts in about", seconds(query.starts_in_s));
    put("Ends in about", seconds(query.eta_s));
    put("Work", kind === "ended" ? seconds(query.work_s) : seconds(query.predicted_work_s));
    put("Predicted", seconds(query.predicted_work_s));
    put("Took", took(query, end));
    if (kind === "waiting") {
      put("Why", query.why);
      cells.Why.title = query.why ?? "";
    }
    if (cells.Deadline) {
      const left = query.deadline_at === null ? null : query.deadline_at - now;
      put("Deadline", left === null ? "" : left < 0 ? `late ${seconds(-left)}` : `in ${seconds(left)}`);
      toggle(cells.Deadline, "bad", left !== null && (left < 0 || (query.eta_s !== null && query.eta_s > left)));
      if (query.deadline_at !== null) cells.Deadline.title = clock(query.deadline_at);
    }
    if (kind === "running") {
      cells.bar.set(query.progress);
      say(cells.percent, share(query.progress));
      cells.Statement.firstChild.title = `${query.sql}\n\n${query.why ?? ""}`;
    }
  }

  return {
    node: h("div", { class: "table-box" }, table, none),
    set(queries, at, empty) {
      now = at;
      say(none, empty);
      show(none, queries.length === 0);
      show(table, queries.length > 0);
      rows.set(queries);
    },
  };
}

function key(name) {
  return name.toLowerCase().replace(/\W+/g, "-") || "act";
}

function took(query, end) {
  if (query.response_s !== undefined && query.response_s !== null) return seconds(query.response_s);
  if (query.submitted_at === null || query.submitted_at === undefined) return MISSING;
  return seconds(Math.max(0, end - query.submitted_at));
}
