// What the server itself takes: processor, memory, the cost of decisions; slots and queries over time.

import { address, get, repeat } from "../api.js";
import { timeChart } from "../charts.js";
import { h } from "../dom.js";
import { bytes, count, seconds, share, significant } from "../format.js";
import { notice } from "../parts.js";
import { ends, windowChoice } from "../windows.js";

export const title = "System";
const PARTS = ["driver", "watch", "history", "listeners"];

export function mount(root, { signal, isAdmin }) {
  const told = notice();
  const size = windowChoice("900", null, 86400);
  const cores = (value) => `${significant(value, 2)}`;
  const cpu = timeChart({ title: "Processor, cores", series: [{ name: "process", kind: "area", class: "c1" }], format: cores, least: 0.1 });
  const own = timeChart({ title: "Of it Queryard's own", series: PARTS.map((name, i) => ({ name, kind: "line", class: `c${i + 1}` })), format: (value) => share(value, 1), least: 0.01 });
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
    if (isAdmin && found.own_cpu) own.set(found.at, PARTS.map((name) => found.own_cpu[name] ?? []), limits);
    memory.set(found.at, [found.memory_bytes], limits);
    decide.set(found.at, [found.decide_ms], limits);
    slots.set(found.at, [found.slots_busy, found.slots_total], limits);
    queue.set(found.at, [found.waiting, found.running], limits);
  }

  repeat(2, load, told.polled, signal);
  size.select.addEventListener("change", () => load().catch(told.error));
}
