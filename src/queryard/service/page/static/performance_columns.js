// How queries did, as columns of a table.

import { h } from "./dom.js";
import { count, factor, seconds } from "./format.js";

export function performanceColumns(by) {
  return [
    { name: by[0].toUpperCase() + by.slice(1), cell: (row) => (by === "template" ? h("span", { class: "mono" }, row.key) : row.key) },
    { name: "Queries", class: "num", cell: (row) => count(row.queries) },
    { name: "Failed", class: "num", cell: (row) => (row.failed ? h("span", { class: "bad" }, count(row.failed)) : "0") },
    { name: "Mean response", class: "num", cell: (row) => seconds(row.mean_response_s) },
    { name: "Median", class: "num", cell: (row) => seconds(row.p50_response_s) },
    { name: "95 %", class: "num", cell: (row) => seconds(row.p95_response_s) },
    { name: "Mean slowdown", class: "num", title: "response over the time alone", cell: (row) => factor(row.mean_slowdown) },
    { name: "Deadlines met", class: "num", cell: (row) => deadlines(row.deadlines) },
    { name: "Prediction", class: "num", title: "median factor between predicted and actual work; 1 is right", cell: (row) => factor(row.prediction_error) },
  ];
}

function deadlines(found) {
  const all = (found?.met ?? 0) + (found?.missed ?? 0);
  return all ? `${count(found.met)} of ${count(all)}` : "";
}
