// The settings of a portfolio: what it is for, and among which policies it chooses.

import { h, show } from "./dom.js";
import { choice, field } from "./parts.js";

export const PORTFOLIO = "portfolio";
const OBJECTIVES = ["small queries fast", "deadlines first", "early answers", "fair to tenants", "throughput", "low cost"];

export function portfolioFields() {
  const objective = choice("objective", [...OBJECTIVES, ["own", "weights …"]], OBJECTIVES[0], () => draw());
  const weights = field("weights", { placeholder: "slowdown=100+violation=1", class: "grow" });
  const candidates = field("candidates", { placeholder: "as usual, or marshal, edf, fair", class: "grow" });
  draw();

  function draw() {
    show(weights.node, objective.select.value === "own");
  }

  return {
    node: h("div", {}, h("div", { class: "row" }, objective.node, weights.node), h("div", { class: "row" }, candidates.node)),
    // Show the settings of a portfolio.
    set(found) {
      const goal = goalText(found.objective);
      const isNamed = OBJECTIVES.includes(goal);
      objective.select.value = isNamed ? goal : "own";
      weights.input.value = isNamed ? "" : goal;
      candidates.input.value = found.candidates.map(candidateName).join(", ");
      draw();
    },
    // What is set here, and of a portfolio in force the rest of its settings.
    wanted(inForce) {
      const { objective: before, candidates: those, provisioning, ...rest } = inForce ?? {};
      const goal = objective.select.value === "own" ? weights.input.value.trim() : objective.select.value;
      const table = { ...rest, objective: goal };
      // What resizes the cluster goes with the objective.
      if (provisioning !== undefined && goalText(before) === goal) table.provisioning = provisioning;
      const own = new Map((those ?? []).map((each) => [candidateName(each), each]));
      const names = candidates.input.value.split(",").map((each) => each.trim()).flatMap((each) => (own.has(each) ? each : each.split(/\s+/))).filter(Boolean);
      if (names.length) table.candidates = names.map((name) => own.get(name) ?? name);
      return { portfolio: table };
    },
  };
}

// An objective by its name, or weights as they are written.
export function goalText(goal) {
  if (typeof goal === "string" || goal === undefined) return goal ?? "";
  return Object.entries(goal).map(([name, weight]) => `${name}=${weight}`).join("+");
}

// Candidates are names, or documents with one.
function candidateName(each) {
  return typeof each === "string" ? each : each.name;
}
