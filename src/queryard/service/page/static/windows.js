// Windows of time that views look at.

import { choice } from "./parts.js";

export const WINDOWS = [["900", "15 minutes"], ["3600", "an hour"], ["21600", "6 hours"], ["86400", "a day"], ["604800", "a week"], ["2592000", "30 days"]];

export function windowChoice(value, changed, most = Infinity) {
  return choice("the last", WINDOWS.filter(([size]) => Number(size) <= most), value, changed);
}

const STEP_S = 2;

// From seconds to the ends of the window, as the API wants them; in steps, so that what is asked by
// several pages at once is the same.
export function ends(size) {
  const until = Math.ceil(Date.now() / 1000 / STEP_S) * STEP_S;
  return { since: until - Number(size), until };
}
