// The policy in force, how it came about, and decisions with their candidates.

import { get, repeat } from "../api.js";
import { h, show } from "../dom.js";
import { factor, measured, moment, plain, seconds, significant, titled } from "../format.js";
import { dataTable, notice, panel, tile } from "../parts.js";

export const title = "Scheduler";

export function mount(root, { signal }) {
  const told = notice();
  const policy = tile("Policy in force");
  const since = tile("Since");
  const by = tile("Chosen by");
  const decided = tile("Decisions of the portfolio");
  const profile = h("pre", { class: "plan", tabindex: "0", "aria-label": "Profile" });
  const profilePanel = panel("Profile", profile);
  const changes = dataTable([
    { name: "When", cell: (each) => moment(each.at) },
    { name: "From", cell: (each) => each.from ?? "" },
    { name: "To", cell: (each) => h("b", {}, each.to) },
    { name: "By", cell: (each) => each.by ?? "" },
    { name: "Reason", cell: (each) => each.reason ?? "" },
  ], { empty: "The policy has not changed since the server started.", caption: "Changes of the policy" });
  const decisions = h("div");
  const none = h("p", { class: "empty" }, "The portfolio makes decisions; it is not in force. An admin can choose it under Controls.");
  root.append(
    h("h1", {}, "Scheduler"), told.node,
    h("div", { class: "tiles" }, [policy, since, by, decided].map((each) => each.node)),
    panel("Decisions", none, decisions),
    panel("History of the policy", changes.node),
    profilePanel);
  const opened = new Set();
  let seen = "";
  repeat(2, async () => {
    const found = await get("/v1/scheduler", { signal });
    policy.set(found.policy.name, found.policy.reason ?? "");
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
  }, told.error, signal);
}

function decision(each, opened, isFirst) {
  const key = String(each.at);
  const details = h("details", { open: opened.has(key) || isFirst },
    h("summary", {},
      h("span", { class: "quiet" }, `${moment(each.at)} `),
      h("b", {}, each.chosen ?? "no change"), ` ${each.reason ?? ""} `,
      h("span", { class: "quiet" }, [each.trigger, each.waiting != null ? `${each.waiting} waiting` : null, each.took_s != null ? `took ${seconds(each.took_s)}` : null, each.remembered ? "remembered" : null].filter(Boolean).join(", "))));
  details.addEventListener("toggle", () => (details.open ? opened.add(key) : opened.delete(key)));
  const candidates = each.candidates ?? [];
  const objectives = [...new Set(candidates.flatMap((candidate) => Object.keys(candidate.objectives ?? {})))];
  const table = dataTable([
    { name: "Candidate", cell: (candidate) => candidate.name },
    { name: "Score", class: "num", cell: (candidate) => (candidate.score == null ? "" : significant(candidate.score, 4)) },
    ...objectives.map((name) => ({ name: titled(name), class: "num", cell: (candidate) => (candidate.objectives?.[name] == null ? "" : measured(name, candidate.objectives[name])) })),
    { name: "Dropped", cell: (candidate) => candidate.dropped ?? "" },
  ], { empty: "No candidate was simulated.", onRow: (row, candidate) => candidate.name === each.chosen && row.classList.add("chosen") });
  table.set(candidates);
  details.append(table.node);
  const told = [["forecast", each.forecast], ["outcome", each.outcome]].filter(([, value]) => value !== null && value !== undefined);
  if (told.length) details.append(h("p", { class: "quiet" }, told.map(([name, value]) => `${name}: ${words(value)}`).join("; ")));
  return details;
}

function words(value) {
  if (value === null || typeof value !== "object") return plain(value);
  return Object.entries(value).map(([name, each]) => `${titled(name)} ${name.endsWith("ratio") ? factor(each) : measured(name, each)}`).join(", ");
}
