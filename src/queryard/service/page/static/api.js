// The server's API: requests with the token, problems as errors, streams that come back.

const KEY = "queryard.token";
const PATIENCE_MS = 20_000;
const FIRST_PAUSE_S = 0.5;
const LONGEST_PAUSE_S = 10;
const AGAIN_S = 3;
// A stream shows life at least every 15 s.
const SILENCE_MS = 25_000;
// Answers that another try does not change.
const FINAL = new Set([401, 403, 404]);

// Tells "signed-out", "lost" and "back".
export const connection = new EventTarget();
let isLost = false;
let retryAt = 0;
const wakers = new Set();

export class Problem extends Error {
  constructor(content, status) {
    super(content.detail || content.title || `status ${status}`);
    this.status = status;
    this.title = content.title || "The request fails";
    this.type = content.type || "";
    this.line = content.line;
    this.query = content.query;
  }
}

// The server does not answer.
export class Lost extends Error {}

export function token() {
  return sessionStorage.getItem(KEY);
}

export function signIn(secret) {
  sessionStorage.setItem(KEY, secret);
}

export function signOut(reason = "") {
  if (token() === null) return;
  sessionStorage.removeItem(KEY);
  connection.dispatchEvent(new CustomEvent("signed-out", { detail: reason }));
}

// A link of `queryard serve --demo` has the token after the hash, which no server ever sees.
export function takeTokenFromAddress() {
  const found = /^#token=([^&]+)/.exec(location.hash);
  if (found === null) return;
  signIn(decoded(found[1]));
  history.replaceState(null, "", location.pathname + location.search);
}

// A part of an address; one that is not well encoded is taken as it is.
export function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

// One request; `body` becomes JSON. Gives the response, or raises `Problem` or `Lost`.
export async function ask(method, path, { body, signal, accept, keepalive, patience = PATIENCE_MS } = {}) {
  const headers = { Authorization: `Bearer ${token()}` };
  if (accept) headers.Accept = accept;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const late = AbortSignal.timeout(patience);
  let response;
  try {
    response = await fetch(path, {
      method,
      headers,
      body: body === undefined ? undefined : JSON.stringify(body),
      signal: signal ? AbortSignal.any([signal, late]) : late,
      keepalive,
      cache: "no-store",
      credentials: "omit",
    });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new Lost("the server does not answer");
  }
  heard();
  if (response.ok) return response;
  let content = {};
  try {
    content = await response.json();
  } catch {
    content = { title: response.statusText };
  }
  if (response.status === 401) signOut(content.detail || "the token is not valid");
  throw new Problem(content, response.status);
}

export async function get(path, options) {
  return JSON.parse(await textOf(await ask("GET", path, options), options?.signal));
}

export async function post(path, body, options) {
  return JSON.parse(await textOf(await ask("POST", path, { ...options, body }), options?.signal));
}

export async function remove(path, options) {
  const response = await ask("DELETE", path, options);
  return response.status === 204 ? null : JSON.parse(await textOf(response, options?.signal));
}

// What a response says; raises `Lost` if the connection is cut meanwhile.
export async function textOf(response, signal) {
  try {
    return await response.text();
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new Lost("the answer was cut off");
  }
}

// A path with its parameters; what is null is left out.
export function address(path, parameters = {}) {
  const found = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    if (value !== null && value !== undefined && value !== "") found.set(name, value);
  }
  const text = found.toString();
  return text ? `${path}?${text}` : path;
}

// --- whether the server answers ----------------------------------------------------------------

export function state() {
  return { isLost, retryAt };
}

function heard() {
  if (!isLost) return;
  isLost = false;
  connection.dispatchEvent(new Event("back"));
  tryNow(); // what waits for the server need not wait any longer
}

function lost(pauseS) {
  isLost = true;
  retryAt = Date.now() + pauseS * 1000;
  connection.dispatchEvent(new Event("lost"));
}

export function tryNow() {
  for (const wake of [...wakers]) wake();
}

function pause(pauseS, signal) {
  return new Promise((resolve) => {
    const wake = () => {
      clearTimeout(timer);
      wakers.delete(wake);
      signal.removeEventListener("abort", wake);
      resolve();
    };
    const timer = setTimeout(wake, pauseS * 1000);
    wakers.add(wake);
    signal.addEventListener("abort", wake);
  });
}

// Do something that needs the server. While the server does not answer, it is done again and again,
// so it must be something that may be done twice.
export async function insist(work, signal) {
  for (;;) {
    try {
      return await work();
    } catch (error) {
      if (signal.aborted || !(error instanceof Lost)) throw error;
      await pause(AGAIN_S, signal);
      if (signal.aborted) throw error;
    }
  }
}

// --- streams of events -------------------------------------------------------------------------

// Events of one stream until its end; `heed(name, data)` gets each. A server that sends nothing at
// all for long is taken for lost.
export async function events(path, heed, signal) {
  const silent = new AbortController();
  let timer = setTimeout(() => silent.abort(), SILENCE_MS);
  const both = AbortSignal.any([signal, silent.signal]);
  try {
    const response = await ask("GET", path, {
      signal: both, accept: "text/event-stream", patience: 2 ** 31 - 1,
    });
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      clearTimeout(timer);
      timer = setTimeout(() => silent.abort(), SILENCE_MS);
      const parts = (rest + value).split("\n\n");
      rest = parts.pop();
      for (const part of parts) handOver(part, heed);
    }
  } catch (error) {
    if (signal.aborted || error instanceof Problem) throw error;
    throw new Lost("the stream was cut off");
  } finally {
    clearTimeout(timer);
    silent.abort();
  }
}

function handOver(part, heed) {
  let name = "message";
  const data = [];
  for (const line of part.split("\n")) {
    if (line.startsWith("event: ")) name = line.slice(7);
    else if (line.startsWith("data: ")) data.push(line.slice(6));
  }
  if (!data.length) return;
  try {
    heed(name, JSON.parse(data.join("\n")));
  } catch (error) {
    reportError(error); // of the page, and no reason to open the stream again
  }
}

// A stream that has no end: when it is cut, it is opened again, with longer and longer pauses. While
// the page is hidden there is no stream, since a browser has few connections for all its tabs.
export async function follow(path, heed, signal) {
  let failures = 0;
  while (!signal.aborted && token() !== null) {
    if (document.hidden) {
      await shown(signal);
      continue;
    }
    const here = new AbortController();
    const hide = () => document.hidden && here.abort();
    document.addEventListener("visibilitychange", hide);
    try {
      await events(path, (name, data) => {
        failures = 0;
        heed(name, data);
      }, AbortSignal.any([signal, here.signal]));
      failures += 1; // the server has ended it: it stops
    } catch (error) {
      if (signal.aborted) return;
      if (here.signal.aborted) continue;
      if (error instanceof Problem && error.status === 401) return;
      failures += 1;
    } finally {
      document.removeEventListener("visibilitychange", hide);
    }
    const most = Math.min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2 ** Math.min(10, failures - 1));
    const pauseS = most * (0.75 + Math.random() / 2);
    lost(pauseS);
    await pause(pauseS, signal);
  }
}

function shown(signal) {
  return new Promise((resolve) => {
    const look = () => {
      if (document.hidden && !signal.aborted) return;
      document.removeEventListener("visibilitychange", look);
      resolve();
    };
    document.addEventListener("visibilitychange", look);
    signal.addEventListener("abort", look, { once: true });
  });
}

// Call something every so often while the page is seen; errors go to `failed`, and it goes on.
export async function repeat(everyS, work, failed, signal) {
  while (!signal.aborted) {
    if (document.hidden) await shown(signal);
    if (signal.aborted) return;
    try {
      await work();
      failed(null);
    } catch (error) {
      if (signal.aborted) return;
      failed(error);
      if (error instanceof Problem && FINAL.has(error.status)) return;
    }
    await pause(everyS, signal);
  }
}

const DIGITS = "\u0001";

// JSON of rows with the digits that the server wrote: numbers that JavaScript cannot hold, and those
// with trailing zeros, keep their text; `digits` gives it.
export function exactRows(text) {
  const values = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;
  const kept = text.replace(values, (found) => {
    if (found[0] === '"') return found;
    const isPlain = /^-?\d{1,15}$/.test(found);
    return isPlain ? found : `{"\\u0001":"${found}"}`;
  });
  return JSON.parse(kept);
}

// The text of such a number; null for all other values.
export function digits(value) {
  const found = value !== null && typeof value === "object" ? value[DIGITS] : undefined;
  return found === undefined ? null : found;
}
