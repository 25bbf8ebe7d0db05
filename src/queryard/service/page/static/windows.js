// Windows of time that views look at.

import { choice } from "./parts.js";

export const WINDOWS = [["900", "15 minutes"], ["3600", "an hour"], ["21600", "6 hours"], ["86400", "a day"], ["604800", "a week"], ["2592000", "30 days"]];

export function windowChoice(value, changed, most = Infinity) {
  return choice("the last", WINDOWS.filter(([size]) => Number(size) <= most), value, changed);
}

// From seconds to the ends of the window, as the API wants them.
export function ends(size) {
  const until = Date.now() / 1000;
  return { since: until - Number(size), until };
}
