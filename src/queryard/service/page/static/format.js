// Numbers and times in words that fit a narrow column.

export const MISSING = "–";

// 0.0042 → "4.2 ms", 1.34 → "1.3 s", 95 → "1 min 35 s"
export function seconds(value) {
  if (value === null || value === undefined || !Number.isFinite(value)) return MISSING;
  const size = Math.abs(value);
  const sign = value < 0 ? "−" : "";
  if (size === 0) return "0 s";
  if (size < 0.001) return `${sign}${(size * 1e6).toFixed(0)} µs`;
  if (size < 0.01) return `${sign}${(size * 1000).toFixed(1)} ms`;
  if (size < 0.9995) return `${sign}${(size * 1000).toFixed(0)} ms`;
  if (size < 9.95) return `${sign}${size.toFixed(1)} s`;
  const whole = Math.round(size);
  if (whole < 60) return `${sign}${whole} s`;
  if (whole < 3600) return `${sign}${Math.floor(whole / 60)} min${tail(whole % 60, "s")}`;
  const minutes = Math.round(whole / 60);
  if (minutes < 60 * 24) return `${sign}${Math.floor(minutes / 60)} h${tail(minutes % 60, "min")}`;
  const hours = Math.round(minutes / 60);
  return `${sign}${Math.floor(hours / 24)} d${tail(hours % 24, "h")}`;
}

function tail(value, unit) {
  return value ? ` ${value} ${unit}` : "";
}

const UNITS = ["B", "kB", "MB", "GB", "TB", "PB"];

export function bytes(value) {
  if (value === null || value === undefined || !Number.isFinite(value)) return MISSING;
  let unit = 0;
  let size = value;
  while (Math.abs(size) >= 999.5 && unit < UNITS.length - 1) {
    size /= 1000;
    unit += 1;
  }
  return `${unit === 0 ? Math.round(size) : significant(size)} ${UNITS[unit]}`;
}

export function significant(value, digits = 3) {
  if (value === null || value === undefined || !Number.isFinite(value)) return MISSING;
  if (value === 0) return "0";
  const whole = Math.floor(Math.log10(Math.abs(value))) + 1;
  return value.toFixed(Math.min(8, Math.max(0, digits - whole)));
}

export function count(value) {
  if (value === null || value === undefined || !Number.isFinite(value)) return MISSING;
  return Math.round(value).toLocaleString("en-US").replaceAll(",", "\u202f");
}

export function share(value, digits = 0) {
  if (value === null || value === undefined || !Number.isFinite(value)) return MISSING;
  return `${(value * 100).toFixed(digits)} %`;
}

export function factor(value) {
  if (value === null || value === undefined || !Number.isFinite(value)) return MISSING;
  return `${Math.abs(value) >= 1000 ? count(value) : significant(value)} ×`;
}

const two = (value) => String(value).padStart(2, "0");

// The time of day of Unix seconds, of this browser's zone.
export function clock(at, withSeconds = true) {
  if (at === null || at === undefined || !Number.isFinite(at)) return MISSING;
  const when = new Date(at * 1000);
  return `${two(when.getHours())}:${two(when.getMinutes())}${withSeconds ? `:${two(when.getSeconds())}` : ""}`;
}

export function day(at) {
  const when = new Date(at * 1000);
  return `${when.getFullYear()}-${two(when.getMonth() + 1)}-${two(when.getDate())}`;
}

// The time of day, with the day if it is another one than today's.
export function moment(at) {
  if (at === null || at === undefined || !Number.isFinite(at)) return MISSING;
  return day(at) === day(Date.now() / 1000) ? clock(at) : `${day(at)} ${clock(at)}`;
}

// What stands behind the hyphen of a query's id, with the beginning of its session's.
export function shortId(id) {
  const cut = id.lastIndexOf("-");
  return cut > 4 ? `${id.slice(0, 4)}…${id.slice(cut)}` : id;
}

export function oneLine(sql) {
  return sql.replace(/\s+/g, " ").trim();
}

export function several(number, noun, plural = `${noun}s`) {
  return `${count(number)} ${number === 1 ? noun : plural}`;
}

// A whole value as text, for tables whose columns are not known before.
export function plain(value) {
  if (value === null || value === undefined) return MISSING;
  if (typeof value === "number") return Number.isInteger(value) ? count(value) : significant(value, 4);
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (typeof value === "object") return JSON.stringify(value);
  return String(value);
}

// A value by the unit in its name: `work_s`, `peak_memory_bytes`, `at`.
export function measured(name, value) {
  if (typeof value !== "number") return plain(value);
  if (name.endsWith("_s")) return seconds(value);
  if (name.endsWith("_bytes")) return bytes(value);
  if (name === "at" || name.endsWith("_at")) return moment(value);
  if (name.endsWith("_share") || name === "share" || name === "fraction") return share(value, 1);
  return plain(value);
}

// `peak_memory_bytes` → "peak memory"
export function titled(name) {
  return name.replace(/_(s|bytes|at|ms)$/, "").replaceAll("_", " ");
}

// The same for the marks of an axis: short, in one unit, without zeros at the end.
export function onAxis(format) {
  return (value) => (format === seconds ? axisSeconds(value) : format(value)).replace(/(\.\d*?)0+(?=\D|$)/, "$1").replace(/\.(?=\D|$)/, "");
}

function axisSeconds(value) {
  if (value >= 2 * 86400) return `${significant(value / 86400, 2)} d`;
  if (value >= 2 * 3600) return `${significant(value / 3600, 2)} h`;
  if (value >= 300) return `${significant(value / 60, 2)} min`;
  return value >= 1 ? `${significant(value, 3)} s` : seconds(value);
}
