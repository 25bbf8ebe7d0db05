// What an admin can change while the server runs; each change is recorded and can be undone.

import { get, insist, post, Problem, repeat } from "../api.js";
import { fill, h, Keyed, say, show } from "../dom.js";
import { bytes, moment } from "../format.js";
import { button, chip, choice, confirmed, dataTable, field, notice, panel } from "../parts.js";
import { goalText, PORTFOLIO, portfolioFields } from "../portfolio.js";

export const title = "Controls";
const CONFLICT = 409;

export function mount(root, { signal }) {
  const told = notice();
  const reason = field("reason", { placeholder: "recorded with the next change", maxlength: "200", class: "grow" });
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
    h("div", { class: "row filter-row" }, reason.node),
    h("div", { class: "panels" }, state.node, policy.node),
    tenants.node,
    panel("Changes", changes.node));
  let drawn = "";
  // The last change that is shown here.
  let seen = null;

  async function load() {
    const found = await get("/v1/controls", { signal });
    seen = found.last;
    const text = JSON.stringify(found);
    if (text === drawn) return;
    drawn = text;
    state.set(found);
    policy.set(found);
    tenants.set(found.tenants);
    changes.set(found.changes);
  }

  // A change is made on top of what is shown: one that another admin has made meanwhile is seen first.
  function change(body) {
    return made("/v1/controls", seen === null ? body : { ...body, seen });
  }

  async function made(path, body) {
    const words = reason.input.value.trim();
    try {
      const record = await post(path, words ? { ...body, reason: words } : body, { signal });
      seen = record.id;
      told.good(`Done: ${record.text}`);
      reason.input.value = "";
      await load();
      return true;
    } catch (error) {
      told.error(error);
      if (error instanceof Problem && error.status === CONFLICT) await load().catch(told.polled);
      return false;
    }
  }

  function undo(each) {
    if (each.undone_by !== null && each.undone_by !== undefined) return h("span", { class: "quiet" }, `undone by ${each.undone_by}`);
    if (!each.undoable) return "";
    return button("Undo", () => made(`/v1/controls/${encodeURIComponent(each.id)}/undo`, {}), { class: "small", "aria-label": `Undo: ${each.text}` });
  }

  repeat(2, load, told.polled, signal);
}

// --- open, paused, draining; models ----------------------------------------------------------------

function stateControls(change) {
  const now = h("span");
  const asked = (what) => change({ change: what });
  const pause = button("Pause", () => asked("pause"), { title: "No waiting query starts; what runs goes on" });
  const resume = button("Resume", () => asked("resume"), { class: "main" });
  const drain = button("Drain", async () => {
    if (await confirmed("Drain the server?", "Drain it", "No further queries are taken until it is opened again; those that are there go on.")) asked("drain");
  });
  const open = button("Open", () => asked("open"), { class: "main" });
  const reset = button("Reset learned models", async () => {
    if (await confirmed("Reset what was learned?", "Reset", "Predictions begin again from the statistics. It can be undone until the next reset.")) asked("reset-models");
  }, { class: "danger" });
  const since = h("p", { class: "quiet" });
  return {
    node: panel("Server", h("div", { class: "row" }, now, pause, resume, drain, open, reset), since),
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
  const portfolio = portfolioFields();
  const apply = button("Follow", () => follow(), { class: "main" });
  const node = panel("Policy", now, h("div", { class: "row" }, select.node, apply), portfolio.node, summary);
  let known = [];
  let inForce = null;
  // What is being chosen here is not replaced by what is in force.
  let touched = false;
  for (const event of ["change", "input"]) node.addEventListener(event, () => (touched = true));

  insist(() => get("/v1/profiles", { signal }), signal).then((found) => {
    known = found.profiles;
    const names = known.map((each) => each.name).filter((name) => name !== PORTFOLIO);
    const chosen = touched || inForce === null ? select.select.value : nameOf(inForce);
    fill(select.select, [PORTFOLIO, ...names].map((name) => h("option", { value: name }, name)));
    select.select.value = chosen;
    drawDetails();
  }).catch(told.error);

  function drawDetails() {
    const name = select.select.value;
    show(portfolio.node, name === PORTFOLIO);
    say(summary, name === PORTFOLIO
      ? "The policy is chosen again and again: the queue as it is, simulated under each candidate."
      : known.find((each) => each.name === name)?.summary ?? "");
  }

  async function follow() {
    const name = select.select.value;
    const profile = name === PORTFOLIO ? portfolio.wanted(inForce?.portfolio) : name;
    if (await change({ change: "profile", profile })) touched = false;
  }

  function drawInForce() {
    select.select.value = nameOf(inForce);
    if (inForce.portfolio) portfolio.set(inForce.portfolio);
    drawDetails();
  }

  return {
    node,
    set(found) {
      inForce = found;
      fill(now, "In force: ", h("b", {}, nameOf(found)), found.portfolio ? ` (${goalText(found.portfolio.objective)})` : "");
      if (!touched) drawInForce();
    },
  };
}

function nameOf(found) {
  if (found.portfolio) return PORTFOLIO;
  return typeof found.profile === "string" ? found.profile : found.profile?.name ?? "";
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
    if (!rows.rows.has(wanted)) tenants = [...tenants, { name: wanted, limits: {} }].sort(byName);
    rows.set(tenants);
    name.input.value = "";
    rows.rows.get(wanted).node.querySelector("input").focus();
  }

  return {
    node,
    set(found) {
      const names = new Set(found.map((each) => each.name));
      // Those that were added here stay until they have a setting, and those that are written in.
      const isKept = (each) => !names.has(each.name) && (each.weight === undefined || rows.rows.get(each.name)?.isUsed());
      tenants = [...found, ...tenants.filter(isKept)].sort(byName);
      rows.set(tenants);
    },
  };
}

function byName(a, b) {
  return a.name < b.name ? -1 : Number(a.name > b.name);
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
  const isEdited = () => Object.keys(inputs).some((key) => inputs[key].value.trim() !== before[key]);
  const edited = () => show(apply, isEdited());
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

  const node = h("tr", {}, h("th", { scope: "row" }, tenant.name), cells,
    h("td", { class: "num" }, apply, button("Cancel all", cancel, { class: "small quiet danger", "aria-label": `Cancel all queries of ${tenant.name}` })));
  return {
    node,
    isUsed: () => isEdited() || node.contains(document.activeElement),
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
