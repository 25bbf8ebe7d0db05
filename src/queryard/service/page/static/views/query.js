// One query: when it waited and ran, on what, what was predicted, its plan and provisional answers.

import { events, get, Lost, Problem, remove, repeat } from "../api.js";
import { bars, ganttChart, meter, timeChart } from "../charts.js";
import { fill, h, s, say, show } from "../dom.js";
import { measured, moment, seconds, several, share, titled } from "../format.js";
import { live } from "../live.js";
import { button, chip, confirmed, dataTable, facts, notice, panel, queryLink } from "../parts.js";
import { answerView } from "../results.js";
import { sqlBlock } from "../sqltext.js";

export const title = "Query";
const EVERY_S = 1;
// What is predicted and what came, in this order.
const NAMES = {
  work_s: "Work, core-seconds",
  by: "predicted from",
  last_work_s: "predicted last",
  last_by: "predicted last from",
  start_s: "Start after",
  end_s: "End after",
  held_s: "Slots held, slot-seconds",
  memory_bytes: "Memory",
  rows: "Rows",
};

export function mount(root, { argument: id, signal }) {
  const told = notice();
  const path = `/v1/queries/${encodeURIComponent(id)}`;
  const head = h("div", { class: "row" });
  const statement = h("div");
  const times = h("div");
  const bar = meter("progress");
  const why = h("p", { class: "why" });
  const gantt = ganttChart();
  const waits = dataTable([
    { name: "Reason", cell: (each) => each.reason },
    { name: "For", class: "num", cell: (each) => seconds(each.s) },
  ], { empty: "It has waited for nothing.", caption: "What it waited for" });
  const rides = h("p");
  const work = h("div");
  const compared = dataTable([
    { name: "", cell: (each) => NAMES[each.name] ?? titled(each.name) },
    { name: "Predicted", class: "num", cell: (each) => (each.predicted == null ? "" : measured(each.name, each.predicted)) },
    { name: "Actual", class: "num", cell: (each) => (each.actual == null ? "" : measured(each.name, each.actual)) },
  ], { empty: "Nothing was predicted." });
  const plan = h("pre", { class: "plan", tabindex: "0", "aria-label": "Plan" });
  const error = h("p", { class: "notice bad", hidden: true });
  const errors = timeChart({ title: "Error of the answers", series: [{ name: "largest relative error", kind: "line", class: "c1" }, { name: "data read", kind: "line", class: "c2" }], format: (value) => share(value, value < 0.1 ? 1 : 0), height: 140, relative: true });
  const newest = answerView();
  const answers = h("section", { class: "panel", hidden: true }, h("h2", {}, "Provisional answers"), h("div", { class: "plain" }, errors.node), newest.node);
  show(newest.node, false);
  const cancel = button("Cancel", stop, { hidden: true, class: "danger" });
  const operators = button("Operators, with what came of them", () => loadPlan(), { class: "small" });
  const planPanel = panel("Plan", plan, h("p", {}, operators));
  root.append(
    h("div", { class: "row" }, h("h1", { class: "grow mono" }, id), cancel),
    told.node, error,
    h("section", { class: "panel" }, head, statement, times),
    h("section", { class: "panel" }, h("h2", {}, "Timeline"), gantt.node, legend(), why, rides),
    answers,
    h("div", { class: "panels" },
      panel("What it waited for", waits.node),
      panel("Predicted against actual", work, compared.node)),
    planPanel);

  async function stop() {
    if (!(await confirmed(`Cancel query ${id}?`, "Cancel it"))) return;
    try {
      await remove(path, { signal });
      told.good("The query is cancelled.");
    } catch (problem) {
      told.error(problem);
    }
  }

  // The plan of the engine is made anew, so it is asked for on demand only.
  async function loadPlan() {
    operators.disabled = true;
    try {
      const found = await get(`${path}/plan`, { signal, patience: 60_000 });
      own = found.text ?? "It has no plan.";
      say(plan, own);
      show(operators, false);
    } catch (problem) {
      operators.disabled = false;
      told.error(problem);
    }
  }

  let own = null;
  let following = false;
  const leave = new AbortController();
  const both = AbortSignal.any([signal, leave.signal]);
  repeat(EVERY_S, async () => {
    const line = await get(`${path}/timeline`, { signal: both });
    const active = line.status === "waiting" || line.status === "running";
    const state = active ? await stateOf(path, both) : null;
    draw(line, state, active);
    if (line.answers?.length && active && !following) {
      following = true;
      followAnswers();
    }
    if (!active) leave.abort();
  }, told.polled, both);

  function showAnswer(answer) {
    show(newest.node, true);
    newest.set({ answer });
  }

  async function followAnswers() {
    try {
      await events(`${path}/answers`, (name, found) => {
        if (found.answer) showAnswer(found.answer);
      }, signal);
    } catch (problem) {
      // Else its answers go to another connection; the errors of all are in the chart.
      if (problem instanceof Lost) following = false;
    }
  }

  function draw(line, state, active) {
    fill(head, chip(line.status), h("span", {}, "tenant ", h("b", {}, line.tenant)), state ? h("span", { class: "quiet" }, `${state.protocol}, token ${state.token}`) : null, active ? bar.node : null);
    bar.set(state?.progress ?? 0);
    if (!statement.firstChild || statement.textContent !== line.sql) fill(statement, sqlBlock(line.sql));
    const end = line.ended_at ?? null;
    const expected = (active && expectedOf(id)) || expectedBy(state);
    fill(times, facts([
      ["Submitted", moment(line.submitted_at)],
      ["Started", line.started_at === null ? null : moment(line.started_at)],
      ["Ended", end === null ? null : moment(end)],
      ["Waited", line.started_at === null ? null : seconds(line.started_at - line.submitted_at)],
      ["Deadline", line.deadline_at ? moment(line.deadline_at) : null],
      ["Response", end === null ? null : seconds(end - line.submitted_at)],
      ["Starts in about", active ? inSeconds(expected.starts_in_s) : null],
      ["Ends in about", active ? inSeconds(expected.eta_s) : null],
    ]));
    const segments = line.segments;
    const from = Math.min(0, ...segments.map((each) => each.from_s));
    const to = Math.max(0.001, ...segments.map((each) => each.to_s));
    gantt.set(segments, from, to);
    say(why, active ? state?.why?.text ?? "" : "");
    drawCompany(line);
    waits.set(line.waits);
    drawCompared(line);
    say(plan, own ?? line.plan ?? "");
    show(operators, line.has_operators && own === null);
    show(planPanel, Boolean(line.plan) || line.has_operators);
    drawAnswers(line.answers ?? []);
    if (line.last_answer) showAnswer(line.last_answer);
    const problem = state?.error?.detail ?? line.error ?? null;
    say(error, problem ?? "");
    show(error, Boolean(problem));
    show(cancel, active);
  }

  // Queries that shared its scans or its execution; those of other tenants are counted.
  function drawCompany(line) {
    const seen = line.rode_with.slice(0, 20).flatMap((each, i) => [i ? ", " : "", queryLink(each)]);
    const others = line.rode_with.length - Math.min(20, line.rode_with.length) + (line.rode_with_others ?? 0);
    show(rides, seen.length > 0 || others > 0);
    fill(rides, "Its work was shared with ", seen, others ? `${seen.length ? " and " : ""}${several(others, "other query", "other queries")}` : "", ".");
  }

  function drawCompared(line) {
    const predicted = line.predicted ?? {};
    const actual = line.actual ?? {};
    const names = [...new Set([...Object.keys(NAMES), ...Object.keys(predicted), ...Object.keys(actual)])];
    compared.set(names.filter((name) => predicted[name] != null || actual[name] != null)
      .map((name) => ({ name, predicted: predicted[name], actual: actual[name] })));
    const pairs = [{ name: "predicted", value: predicted.work_s }, { name: "actual", value: actual.work_s }];
    fill(work, pairs.every((each) => typeof each.value === "number") ? bars(pairs, seconds) : null);
  }

  function drawAnswers(found) {
    show(answers, found.length > 0);
    if (!found.length) return;
    errors.set(found.map((each) => each.elapsed_s), [found.map((each) => each.error), found.map((each) => each.fraction)], [0, found.at(-1).elapsed_s || 1]);
  }
}

function legend() {
  const kinds = [["waiting", "waits for its first slot"], ["paused", "has begun, and has no slots"], ["lease", "has slots: the higher, the more"], ["task", "tasks"], ["ride", "rides on a scan of others"]];
  return h("p", { class: "legend" }, kinds.map(([kind, text]) => h("span", { class: "key" }, s("svg", { class: "legend-mark", viewBox: "0 0 10 10" }, s("rect", { class: `segment ${kind}`, x: 0.5, y: 0.5, width: 9, height: 9, rx: 2 })), text)));
}

// When a query of the list of now is expected to start and to end.
function expectedOf(id) {
  return [...(live.doc?.running ?? []), ...(live.doc?.waiting ?? [])].find((each) => each.id === id);
}

// The same of a query that is not in the list, by its own forecast.
function expectedBy(state) {
  const { start_s: start, end_s: end } = state?.why?.forecast ?? {};
  const left = (at) => (at == null || at < state.now_s ? null : at - state.now_s);
  return { starts_in_s: state?.state === "waiting" ? left(start) : null, eta_s: left(end) };
}

function inSeconds(value) {
  return value == null ? null : seconds(value);
}

// What the scheduler says of it; null where it is not kept any more.
async function stateOf(path, signal) {
  try {
    return await get(path, { signal });
  } catch (error) {
    if (error instanceof Problem && error.status === 404) return null;
    throw error;
  }
}
