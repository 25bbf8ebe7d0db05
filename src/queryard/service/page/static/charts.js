// Charts as SVG, drawn anew for the width that they have.

import { h, s, fill, say } from "./dom.js";
import { clock, day, MISSING, onAxis, seconds } from "./format.js";

const LEFT = 54;
const RIGHT = 10;
const TOP = 10;
const BOTTOM = 20;

// Round steps of an axis from 0 to at least `most`.
function ticks(most, wanted = 4) {
  if (!(most > 0)) return [0, 1];
  const rough = most / wanted;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((each) => each * power).find((each) => each >= rough * 0.999);
  const found = [];
  for (let value = 0; value < most + step * 0.999; value += step) found.push(Number(value.toPrecision(12)));
  return found;
}

const STEPS_S = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 28800, 43200, 86400, 172800, 604800];

function timeTicks(from, to, wanted) {
  const step = STEPS_S.find((each) => (to - from) / each <= wanted) ?? 604800;
  const shift = new Date(from * 1000).getTimezoneOffset() * 60;
  const found = [];
  for (let at = Math.ceil((from - shift) / step) * step + shift; at <= to; at += step) found.push(at);
  return { step, found };
}

// Lines and areas over time. `series` is a list of { name, kind: "line" | "area", class };
// `set(xs, columns)` draws; a null in a column is a gap. `from` and `to` hold the ends of the axis.
export function timeChart({ title, series, format, height = 132, least = 0, whole = false, relative = false }) {
  const svg = s("svg", { class: "chart", role: "img", height });
  const note = h("figcaption", {}, h("span", { class: "chart-title" }, title), " ");
  const keys = series.map((each) => {
    const value = h("b", {}, "");
    const key = h("span", { class: "key" }, h("i", { class: `swatch ${each.class}` }), each.name, " ", value);
    note.append(key);
    return value;
  });
  const node = h("figure", { class: "chart-box" }, note, svg);
  const axis = onAxis(format);
  let xs = [];
  let columns = series.map(() => []);
  let ends = null;
  let width = 0;
  let hover = null;

  function draw() {
    if (width < 40) return;
    const right = width - RIGHT;
    const bottom = height - BOTTOM;
    const from = ends ? ends[0] : xs[0] ?? 0;
    const to = ends ? ends[1] : xs.at(-1) ?? 1;
    let most = least;
    for (const column of columns) for (const value of column) if (value > most) most = value;
    let marks = ticks(most, height < 110 ? 2 : 3);
    if (whole) marks = marks.filter(Number.isInteger);
    const top = marks.at(-1) >= most ? marks.at(-1) : most;
    const x = (at) => LEFT + ((at - from) / (to - from || 1)) * (right - LEFT);
    const y = (value) => bottom - (value / (top || 1)) * (bottom - TOP);
    const parts = [];
    for (const mark of marks) {
      parts.push(s("line", { class: "grid", x1: LEFT, x2: right, y1: y(mark), y2: y(mark) }));
      parts.push(s("text", { class: "tick", x: LEFT - 6, y: y(mark) + 3.5, "text-anchor": "end" }, axis(mark)));
    }
    if (xs.length) {
      const { step, found } = timeTicks(from, to, Math.max(2, Math.floor(width / 90)));
      for (const at of found) {
        const text = relative ? seconds(at - from) : step >= 86400 ? day(at).slice(5) : clock(at, step < 60);
        if (x(at) < right - 14) parts.push(s("text", { class: "tick", x: x(at), y: height - 5, "text-anchor": "middle" }, text));
      }
    } else {
      parts.push(s("text", { class: "tick", x: (LEFT + right) / 2, y: height / 2, "text-anchor": "middle" }, "nothing yet"));
    }
    series.forEach(({ kind, class: name }, index) => {
      for (const run of runs(xs, columns[index])) {
        const path = pathOf(run, x, y, kind === "area" && whole);
        if (kind === "area") {
          const last = run.at(-1);
          parts.push(s("path", { class: `area ${name}`, d: `${path} L${x(last[0]).toFixed(1)},${bottom} L${x(run[0][0]).toFixed(1)},${bottom} Z` }));
        }
        parts.push(s("path", { class: `line ${name}`, d: path }));
      }
    });
    if (hover !== null && xs.length) {
      const at = xs[hover];
      parts.push(s("line", { class: "cross", x1: x(at), x2: x(at), y1: TOP, y2: bottom }));
      series.forEach((each, index) => {
        const value = columns[index][hover];
        if (value !== null && value !== undefined) parts.push(s("circle", { class: `dot ${each.class}`, cx: x(at), cy: y(value), r: 3 }));
      });
    }
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    svg.setAttribute("width", width);
    fill(svg, parts);
    const shown = hover ?? xs.length - 1;
    keys.forEach((key, index) => {
      const value = columns[index][shown];
      say(key, value === null || value === undefined ? MISSING : format(value));
    });
    svg.setAttribute("aria-label", `${title}: ${series.map((each, index) => `${each.name} ${keys[index].textContent}`).join(", ")}`);
  }

  svg.addEventListener("pointermove", (event) => {
    if (!xs.length) return;
    const from = ends ? ends[0] : xs[0];
    const to = ends ? ends[1] : xs.at(-1);
    const share = (event.offsetX - LEFT) / (width - LEFT - RIGHT);
    const at = from + share * (to - from);
    let best = 0;
    xs.forEach((each, index) => {
      if (Math.abs(each - at) < Math.abs(xs[best] - at)) best = index;
    });
    hover = best;
    draw();
  });
  svg.addEventListener("pointerleave", () => {
    hover = null;
    draw();
  });
  fitted(node, (found) => {
    width = found;
    draw();
  });
  return {
    node,
    set(newXs, newColumns, newEnds = null) {
      xs = newXs;
      columns = newColumns;
      ends = newEnds;
      if (hover !== null && hover >= xs.length) hover = null;
      draw();
    },
  };
}

// Call `draw(width)` now and whenever the width changes.
function fitted(node, draw) {
  let last = 0;
  new ResizeObserver((entries) => {
    const found = Math.floor(entries[0].contentRect.width);
    if (found === last) return;
    last = found;
    draw(found);
  }).observe(node);
}

// Stretches without gaps.
function runs(xs, ys) {
  const found = [];
  let run = [];
  xs.forEach((at, index) => {
    const value = ys[index];
    if (value === null || value === undefined) {
      if (run.length) found.push(run);
      run = [];
    } else run.push([at, value]);
  });
  if (run.length) found.push(run);
  return found;
}

function pathOf(run, x, y, isStep) {
  const parts = [];
  run.forEach(([at, value], index) => {
    const there = x(at).toFixed(1);
    const high = y(value).toFixed(1);
    if (index === 0) parts.push(`M${there},${high}`);
    else if (isStep) parts.push(`H${there} V${high}`);
    else parts.push(`L${there},${high}`);
  });
  return parts.join(" ");
}

// A small bar with a share from 0 to 1.
export function meter(label) {
  const bar = s("rect", { class: "meter-done", x: 0, y: 0, width: 0, height: 6 });
  const svg = s("svg", { class: "meter", viewBox: "0 0 100 6", preserveAspectRatio: "none", role: "img" },
    s("rect", { class: "meter-all", width: 100, height: 6 }), bar);
  return {
    node: svg,
    set(value, text = "") {
      const found = Math.max(0, Math.min(1, value || 0));
      bar.setAttribute("width", (found * 100).toFixed(2));
      svg.setAttribute("aria-label", `${label} ${text || `${Math.round(found * 100)} %`}`);
    },
  };
}

// An interval around a value, on the scale of its column.
export function whisker(low, value, high, from, to) {
  const width = 120;
  const x = (each) => 4 + ((each - from) / (to - from || 1)) * (width - 8);
  return s("svg", { class: "whisker", viewBox: `0 0 ${width} 14`, width, height: 14, role: "img", "aria-label": `from ${low} to ${high}` },
    s("line", { class: "whisker-line", x1: x(low), x2: x(high), y1: 7, y2: 7 }),
    s("line", { class: "whisker-end", x1: x(low), x2: x(low), y1: 3, y2: 11 }),
    s("line", { class: "whisker-end", x1: x(high), x2: x(high), y1: 3, y2: 11 }),
    value === null ? null : s("circle", { class: "whisker-dot", cx: x(value), cy: 7, r: 2.6 }));
}

// What a query did when: a lane per kind (and per node), with the slots of leases as height.
export function ganttChart() {
  const svg = s("svg", { class: "chart", role: "img" });
  const node = h("figure", { class: "chart-box" }, svg);
  const named = 92;
  const axis = onAxis(seconds);
  let data = null;
  let width = 0;

  function draw() {
    if (data === null || width < 80) return;
    const { segments, from, to } = data;
    const lanes = lanesOf(segments);
    const rowHeight = 22;
    const height = Math.max(1, lanes.length) * rowHeight + BOTTOM + 6;
    const right = width - RIGHT;
    const x = (at) => named + ((at - from) / (to - from || 1)) * (right - named);
    const parts = [];
    const step = ticks(to - from, Math.max(2, Math.floor(width / 110)));
    for (const mark of step) {
      if (mark > (to - from) * 1.001) continue;
      const at = x(from + mark);
      parts.push(s("line", { class: "grid", x1: at, x2: at, y1: 2, y2: height - BOTTOM }));
      if (at < right - 14) parts.push(s("text", { class: "tick", x: at, y: height - 5, "text-anchor": mark === 0 ? "start" : "middle" }, axis(mark)));
    }
    const most = Math.max(1, ...segments.map((each) => each.slots || 1));
    lanes.forEach((lane, row) => {
      const base = row * rowHeight + 4;
      parts.push(s("text", { class: "lane", x: named - 8, y: base + 12, "text-anchor": "end" }, lane.name));
      for (const each of lane.segments) {
        const tall = each.kind === "lease" ? Math.max(4, ((each.slots || 1) / most) * (rowHeight - 6)) : rowHeight - 8;
        const wide = Math.max(1.5, x(each.to_s) - x(each.from_s));
        const words = `${lane.name} ${each.label ? `(${each.label}) ` : ""}from ${seconds(each.from_s - from)} to ${seconds(each.to_s - from)}${each.slots ? `, ${each.slots} slots` : ""}`;
        parts.push(s("rect", { class: `segment ${each.kind}`, x: x(each.from_s), y: base + (rowHeight - 6 - tall), width: wide, height: tall, rx: 2 }, s("title", {}, words)));
      }
    });
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    svg.setAttribute("width", width);
    svg.setAttribute("height", height);
    svg.setAttribute("aria-label", `Timeline of ${segments.length} segments over ${seconds(to - from)}`);
    fill(svg, parts);
  }

  fitted(node, (found) => {
    width = found;
    draw();
  });
  return {
    node,
    set(segments, from, to) {
      data = { segments, from, to };
      draw();
    },
  };
}

const NAMES = { waiting: "waiting", paused: "paused", lease: "slots", task: "tasks", ride: "rides" };

// Tasks that overlap stand in lanes of their own; all else of one kind and node in one.
function lanesOf(segments) {
  const groups = new Map();
  for (const each of segments) {
    const kind = each.kind === "paused" ? "waiting" : each.kind;
    const name = each.node && each.node !== "local" ? `${NAMES[kind] || kind} ${each.node}` : NAMES[kind] || kind;
    if (!groups.has(name)) groups.set(name, []);
    groups.get(name).push(each);
  }
  const lanes = [];
  for (const [name, found] of groups) {
    if (found[0].kind !== "task" && found[0].kind !== "ride") {
      lanes.push({ name, segments: found });
      continue;
    }
    const rows = [];
    for (const each of [...found].sort((a, b) => a.from_s - b.from_s)) {
      let row = rows.find((other) => other.at(-1).to_s <= each.from_s + 1e-9);
      if (row === undefined && rows.length < 12) rows.push((row = []));
      (row ?? rows.at(-1)).push(each);
    }
    rows.forEach((row, index) => lanes.push({ name: index === 0 ? name : "", segments: row }));
  }
  return lanes;
}

// Bars side by side, such as predicted against actual.
export function bars(items, format) {
  const most = Math.max(...items.map((each) => each.value || 0), 0);
  return h("div", { class: "bars" }, items.map((each) => {
    const bar = meter(each.name);
    bar.set(most > 0 ? (each.value || 0) / most : 0, format(each.value));
    return [h("span", { class: "bars-name" }, each.name), bar.node, h("span", { class: "num" }, format(each.value))];
  }));
}
