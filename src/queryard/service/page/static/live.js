// What the server does now: one stream for the whole page, and the last minutes of it for charts.

import { address, follow, get } from "./api.js";

const WINDOW_S = 300;
export const SHOWN = 200;

// Tells "now" when `live.doc` is new; its lists are of `live.tenant` only, if that is not null.
export const live = Object.assign(new EventTarget(), { doc: null, tenant: null, points: [] });

let tenant = null;
let reopen = null;

export function start(signal) {
  stopped();
  // What was before comes after what is now.
  live.addEventListener("now", () => seed(signal), { once: true, signal });
  let stream = null;
  reopen = () => {
    stream?.abort();
    stream = new AbortController();
    const only = tenant;
    const path = address("/v1/now/stream", { limit: SHOWN, tenant: only });
    follow(path, (name, doc) => name === "now" && heed(doc, only), AbortSignal.any([signal, stream.signal]));
  };
  reopen();
}

export function stopped() {
  live.doc = null;
  live.points = [];
  tenant = null;
  reopen = null;
}

// List queries of one tenant and those below it only; null for all. Counts stay those of all.
export function listOnly(name) {
  if (name === tenant) return;
  tenant = name;
  reopen?.();
}

function heed(doc, only) {
  live.doc = doc;
  live.tenant = only;
  const last = live.points.at(-1);
  const point = pointOf(doc);
  // A point per second is what a chart can show.
  if (last !== undefined && doc.at - last.at < 0.9) live.points[live.points.length - 1] = { ...point, at: last.at };
  else live.points.push(point);
  while (live.points.length && live.points[0].at < doc.at - WINDOW_S) live.points.shift();
  live.dispatchEvent(new Event("now"));
}

function pointOf(doc) {
  const sum = (name) => doc.tenants.reduce((all, each) => all + each[name], 0);
  return {
    at: doc.at,
    busy: doc.slots.busy,
    total: doc.slots.total,
    memory: doc.memory.reserved_bytes,
    waiting: sum("waiting"),
    running: sum("running"),
  };
}

export function counts(doc) {
  return pointOf(doc);
}

// What was before the page was opened.
async function seed(signal) {
  try {
    const since = Date.now() / 1000 - WINDOW_S;
    const found = await get(address("/v1/series", { since, points: WINDOW_S }), { signal });
    const before = found.at.map((at, i) => ({
      at,
      busy: found.slots_busy[i],
      total: found.slots_total[i],
      memory: found.memory_bytes[i],
      waiting: found.waiting[i],
      running: found.running[i],
    }));
    const first = live.points[0]?.at ?? Infinity;
    live.points = [...before.filter((point) => point.at < first - 0.5), ...live.points];
    if (live.doc) live.dispatchEvent(new Event("now"));
  } catch {
    // The chart begins now.
  }
}
