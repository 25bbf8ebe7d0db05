// What an admin can change while the server runs; each change is recorded and can be undone.

import { get, post, repeat } from "../api.js";
import { fill, h, Keyed, say, show } from "../dom.js";
import { bytes, moment } from "../format.js";
import { button, chip, choice, confirmed, dataTable, field, notice, panel } from "../parts.js";

export const title = "Controls";
const OBJECTIVES = ["small queries fast", "deadlines first", "early answers", "fair to tenants", "throughput", "low cost"];
const PORTFOLIO = "portfolio";

export function mount(root, { signal }) {
  const told = notice();
  const state = stateControls(change);
  const policy = policyControls(change, signal, told);
  const tenants = tenantControls(change);
  const changes = dataTable([
    { name: "When", cell: (each) => moment(each.at) },
    { name: "By", cell: (each) => each.by },
    { name: "Change", cell: (each) => [each.text, each.reason ? h("span", { class: "quiet" }, ` (${each.reason})`) : null] },
    { name: "", class: "num", cell: (each) => undo(each) },
  ], { empty: "Nothing was changed yet.", caption: "Changes" });
  root.append(
    h("h1", {}, "Controls"), told.node,
    h("div", { class: "panels" }, state.node, policy.node),
    tenants.node,
    panel("Changes", changes.node));
  let drawn = "";

  async function load() {
    const found = await get("/v1/controls", { signal });
    const text = JSON.stringify(found);
    if (text === drawn) return;
    drawn = text;
    state.set(found);
    policy.set(found);
    tenants.set(found.tenants);
    changes.set(found.changes);
  }

  async function change(body) {
    try {
      const made = await post("/v1/controls", body, { signal });
      told.good(`Done: ${made.text}`);
      await load();
      return true;
    } catch (error) {
      told.error(error);
      return false;
    }
  }

  function undo(each) {
    if (each.undone_by !== null && each.undone_by !== undefined) return h("span", { class: "quiet" }, `undone by ${each.undone_by}`);
    if (!each.undoable) return "";
    return button("Undo", async () => {
      try {
        const made = await post(`/v1/controls/${encodeURIComponent(each.id)}/undo`, {}, { signal });
        told.good(`Done: ${made.text}`);
        await load();
      } catch (error) {
        told.error(error);
      }
    }, { class: "small", "aria-label": `Undo: ${each.text}` });
  }

  repeat(2, load, told.polled, signal);
}

// --- open, paused, draining; models ----------------------------------------------------------------

function stateControls(change) {
  const now = h("span");
  const reason = field("reason", { placeholder: "told with the change", class: "grow" });
  const asked = (what) => change({ change: what, ...(reason.input.value.trim() ? { reason: reason.input.value.trim() } : {}) });
  const pause = button("Pause", () => asked("pause"), { title: "No waiting query starts; what runs goes on" });
  const resume = button("Resume", () => asked("resume"), { class: "main" });
  const drain = button("Drain", async () => {
    if (await confirmed("Drain the server?", "Drain", "No further queries are taken until it is opened again; those that are there go on.")) asked("drain");
  });
  const open = button("Open", () => asked("open"), { class: "main" });
  const reset = button("Reset learned models", async () => {
    if (await confirmed("Reset what was learned?", "Reset", "Predictions begin again from the statistics. This cannot be undone.")) asked("reset-models");
  }, { class: "danger" });
  const since = h("p", { class: "quiet" });
  return {
    node: panel("Server", h("div", { class: "row" }, now, pause, resume, drain, open, reset), since, h("div", { class: "row" }, reason.node)),
    set(found) {
      fill(now, chip(found.state));
      show(pause, !found.paused);
      show(resume, Boolean(found.paused));
      show(drain, !found.draining);
      show(open, Boolean(found.draining));
      const word = found.draining ?? found.paused;
      say(since, word ? `${found.state} since ${moment(word.at)} by ${word.by}${word.reason ? `: ${word.reason}` : ""}` : "Queries are taken, and start when it is their turn.");
    },
  };
}

// --- the policy --------------------------------------------------------------------------------------

function policyControls(change, signal, told) {
  const now = h("p");
  const select = choice("follow", [PORTFOLIO], PORTFOLIO, () => drawDetails());
  const summary = h("p", { class: "quiet" });
  const objective = choice("objective", [...OBJECTIVES, ["own", "weights …"]], OBJECTIVES[0], () => drawDetails());
  const weights = field("weights", { placeholder: "slowdown=100+violation=1", class: "grow" });
  const candidates = field("candidates", { placeholder: "as usual, or marshal, edf, fair", class: "grow" });
  const portfolio = h("div", { hidden: true }, h("div", { class: "row" }, objective.node, weights.node), h("div", { class: "row" }, candidates.node));
  const apply = button("Follow", () => follow(), { class: "main" });
  let known = [];
  let touched = false;
  select.select.addEventListener("change", () => (touched = true));

  get("/v1/profiles", { signal }).then((found) => {
    known = found.profiles;
    const names = known.map((each) => each.name).filter((name) => name !== PORTFOLIO);
    fill(select.select, [PORTFOLIO, ...names].map((name) => h("option", { value: name }, name)));
    if (current) select.select.value = current;
    drawDetails();
  }).catch(told.error);
  let current = null;

  function drawDetails() {
    const name = select.select.value;
    show(portfolio, name === PORTFOLIO);
    show(weights.node, objective.select.value === "own");
    say(summary, name === PORTFOLIO
      ? "The policy is chosen again and again: the queue as it is, simulated under each candidate."
      : known.find((each) => each.name === name)?.summary ?? "");
  }

  function wanted() {
    if (select.select.value !== PORTFOLIO) return select.select.value;
    const table = { objective: objective.select.value === "own" ? weights.input.value.trim() : objective.select.value };
    const names = candidates.input.value.split(/[,\s]+/).filter(Boolean);
    if (names.length) table.candidates = names;
    return { portfolio: table };
  }

  async function follow() {
    touched = false;
    await change({ change: "profile", profile: wanted() });
  }

  return {
    node: panel("Policy", now, h("div", { class: "row" }, select.node, apply), portfolio, summary),
    set(found) {
      const name = found.portfolio ? PORTFOLIO : typeof found.profile === "string" ? found.profile : found.profile?.name ?? "";
      const goal = found.portfolio?.objective;
      fill(now, "In force: ", h("b", {}, name), goal ? ` (${typeof goal === "string" ? goal : JSON.stringify(goal)})` : "");
      if (!touched) {
        current = name;
        select.select.value = name;
        if (typeof goal === "string" && OBJECTIVES.includes(goal)) objective.select.value = goal;
        drawDetails();
      }
    },
  };
}

// --- tenants -----------------------------------------------------------------------------------------

const SHARES = ["weight", "guarantee", "cap"];
const LIMITS = ["waiting", "wait", "memory"];
const HINTS = { weight: "1", guarantee: "0", cap: "1", waiting: "any", wait: "any", memory: "any" };

function tenantControls(change) {
  const body = h("tbody");
  const head = ["Tenant", "Weight", "Guarantee", "Cap", "Waiting at most", "Wait at most", "Memory at most", ""];
  const name = field("another tenant", { placeholder: "sales/emea" });
  const node = panel("Tenants",
    h("div", { class: "table-box" }, h("table", {}, h("caption", { class: "unseen" }, "Tenants"),
      h("thead", {}, h("tr", {}, head.map((each) => h("th", { scope: "col" }, each)))), body)),
    h("p", { class: "quiet" }, "A share that is left empty is that of the settings, or the usual one; a limit that is left empty is none."),
    h("div", { class: "row" }, name.node, button("Add", () => add(), { class: "small" })));
  let tenants = [];
  const rows = new Keyed(body, (tenant) => tenantRow(tenant, change), (row, tenant) => row.set(tenant), (tenant) => tenant.name);

  function add() {
    const wanted = name.input.value.trim();
    if (!wanted) return;
    tenants = [...tenants.filter((each) => each.name !== wanted), { name: wanted, limits: {} }];
    rows.set(tenants);
    name.input.value = "";
    body.lastChild.querySelector("input").focus();
  }

  return {
    node,
    set(found) {
      const names = new Set(found.map((each) => each.name));
      // Those that were added here stay until they have a setting.
      tenants = [...found, ...tenants.filter((each) => !names.has(each.name) && each.weight === undefined)];
      rows.set(tenants);
    },
  };
}

// What a tenant has now, as it is written.
function settingsOf(tenant) {
  const limits = tenant.limits ?? {};
  return {
    ...Object.fromEntries(SHARES.map((key) => [key, shown(tenant[key])])),
    waiting: shown(limits.waiting),
    wait: limits.wait_s == null ? "" : `${limits.wait_s} s`,
    memory: limits.memory_bytes == null ? "" : bytes(limits.memory_bytes),
  };
}

// A row of inputs; what is being written stays when the rest is brought up to date.
function tenantRow(tenant, change) {
  let before = settingsOf(tenant);
  const inputs = {};
  const apply = button("Apply", () => send(), { class: "small main", hidden: true });
  const edited = () => show(apply, Object.keys(inputs).some((key) => inputs[key].value.trim() !== before[key]));
  const cells = [...SHARES, ...LIMITS].map((key) => {
    inputs[key] = h("input", {
      class: "short", value: before[key], placeholder: HINTS[key], oninput: edited, "aria-label": `${key} of ${tenant.name}`,
      onkeydown: (event) => event.key === "Enter" && send(),
    });
    return h("td", {}, inputs[key]);
  });

  async function send() {
    const wanted = { change: "tenant", tenant: tenant.name };
    const texts = Object.fromEntries(Object.keys(inputs).map((key) => [key, inputs[key].value.trim()]));
    for (const key of SHARES) {
      // An empty one is what the settings have, or the usual one.
      if (texts[key] !== before[key]) wanted[key] = texts[key] === "" ? null : Number(texts[key]);
    }
    for (const key of LIMITS) {
      if (texts[key] === before[key]) continue;
      wanted.limits ??= {};
      wanted.limits[key] = texts[key] === "" ? null : key === "waiting" ? Number(texts[key]) : texts[key];
    }
    if (await change(wanted)) {
      for (const key of Object.keys(inputs)) inputs[key].value = before[key];
      edited();
    }
  }

  async function cancel() {
    const sure = await confirmed(`Cancel all queries of ${tenant.name}?`, "Cancel them", "Those that run and those that wait. This cannot be undone.");
    if (sure) change({ change: "cancel-tenant", tenant: tenant.name });
  }

  return {
    node: h("tr", {}, h("th", { scope: "row" }, tenant.name), cells,
      h("td", { class: "num" }, apply, button("Cancel all", cancel, { class: "small quiet danger", "aria-label": `Cancel all queries of ${tenant.name}` }))),
    set(found) {
      const after = settingsOf(found);
      for (const key of Object.keys(inputs)) {
        if (inputs[key].value.trim() === before[key] && after[key] !== before[key]) inputs[key].value = after[key];
      }
      before = after;
      edited();
    },
  };
}

function shown(value) {
  return value === null || value === undefined ? "" : String(value);
}
