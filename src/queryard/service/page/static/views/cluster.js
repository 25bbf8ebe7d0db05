// Nodes: their slots, load, speed, memory and caches, and what runs there.

import { get, repeat } from "../api.js";
import { meter } from "../charts.js";
import { h, show } from "../dom.js";
import { bytes, factor, measured, share, titled } from "../format.js";
import { chip, dataTable, notice, panel, queryLink, tile } from "../parts.js";

export const title = "Cluster";

export function mount(root, { signal }) {
  const told = notice();
  const backend = tile("Backend");
  const nodes = tile("Nodes");
  const slots = tile("Slots");
  const memory = tile("Memory free");
  const table = dataTable([
    { name: "Node", cell: (node) => (node.where ? [h("b", {}, node.name), ` at ${node.where}`] : h("b", {}, node.name)) },
    { name: "State", cell: (node) => chip(node.state) },
    { name: "Slots", class: "num", cell: (node) => `${node.busy} / ${node.slots}` },
    { name: "Load", cell: (node) => loadBar(node) },
    { name: "Speed", class: "num", cell: (node) => factor(node.speed) },
    { name: "Memory", class: "num", cell: (node) => bytes(node.memory_bytes) },
    { name: "Free", class: "num", cell: (node) => bytes(node.free_bytes) },
    { name: "Caches", cell: (node) => Object.entries(node.caches ?? {}).map(([name, value]) => `${titled(name)} ${measured(name, value)}`).join(", ") },
    { name: "Runs", cell: (node) => running(node) },
  ], { empty: "There are no nodes.", caption: "Nodes" });
  const keptTable = dataTable([
    { name: "Table", cell: (each) => h("span", { class: "mono" }, each.name) },
    { name: "Kept parsed", class: "num", cell: (each) => share(each.part) },
  ], { caption: "Tables that are kept parsed" });
  const refusedList = h("ul", {});
  const refusedPanel = panel("Do not take part", refusedList);
  show(refusedPanel, false);
  const keptPanel = panel("Kept for shared scans", keptTable.node);
  show(keptPanel, false);
  root.append(h("h1", {}, "Cluster"), told.node, h("div", { class: "tiles" }, [backend, nodes, slots, memory].map((each) => each.node)), h("section", { class: "panel" }, table.node), refusedPanel, keptPanel);
  repeat(1, async () => {
    const found = await get("/v1/cluster", { signal });
    const sum = (name) => found.nodes.reduce((all, node) => all + (node[name] ?? 0), 0);
    backend.set(found.backend);
    nodes.set(String(found.nodes.filter((node) => node.state === "up").length), `of ${found.nodes.length} are up`);
    slots.set(`${sum("busy")} / ${sum("slots")}`);
    // Nodes of one host share its memory.
    const hosts = [...new Map(found.nodes.map((node) => [node.host ?? node.name, node])).values()];
    const free = hosts.reduce((all, node) => all + (node.free_bytes ?? 0), 0);
    const whole = hosts.reduce((all, node) => all + (node.memory_bytes ?? 0), 0);
    memory.set(bytes(free), `of ${bytes(whole)}`);
    const refused = found.refused ?? [];
    show(refusedPanel, refused.length > 0);
    refusedList.replaceChildren(...refused.map((reason) => h("li", {}, reason)));
    const kept = Object.entries(found.kept_tables ?? {});
    show(keptPanel, kept.length > 0);
    keptTable.set(kept.map(([name, part]) => ({ name, part })));
    table.set(found.nodes);
  }, told.polled, signal);
}

function loadBar(node) {
  const bar = meter(`load of ${node.name}`);
  const load = node.slots ? node.busy / node.slots : 0;
  bar.set(load);
  return [bar.node, ` ${share(load)}`];
}

function running(node) {
  const shown = node.running.slice(0, 8).flatMap((id, i) => [i ? " " : "", queryLink(id)]);
  const more = Math.max(0, node.running.length - 8) + (node.running_others ?? 0);
  return more > 0 ? [...shown, ` and ${more} more`] : shown;
}
