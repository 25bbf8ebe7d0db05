// The beginning: sign-in, then the frame with the view that the address names.

import { connection, get, Lost, Problem, signOut, takeTokenFromAddress, token } from "./api.js";
import { fill } from "./dom.js";
import { Frame } from "./frame.js";
import { live, start, stopped } from "./live.js";
import { signInView } from "./signin.js";

takeTokenFromAddress();
let running = null;

async function begin() {
  if (token() === null) {
    signInView("", begin);
    return;
  }
  let who;
  try {
    who = await get("/v1/whoami");
  } catch (error) {
    if (error instanceof Problem && error.status === 401) return; // told by "signed-out"
    const text = error instanceof Lost ? "The server does not answer." : error.message;
    signInView(text, begin, token() ?? "");
    return;
  }
  running = new AbortController();
  start(running.signal);
  const frame = new Frame(who, running.signal);
  fill(document.body, frame.node);
  frame.route();
}

connection.addEventListener("signed-out", (event) => {
  running?.abort();
  running = null;
  stopped();
  signInView(event.detail, begin);
});

// A link with a token may be opened where the page is open already.
addEventListener("hashchange", () => {
  if (!location.hash.startsWith("#token=")) return;
  const before = running;
  running = null;
  before?.abort();
  takeTokenFromAddress();
  begin();
});

begin();
export { live, signOut };
