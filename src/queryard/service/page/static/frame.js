// What surrounds every view: navigation, the state of the server in a line, shortcuts, themes.

import { connection, decoded, signOut, state, tryNow } from "./api.js";
import { fill, h, say, show, toggle } from "./dom.js";
import { bytes, several } from "./format.js";
import { counts, live } from "./live.js";
import { button } from "./parts.js";

// Name, key after "g", title, and whether it is for admins only.
const VIEWS = [
  ["now", "n", "Now"],
  ["sql", "s", "SQL"],
  ["performance", "p", "Performance"],
  ["scheduler", "d", "Scheduler"],
  ["cluster", "c", "Cluster"],
  ["system", "y", "System"],
  ["archive", "a", "Archive"],
  ["logs", "l", "Logs", true],
  ["whatif", "w", "What if", true],
  ["controls", "t", "Controls", true],
];
const THEMES = ["auto", "light", "dark"];
const AGAIN_MS = 1000;

export class Frame {
  constructor(who, signal) {
    this.who = who;
    this.signal = signal;
    this.leave = null;
    this.failures = new Map();
    this.main = h("main", { id: "main", tabindex: "-1" });
    this.links = new Map(VIEWS.filter(([, , , admin]) => !admin || who.role === "admin")
      .map(([name, key, title]) => [name, h("a", { href: `#/${name}`, title: `g ${key}` }, title)]));
    this.banner = h("div", { class: "banner", role: "alert", hidden: true });
    this.pulse = h("div", { class: "pulse", "aria-live": "off" });
    this.themeButton = button("", () => this.nextTheme(), { class: "quiet", title: "Theme (t)" });
    const skip = h("a", { class: "skip", href: "#main", onclick: (event) => {
      event.preventDefault();
      this.main.focus();
    } }, "Skip to the content");
    this.menu = button("Menu", () => this.openMenu(), { class: "quiet menu-button", "aria-expanded": "false", "aria-controls": "menu" });
    this.side = h("nav", { id: "menu", "aria-label": "Views" }, [...this.links.values()],
      h("div", { class: "who" }, h("b", {}, who.name), h("span", {}, `${who.tenant}, ${who.role}`), button("Sign out", () => signOut(), { class: "quiet small" })));
    this.node = h("div", { class: "frame" },
      skip,
      h("header", { class: "top" },
        this.menu,
        h("a", { class: "brand", href: "#/now" }, h("img", { src: "/page/icon.svg", alt: "", width: 22, height: 22 }), h("span", {}, "Queryard")),
        this.pulse,
        h("div", { class: "row tools" },
          this.themeButton,
          button("?", () => this.help(), { class: "quiet", title: "Shortcuts (?)", "aria-label": "Shortcuts" }))),
      this.side,
      h("div", { class: "content" }, this.banner, this.main));
    this.drawTheme();
    const options = { signal };
    addEventListener("hashchange", () => this.route(), options);
    addEventListener("keydown", (event) => this.key(event), options);
    live.addEventListener("now", () => this.beat(), options);
    live.addEventListener("now", () => this.preload(), { once: true, signal });
    connection.addEventListener("lost", () => this.lost(), options);
    connection.addEventListener("back", () => show(this.banner, false), options);
    signal.addEventListener("abort", () => {
      clearInterval(this.countdown);
      this.leave?.abort();
    });
    if (live.doc !== null) this.beat();
  }

  // --- views -------------------------------------------------------------------------------------

  async route() {
    const [name, ...rest] = location.hash.replace(/^#\/?/, "").split("/");
    const known = name === "query" || this.links.has(name);
    if (!known) {
      location.replace("#/now");
      return;
    }
    const asked = (this.asked = {});
    this.openMenu(false);
    // The view of before goes on until the next one is there.
    const view = await this.loaded(name, asked);
    if (view === null || asked !== this.asked || this.signal.aborted) return;
    this.leave?.abort();
    this.leave = new AbortController();
    for (const [key, link] of this.links) {
      if (key === name) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
    const argument = rest.map(decoded).join("/");
    document.title = `${argument || this.links.get(name)?.textContent || view.title} · Queryard`;
    scrollTo(0, 0);
    fill(this.main);
    view.mount(this.main, { who: this.who, isAdmin: this.who.role === "admin", signal: this.leave.signal, argument });
  }

  // The module of a view. If it cannot be had now, the view is opened later, unless another one is
  // asked for meanwhile.
  async loaded(name, asked) {
    try {
      return await this.module(name);
    } catch (error) {
      if (!(error instanceof TypeError)) throw error; // of the module itself
      const again = () => asked === this.asked && !this.signal.aborted && this.route();
      if (state().isLost) connection.addEventListener("back", again, { once: true, signal: this.signal });
      else setTimeout(again, AGAIN_MS);
      return null;
    }
  }

  // A browser remembers an address of a module that has failed, so the next try has another address.
  async module(name) {
    const failures = this.failures.get(name) ?? 0;
    try {
      return await import(`./views/${name}.js${failures ? `?again=${failures}` : ""}`);
    } catch (error) {
      this.failures.set(name, failures + 1);
      throw error;
    }
  }

  // All views are loaded once there is time, so that each opens without the server.
  preload() {
    const load = () => ["query", ...this.links.keys()].forEach((name) => this.module(name).catch(() => null));
    if ("requestIdleCallback" in window) requestIdleCallback(load);
    else setTimeout(load, AGAIN_MS);
  }

  openMenu(on = !this.side.classList.contains("open")) {
    toggle(this.side, "open", on);
    this.menu.setAttribute("aria-expanded", String(on));
  }

  // --- the state of the server -------------------------------------------------------------------

  beat() {
    const doc = live.doc;
    const now = counts(doc);
    const parts = [
      h("span", { class: `dot ${doc.state}`, title: doc.state }),
      h("span", {}, `${now.busy}/${now.total} slots`),
      h("span", {}, `${several(now.running, "running", "running")}`),
      h("span", {}, `${several(now.waiting, "waiting", "waiting")}`),
      h("span", { class: "wide" }, `${bytes(doc.memory.reserved_bytes)} reserved`),
      h("span", { class: "wide" }, `policy ${doc.policy.name}`),
    ];
    if (doc.state !== "open") parts.splice(1, 0, h("b", {}, doc.state));
    fill(this.pulse, parts);
  }

  lost() {
    clearInterval(this.countdown);
    const text = h("span");
    const tell = () => {
      const left = Math.max(0, Math.ceil((state().retryAt - Date.now()) / 1000));
      say(text, left > 0 ? `The connection is lost; trying again in ${left} s. ` : "The connection is lost; trying again … ");
      if (!state().isLost) clearInterval(this.countdown);
    };
    fill(this.banner, text, button("Try now", tryNow, { class: "quiet" }));
    tell();
    show(this.banner, true);
    this.countdown = setInterval(tell, 500);
  }

  // --- themes, shortcuts -------------------------------------------------------------------------

  nextTheme() {
    const current = document.documentElement.dataset.theme ?? "auto";
    const next = THEMES[(THEMES.indexOf(current) + 1) % THEMES.length];
    if (next === "auto") {
      delete document.documentElement.dataset.theme;
      localStorage.removeItem("queryard.theme");
    } else {
      document.documentElement.dataset.theme = next;
      localStorage.setItem("queryard.theme", next);
    }
    this.drawTheme();
  }

  drawTheme() {
    const current = document.documentElement.dataset.theme ?? "auto";
    say(this.themeButton, { auto: "◐", light: "☀", dark: "☾" }[current]);
    this.themeButton.setAttribute("aria-label", `Theme: ${current}`);
  }

  key(event) {
    const typing = event.target.closest?.("input, textarea, select, [contenteditable]");
    if (typing || event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
    const afterG = this.afterG;
    this.afterG = false;
    if (afterG) {
      const found = VIEWS.find(([name, key]) => key === event.key && this.links.has(name));
      if (found) {
        event.preventDefault();
        location.hash = `#/${found[0]}`;
      }
      return;
    }
    if (event.key === "g") {
      this.afterG = true;
      setTimeout(() => (this.afterG = false), 1500);
    } else if (event.key === "?") this.help();
    else if (event.key === "t") this.nextTheme();
    else if (event.key === "/") {
      const filter = this.main.querySelector("input[type=search], textarea");
      if (filter) {
        event.preventDefault();
        filter.focus();
      }
    } else if (event.key === "j" || event.key === "k") this.step(event.key === "j" ? 1 : -1);
  }

  // To the next link of a query, or the one before.
  step(by) {
    const links = [...this.main.querySelectorAll("td a.mono, td a.sql")].filter((link) => link.matches("tr a:first-of-type"));
    const firsts = links.filter((link) => link.closest("tr").querySelector("a") === link);
    if (!firsts.length) return;
    const current = firsts.indexOf(document.activeElement?.closest?.("tr")?.querySelector("a"));
    firsts[Math.max(0, Math.min(firsts.length - 1, current + by))].focus();
  }

  help() {
    const keys = [
      ...VIEWS.filter(([name]) => this.links.has(name)).map(([, key, title]) => [`g ${key}`, title]),
      ["j, k", "the next query, the one before"],
      ["Enter", "open the query"],
      ["/", "filter, or the statement"],
      ["t", "light, dark or as the system"],
      ["Ctrl+Enter", "run the statement"],
      ["Ctrl+.", "cancel it"],
      ["Esc, Tab", "leave the statement with the keyboard"],
      ["?", "this list"],
    ];
    const dialog = h("dialog", { class: "help", "aria-label": "Shortcuts" },
      h("h2", {}, "Shortcuts"),
      h("dl", {}, keys.map(([key, text]) => h("div", {}, h("dt", {}, h("kbd", {}, key)), h("dd", {}, text)))),
      h("div", { class: "row end" }, button("Close", () => dialog.close(), { class: "main", autofocus: true })));
    dialog.addEventListener("close", () => dialog.remove());
    document.body.append(dialog);
    dialog.showModal();
  }
}
