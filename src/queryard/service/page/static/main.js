// The beginning: sign-in, then the frame with the view that the address names.

import { connection, get, Lost, Problem, takeTokenFromAddress, token } from "./api.js";
import { fill } from "./dom.js";
import { Frame } from "./frame.js";
import { start, stopped } from "./live.js";
import { signInView } from "./signin.js";

takeTokenFromAddress();
let running = null;

async function begin() {
  if (token() === null) {
    signInView("", begin);
    return;
  }
  // The stream and the first view are asked for at once, not one after another.
  const mine = (running = new AbortController());
  start(mine.signal);
  import("./views/now.js");
  let who;
  try {
    who = await get("/v1/whoami");
  } catch (error) {
    mine.abort();
    if (error instanceof Problem && error.status === 401) return; // told by "signed-out"
    const text = error instanceof Lost ? "The server does not answer." : error.message;
    signInView(text, begin, token() ?? "");
    return;
  }
  if (mine.signal.aborted) return;
  const frame = new Frame(who, mine.signal);
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
