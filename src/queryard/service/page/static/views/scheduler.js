// The policy in force, how it came about, and decisions with their candidates.

import { get, repeat } from "../api.js";
import { h, show } from "../dom.js";
import { factor, measured, moment, seconds, several, significant, titled } from "../format.js";
import { dataTable, notice, panel, tile } from "../parts.js";

export const title = "Scheduler";

export function mount(root, { signal }) {
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
    { name: "By", cell: (each) => each.by ?? "" },
    { name: "Reason", cell: (each) => each.reason ?? "" },
  ], { empty: "The policy has not changed since the server started.", caption: "Changes of the policy" });
  const decisions = h("div");
  const none = h("p", { class: "empty" }, "Only a portfolio makes decisions, and none was in force since the server began. Admins choose one under Controls.");
  root.append(
    h("h1", {}, "Scheduler"), told.node,
    h("div", { class: "tiles" }, [policy, since, by, decided].map((each) => each.node)),
    panel("Decisions", none, decisions),
    profilePanel,
    panel("History of the policy", changes.node));
  const opened = new Set();
  let seen = "";
  repeat(2, async () => {
    const found = await get("/v1/scheduler", { signal });
    const goal = found.portfolio?.objective;
    policy.set(found.policy.name, goal ? `of a portfolio for ${typeof goal === "string" ? goal : JSON.stringify(goal)}` : found.policy.reason ?? "");
    since.set(found.policy.since_at ? moment(found.policy.since_at) : "the start");
    by.set(found.policy.by || "the settings");
    decided.set(String(found.decisions.length));
    changes.set(found.changes);
    const text = found.profile && Object.keys(found.profile).length ? JSON.stringify(found.profile, null, 2) : "";
    if (profile.textContent !== text) profile.textContent = text;
    show(profilePanel, Boolean(text));
    show(none, found.decisions.length === 0);
    // Drawn anew only if there is something new, so that what is open stays where it is.
    const newest = JSON.stringify(found.decisions.map((each) => [each.at, each.outcome]));
    if (newest === seen) return;
    seen = newest;
    const latest = [...found.decisions].sort((a, b) => b.at - a.at);
    decisions.replaceChildren(...latest.slice(0, 100).map((each, i) => decision(each, opened, i === 0)));
  }, told.polled, signal);
}

function decision(each, opened, isFirst) {
  const key = String(each.number ?? each.at);
  // The reason begins with the name of the one that was chosen.
  const words = each.dropped ?? each.reason;
  const reason = words.startsWith(`${each.chosen} `) ? words.slice(each.chosen.length) : ` ${words}`;
  const choose = () => (opened.has(key) ? opened.delete(key) : opened.add(key));
  const details = h("details", { open: opened.has(key) || isFirst },
    h("summary", { onclick: choose },
      h("span", { class: "quiet" }, `${moment(each.at)} `),
      h("b", {}, each.chosen), `${reason} `,
      h("span", { class: "quiet" }, [each.trigger, each.waiting != null ? `${each.waiting} waiting` : null, each.took_s != null ? `took ${seconds(each.took_s)}` : null, each.cpu_s ? `processor ${seconds(each.cpu_s)}` : null, each.remembered ? "remembered" : null].filter(Boolean).join(", "))));
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
  details.append(table.node);
  if (each.outcome) {
    const { forecast, observed, queries, error } = each.outcome;
    details.append(h("p", { class: "quiet" }, `Forecast ${significant(forecast)}, observed ${significant(observed)} over ${several(queries, "query", "queries")}: off by ${factor(error)}.`));
  } else if (each.forecast !== null) details.append(h("p", { class: "quiet" }, `Forecast ${significant(each.forecast)}; the outcome is not known yet.`));
  return details;
}
