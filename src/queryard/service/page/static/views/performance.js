// Response, slowdown, deadlines and predictions, by tenant, template or size, and over time.

import { address, get, repeat } from "../api.js";
import { timeChart } from "../charts.js";
import { h, say } from "../dom.js";
import { factor, seconds, several } from "../format.js";
import { choice, dataTable, notice } from "../parts.js";
import { performanceColumns } from "../performance_columns.js";
import { ends, windowChoice } from "../windows.js";

export const title = "Performance";

const KEYS = ["tenant", "template", "size"];

export function mount(root, { signal }) {
  const told = notice();
  const summary = h("span", { class: "quiet" });
  const box = h("section", { class: "panel" });
  const response = timeChart({ title: "Response", series: [{ name: "mean", kind: "line", class: "c1" }, { name: "95 %", kind: "line", class: "c2" }], format: seconds, height: 170 });
  const prediction = timeChart({ title: "Prediction error", series: [{ name: "median factor", kind: "line", class: "c1" }], format: factor, height: 170, least: 1 });
  const by = choice("by", KEYS, "tenant");
  const size = windowChoice("3600");
  root.append(
    h("h1", {}, "Performance"), told.node,
    h("div", { class: "row filter-row" }, size.node, by.node, summary),
    h("div", { class: "charts" }, response.node, prediction.node), box);
  let table = null;
  let shown = "";

  async function load() {
    const key = by.select.value;
    const window_ = ends(size.select.value);
    const found = await get(address("/v1/performance", { ...window_, by: key }), { signal });
    if (shown !== key) {
      table = dataTable(performanceColumns(key), { empty: "No query has ended in this time.", caption: `Performance by ${key}` });
      box.replaceChildren(table.node);
      shown = key;
    }
    table.set(found.rows);
    const { all } = found;
    say(summary, found.queries
      ? `${several(found.queries, "query", "queries")}${found.is_cut ? " (the latest)" : ""}, mean response ${seconds(all.mean_response_s)}, mean slowdown ${factor(all.mean_slowdown)}${found.more_rows ? `; ${several(found.more_rows, "more row")}` : ""}`
      : "");
    const over = found.over_time;
    const limits = [window_.since, window_.until];
    response.set(over.at, [over.mean_response_s, over.p95_response_s], limits);
    prediction.set(over.at, [over.prediction_error], limits);
  }

  repeat(5, load, told.polled, signal);
  const now = () => load().catch(told.error);
  by.select.addEventListener("change", now);
  size.select.addEventListener("change", now);
}
