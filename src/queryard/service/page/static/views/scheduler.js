// The policy in force, how it came about, and decisions with their candidates.

import { address, get, repeat } from "../api.js";
import { fill, h, Keyed, keepingFocus, say, show } from "../dom.js";
import { count, factor, measured, moment, seconds, several, share, significant, titled } from "../format.js";
import { dataTable, notice, panel, tile } from "../parts.js";

export const title = "Scheduler";
const ASKED = 100;

export function mount(root, { signal, isAdmin }) {
  const told = notice();
  const policy = tile("Policy in force");
  const since = tile("Since");
  const by = tile("Chosen by");
  const decided = tile("Decisions of the portfolio");
  const profile = h("pre", { class: "plan", tabindex: "0", "aria-label": "Profile" });
  const profilePanel = h("details", { class: "panel" }, h("summary", {}, "The profile in force, as a document"), profile);
  const changes = dataTable([
    { name: "When", cell: (each) => moment(each.at) },
    { name: "From", cell: (each) => each.from ?? "" },
    { name: "To", cell: (each) => h("b", {}, each.to) },
    ...(isAdmin ? [
      { name: "By", cell: (each) => each.by ?? "" },
      { name: "Reason", cell: (each) => each.reason ?? "" },
    ] : []),
  ], { empty: "The policy has not changed since the server started.", caption: "Changes of the policy" });
  const decisions = h("div");
  const none = h("p", { class: "empty" });
  // What has chosen a policy, and why, may name tenants.
  const tiles = isAdmin ? [policy, since, by, decided] : [policy, since];
  root.append(
    h("h1", {}, "Scheduler"), told.node,
    h("div", { class: "tiles" }, tiles.map((each) => each.node)),
    panel("Decisions", none, decisions),
    profilePanel,
    panel("History of the policy", changes.node));
  const rows = new Keyed(decisions, made, update, (each) => each.at);
  let newest = null;

  function made() {
    const row = { node: h("details", { onclick: () => (row.isTouched = true) }), text: "", isTouched: false };
    return row;
  }

  // The newest is open, and others that were opened stay so.
  function update(row, each, index) {
    const text = JSON.stringify(each);
    if (text !== row.text) drawDecision(row.node, each);
    row.text = text;
    if (index > 0 || row === newest) return;
    if (newest !== null && !newest.isTouched) newest.node.open = false;
    newest = row;
    row.node.open = true;
  }

  repeat(2, async () => {
    const found = await get(address("/v1/scheduler", { limit: ASKED }), { signal });
    const goal = found.portfolio?.objective;
    policy.set(found.policy.name, goal ? `of a portfolio for ${typeof goal === "string" ? goal : JSON.stringify(goal)}` : found.policy.reason ?? "");
    since.set(found.policy.since_at ? moment(found.policy.since_at) : "the start");
    by.set(found.policy.by || "the settings");
    const known = found.decisions.length;
    decided.set(numberOf(found), known < ASKED ? "" : `the last ${ASKED} are listed`);
    changes.set(found.changes);
    const text = found.profile && Object.keys(found.profile).length ? JSON.stringify(found.profile, null, 2) : "";
    if (profile.textContent !== text) profile.textContent = text;
    show(profilePanel, Boolean(text));
    say(none, nothing(isAdmin, found.portfolio));
    show(none, known === 0);
    rows.set([...found.decisions].sort((a, b) => b.at - a.at));
  }, told.polled, signal);
}

// How many decisions there were: those that are listed, or as many as a portfolio that has made more
// has numbered.
function numberOf(found) {
  const known = found.decisions.length;
  if (known < ASKED) return count(known);
  const numbered = Math.max(...found.decisions.map((each) => each.number ?? 0));
  return numbered > known ? count(numbered) : `${count(known)} or more`;
}

// Why there are no decisions to see.
function nothing(isAdmin, portfolio) {
  if (!isAdmin) return "What a portfolio decides, and why, is told to admins.";
  if (portfolio) return "The portfolio has decided nothing yet: no two queries were there together.";
  return "Only a portfolio makes decisions, and none was in force since the server began. Choose one under Controls.";
}

function drawDecision(details, each) {
  // The reason begins with the name of the one that was chosen.
  const words = each.dropped ?? each.reason;
  const reason = words.startsWith(`${each.chosen} `) ? words.slice(each.chosen.length) : ` ${words}`;
  const summary = h("summary", {},
    h("span", { class: "quiet" }, `${moment(each.at)} `),
    h("b", {}, each.chosen), `${reason} `,
    h("span", { class: "quiet" }, [each.trigger, each.waiting != null ? `${each.waiting} waiting` : null, each.took_s != null ? `took ${seconds(each.took_s)}` : null, each.cpu_s ? `processor ${seconds(each.cpu_s)}` : null, each.remembered ? "remembered" : null].filter(Boolean).join(", ")));
  const candidates = each.candidates ?? [];
  const objectives = [...new Set(candidates.flatMap((candidate) => Object.keys(candidate.objectives ?? {})))];
  const corrected = candidates.some((candidate) => (candidate.correction ?? 1) !== 1);
  const dropped = candidates.some((candidate) => candidate.dropped);
  const table = dataTable([
    { name: "Candidate", cell: (candidate) => candidate.name },
    { name: "Score", class: "num", cell: (candidate) => (candidate.score == null ? "" : significant(candidate.score, 4)) },
    ...objectives.map((name) => ({ name: titled(name), class: "num", cell: (candidate) => (candidate.objectives?.[name] == null ? "" : measured(name, candidate.objectives[name])) })),
    ...(corrected ? [{ name: "Correction", class: "num", title: "what forecasts of this candidate were worth so far", cell: (candidate) => factor(candidate.correction) }] : []),
    ...(dropped ? [{ name: "Dropped", cell: (candidate) => candidate.dropped ?? "" }] : []),
  ], { empty: "No candidate was simulated.", onRow: (row, candidate) => candidate.name === each.chosen && row.classList.add("chosen") });
  table.set(candidates);
  const notes = [];
  if (each.outcome) {
    const { forecast, observed, queries, error } = each.outcome;
    notes.push(`Forecast ${significant(forecast)}, observed ${significant(observed)} over ${several(queries, "query", "queries")}: ${share(Math.abs(error))} ${error > 0 ? "worse" : "better"} than forecast.`);
  } else if (each.forecast !== null) notes.push(`Forecast ${significant(each.forecast)}; the outcome is not known yet.`);
  keepingFocus(details, () => fill(details, summary, table.node, notes.map((note) => h("p", { class: "quiet" }, note))), () => summary);
}
