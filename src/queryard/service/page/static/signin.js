// The sign-in: a token, which stays in this tab.

import { get, Lost, signIn, token } from "./api.js";
import { fill, h, say, show } from "./dom.js";

export function signInView(reason, signedIn, given = "") {
  const secret = h("input", {
    id: "token", type: "password", autocomplete: "current-password", spellcheck: "false",
    placeholder: "qy_…", required: true, value: given, autofocus: true,
  });
  const told = h("p", { class: "notice bad", role: "alert", hidden: true });
  const tell = (text) => {
    say(told, text);
    show(told, Boolean(text));
  };
  const go = h("button", { class: "main", type: "submit" }, "Sign in");
  const form = h("form", {
    class: "sign-in",
    onsubmit: async (event) => {
      event.preventDefault();
      go.disabled = true;
      signIn(secret.value.trim());
      try {
        await get("/v1/whoami");
        signedIn();
      } catch (error) {
        go.disabled = false;
        if (token() !== null) tell(error instanceof Lost ? "The server does not answer." : error.message);
      }
    },
  },
    h("img", { src: "/page/icon.svg", alt: "", width: 40, height: 40 }),
    h("h1", {}, "Queryard"),
    h("label", { for: "token" }, "Token"),
    secret, go, told,
    h("p", { class: "quiet" }, "The server shows one when it first starts; ", h("code", {}, "queryard token add NAME"), " makes others. It is kept in this tab only."));
  fill(document.body, h("main", { class: "sign-in-page" }, form));
  document.title = "Queryard";
  tell(reason);
  secret.focus();
}
