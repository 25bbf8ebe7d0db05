// A session of the SQL box, for what later statements rely on: settings, temporary tables, transactions.

import { insist, post, Problem, remove, token } from "./api.js";
import { h, show } from "./dom.js";
import { button, chip } from "./parts.js";

const NEEDED = "urn:queryard:problem:needs-session";
const UNKNOWN = 404;

// None is open at first. One is opened by the first statement that needs it, and closed when the
// view or the page is left; the server closes one that is idle for long.
export function statementSession(told, signal) {
  let id = null;
  const node = h("span", { class: "row", hidden: true, title: "Settings, temporary tables and transactions hold until it is closed" },
    chip("session"), button("Close", () => close().catch(told.error), { class: "small quiet", "aria-label": "Close the session" }));

  function use(name) {
    id = name;
    show(node, id !== null);
  }

  async function close(options) {
    if (id === null || token() === null) return;
    const path = `/v1/sessions/${encodeURIComponent(id)}`;
    use(null);
    await remove(path, options);
  }

  signal.addEventListener("abort", () => close().catch(() => null));
  addEventListener("pagehide", () => close({ keepalive: true }).catch(() => null), { signal });
  return {
    node,
    // Ask something of the server that may need a session; `ask` gets what names the one there is.
    async within(ask, leave) {
      const named = () => (id === null ? {} : { session: id });
      try {
        return await ask(named());
      } catch (error) {
        if (!(error instanceof Problem)) throw error;
        if (id !== null && error.status === UNKNOWN) use(null); // the next statement runs without it
        if (id !== null || error.type !== NEEDED) throw error;
        const made = await insist(() => post("/v1/sessions", { label: "page" }, { signal: leave }), leave);
        use(made.id);
        if (signal.aborted) close().catch(() => null);
        return ask(named());
      }
    },
  };
}
