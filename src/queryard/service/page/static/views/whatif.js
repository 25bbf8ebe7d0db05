// What if another policy had been in force: a window of the history, simulated under several.

import { get, insist, post, Problem, remove, repeat } from "../api.js";
import { meter } from "../charts.js";
import { fill, h, say, show } from "../dom.js";
import { bytes, count, factor, seconds, share, significant } from "../format.js";
import { button, choice, dataTable, field, notice, panel } from "../parts.js";
import { PORTFOLIO, portfolioFields } from "../portfolio.js";
import { ends } from "../windows.js";

export const title = "What if";
const WINDOWS = [["300", "5 minutes"], ["900", "15 minutes"], ["3600", "an hour"], ["21600", "6 hours"], ["86400", "a day"], ["own", "from … to …"]];
const USUAL = ["marshal", "fifo", "fair", "swrd", "edf"];
// Key, title, how it is written, and which end is the better one.
const COLUMNS = [
  ["mean_response_s", "Mean response", seconds, Math.min],
  ["p95_response_s", "95 % response", seconds, Math.min],
  ["mean_slowdown", "Mean slowdown", factor, Math.min],
  ["max_slowdown", "Largest slowdown", factor, Math.min],
  ["deadlines_missed", "Deadlines missed", count, Math.min],
  ["makespan_s", "Makespan", seconds, Math.min],
  ["utilisation", "Slots used", (value) => share(value), Math.max],
  ["fairness", "Fairness (Jain)", (value) => significant(value), Math.max],
  ["mean_error_cut_s", "Error −70 %", seconds, Math.min],
  ["scan_bytes_saved", "Scans saved", bytes, Math.max],
];

function isReference(row) {
  return row.kind === "reference";
}

export function mount(root, { signal }) {
  const told = notice();
  const policies = h("div", { class: "policies", role: "group", "aria-label": "Policies", onchange: () => details() });
  const portfolio = portfolioFields();
  show(portfolio.node, false);
  const size = choice("the last", WINDOWS, "900", (value) => show(own, value === "own"));
  const since = field("from", { type: "datetime-local", step: "1" });
  const until = field("to", { type: "datetime-local", step: "1" });
  const own = h("span", { class: "row", hidden: true }, since.node, until.node);
  const slots = field("slots", { class: "short", type: "number", min: "1", placeholder: "as now" });
  const filter = h("input", { type: "search", placeholder: "Filter policies", "aria-label": "Filter policies", oninput: () => sift() });
  const go = button("Compare", () => run(), { class: "main" });
  const stop = button("Stop", () => cancel(), { hidden: true });
  const bar = meter("progress");
  const state = h("span", { class: "quiet" });
  const result = h("section", { class: "panel", hidden: true }, h("h2", {}, "Comparison"));
  const table = h("div");
  const figures = h("div", { class: "figures" });
  result.append(table, figures);
  root.append(
    h("h1", {}, "What if"), told.node,
    panel("A window of the history, under other policies",
      h("div", { class: "row filter-row" }, size.node, own, slots.node, filter),
      policies,
      portfolio.node,
      h("div", { class: "row sql-bar" }, go, stop, bar.node, state)),
    result);
  show(bar.node, false);
  let current = null;
  // The settings of the portfolio in force, if one is.
  let chosenBy = null;

  const asked = () => Promise.all([get("/v1/profiles", { signal }), get("/v1/controls", { signal })]);
  insist(asked, signal).then(([found, controls]) => {
    const inForce = found.current.name;
    chosenBy = controls.portfolio;
    if (chosenBy) portfolio.set(chosenBy);
    const usual = { name: PORTFOLIO, summary: "The policy is chosen again and again, by simulating the queue.", composition: "" };
    const wanted = (profile) => profile.name === inForce || USUAL.includes(profile.name);
    const all = [usual, ...found.profiles.filter((profile) => profile.name !== PORTFOLIO)];
    const order = [...all.filter(wanted), ...all.filter((profile) => !wanted(profile))];
    fill(policies, order.map((profile) => h("label", { title: profile.composition },
      h("input", { type: "checkbox", value: profile.name, checked: wanted(profile) }),
      h("span", {}, h("b", {}, profile.name), profile.name === inForce ? " (in force) " : " ", h("small", {}, profile.summary)))));
    details();
  }).catch(told.error);

  function sift() {
    const wanted = filter.value.trim().toLowerCase();
    for (const label of policies.children) {
      show(label, label.textContent.toLowerCase().includes(wanted) || label.firstChild.checked);
    }
  }

  function chosen() {
    return [...policies.querySelectorAll("input:checked")].map((each) => each.value);
  }

  function details() {
    show(portfolio.node, chosen().includes(PORTFOLIO));
  }

  async function run() {
    const wanted = chosen().map((name) => (name === PORTFOLIO ? portfolio.wanted(chosenBy) : name));
    if (!wanted.length) {
      told.good("Choose at least one policy.");
      return;
    }
    const window_ = size.select.value === "own"
      ? { since: new Date(since.input.value).getTime() / 1000, until: new Date(until.input.value).getTime() / 1000 }
      : ends(size.select.value);
    const body = { ...window_, policies: wanted };
    if (slots.input.value) body.slots = Number(slots.input.value);
    told.clear();
    try {
      const { id } = await post("/v1/whatif", body, { signal });
      watch(id);
    } catch (error) {
      told.error(error);
    }
  }

  function watch(id) {
    current?.leave.abort();
    const leave = new AbortController();
    current = { id, leave };
    busy(true);
    repeat(0.5, async () => {
      const found = await get(`/v1/whatif/${encodeURIComponent(id)}`, { signal });
      bar.set(found.progress);
      say(state, found.state);
      if (found.state === "waiting" || found.state === "running") return;
      leave.abort();
      busy(false);
      if (found.state === "failed") fail(found.error);
      else draw(found);
    }, (error) => {
      told.polled(error);
      if (error?.status) {
        leave.abort();
        busy(false);
      }
    }, AbortSignal.any([signal, leave.signal]));
  }

  function fail(error) {
    told.error(new Problem({ detail: error ?? "It failed." }, 422));
  }

  async function cancel() {
    if (current === null) return;
    current.leave.abort();
    busy(false);
    try {
      await remove(`/v1/whatif/${encodeURIComponent(current.id)}`);
    } catch (error) {
      told.error(error);
    }
  }

  function busy(on) {
    show(stop, on);
    show(bar.node, on);
    if (!on) say(state, "");
    go.disabled = on;
  }

  function draw(found) {
    const rows = found.rows;
    const shown = COLUMNS.filter(([key]) => rows.some((row) => row[key] !== null && row[key] !== undefined && !(key === "scan_bytes_saved" && !row[key])));
    const best = Object.fromEntries(shown.map(([key, , write, better]) => {
      const values = rows.filter((row) => !isReference(row)).map((row) => row[key]).filter((value) => value !== null && value !== undefined);
      const texts = new Set(values.map(write));
      return [key, texts.size > 1 ? write(better(...values)) : null];
    }));
    const made = dataTable([
      { name: "Policy", cell: (row) => (isReference(row) ? h("i", { class: "quiet" }, row.name) : h("b", {}, row.name)) },
      ...shown.map(([key, name, write]) => ({
        name,
        class: "num",
        cell: (row) => (row[key] === null || row[key] === undefined ? "" : write(row[key]) === best[key] && !isReference(row) ? h("b", { class: "good" }, write(row[key])) : write(row[key])),
      })),
    ], { empty: "There was no query in this window.", caption: "Policies compared" });
    made.set(rows);
    fill(table, h("p", {}, found.verdict), made.node, [found.title, found.estimates && `Here ${found.estimates}.`, ...(found.notes ?? [])].filter(Boolean).map((note) => h("p", { class: "quiet" }, note)));
    // Drawings are shown as images, in which no script runs.
    fill(figures, (found.figures ?? []).map((figure) => h("figure", { class: "plain" },
      figure.title === found.title ? null : h("figcaption", {}, figure.title),
      h("img", { alt: figure.title, src: `data:image/svg+xml;charset=utf-8,${encodeURIComponent(figure.svg)}` }))));
    show(result, true);
  }
}
