// What the server itself takes: processor, memory, the cost of decisions; slots and queries over time.

import { address, get, repeat } from "../api.js";
import { timeChart } from "../charts.js";
import { h } from "../dom.js";
import { bytes, count, seconds, share, significant } from "../format.js";
import { notice } from "../parts.js";
import { ends, windowChoice } from "../windows.js";

export const title = "System";

export function mount(root, { signal, isAdmin }) {
  const told = notice();
  const size = windowChoice("900", null, 86400);
  const cores = (value) => `${significant(value, 2)}`;
  const cpu = timeChart({ title: "Processor, cores", series: [{ name: "process", kind: "area", class: "c1" }], format: cores, least: 0.1 });
  const own = ownChart();
  const memory = timeChart({ title: "Memory of the process", series: [{ name: "resident", kind: "area", class: "c1" }], format: bytes });
  const decide = timeChart({ title: "Time of a decision", series: [{ name: "mean", kind: "line", class: "c1" }], format: (value) => seconds(value / 1000) });
  const slots = timeChart({ title: "Slots", series: [{ name: "busy", kind: "area", class: "c1" }, { name: "all", kind: "line", class: "c2" }], format: (value) => significant(value, 2), least: 1 });
  const queue = timeChart({ title: "Queries", series: [{ name: "waiting", kind: "line", class: "c1" }, { name: "running", kind: "line", class: "c2" }], format: count, least: 2 });
  root.append(
    h("h1", {}, "System"), told.node,
    h("div", { class: "row filter-row" }, size.node),
    h("div", { class: "charts" }, [cpu, isAdmin ? own : null, memory, decide, slots, queue].map((each) => each?.node)));

  async function load() {
    const window_ = ends(size.select.value);
    const found = await get(address("/v1/series", { ...window_, points: 300 }), { signal });
    const limits = [window_.since, window_.until];
    cpu.set(found.at, [found.process_cpu], limits);
    own.set(found.at, found.own_cpu, limits);
    memory.set(found.at, [found.memory_bytes], limits);
    decide.set(found.at, [found.decide_ms], limits);
    slots.set(found.at, [found.slots_busy, found.slots_total], limits);
    queue.set(found.at, [found.waiting, found.running], limits);
  }

  repeat(2, load, told.polled, signal);
  size.select.addEventListener("change", () => load().catch(told.error));
}

// What Queryard itself takes, a line for each part that the server tells of.
function ownChart() {
  const node = h("div", { class: "own-cpu" });
  let chart = null;
  let drawn = "";
  return {
    node,
    set(xs, parts, limits) {
      const names = Object.keys(parts);
      if (drawn !== names.join()) {
        drawn = names.join();
        const series = names.map((name, i) => ({ name, kind: "line", class: `c${i + 1}` }));
        chart = timeChart({ title: "Of it Queryard's own", series, format: (value) => share(value, 1), least: 0.01 });
        node.replaceChildren(chart.node);
      }
      chart?.set(xs, Object.values(parts), limits);
    },
  };
}
