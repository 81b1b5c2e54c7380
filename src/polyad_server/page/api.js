// Calls the native API. The key is held for this browser tab only.

import { el, openDialog } from "./dom.js";

const KEY = "polyad-key";
let workspace = "";
let retrievers = [];

export class ApiError extends Error {
  constructor(status, detail) {
    super(detail);
    this.status = status;
  }
}

export function setWorkspace(name) {
  workspace = name;
}

export function getWorkspace() {
  return workspace;
}

/** Remember the names of the search methods that the server offers. */
export function setRetrievers(names) {
  retrievers = names;
}

export function getRetrievers() {
  return retrievers;
}

/** Forget the key of this tab. */
export function forgetKey() {
  sessionStorage.removeItem(KEY);
}

export function hasKey() {
  return sessionStorage.getItem(KEY) !== null;
}

/** Send a request and return its response; asks for a key if one is needed. */
async function send(path, { method = "GET", query = {}, json, body, signal } = {}) {
  const parameters = new URLSearchParams();
  if (workspace) parameters.set("workspace", workspace);
  for (const [name, value] of Object.entries(query)) {
    if (value !== "" && value !== null && value !== undefined) parameters.set(name, value);
  }
  const headers = {};
  const key = sessionStorage.getItem(KEY);
  if (key) headers.Authorization = `Bearer ${key}`;
  if (json !== undefined) {
    headers["Content-Type"] = "application/json";
    body = JSON.stringify(json);
  }
  const text = parameters.toString();
  const response = await fetch(`${path}${text ? `?${text}` : ""}`, { method, headers, body, signal });
  if (response.status === 401) {
    await askForKey(Boolean(key));
    return send(path, { method, query, json, body, signal });
  }
  if (!response.ok) {
    const problem = await response.json().catch(() => ({}));
    throw new ApiError(response.status, problem.detail ?? problem.error?.message ?? `the server answered ${response.status}`);
  }
  return response;
}

/** Send a request and return the JSON of its response. */
export async function call(path, options) {
  return (await send(`/api/v1/${path}`, options)).json();
}

/** Request a picture or a file and return it as a Blob, with the headers of the response. */
export async function getBlob(path, options) {
  const response = await send(`/api/v1/${path}`, options);
  return { blob: await response.blob(), headers: response.headers };
}

/** Send a request and yield the server-sent events of its response as {event, data}. */
export async function* stream(path, options) {
  const response = await send(`/api/v1/${path}`, options);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let buffer = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    buffer += value;
    const blocks = buffer.split("\n\n");
    buffer = blocks.pop();
    for (const block of blocks) {
      const lines = block.split("\n");
      const field = (name) =>
        lines.filter((line) => line.startsWith(`${name}: `)).map((line) => line.slice(name.length + 2)).join("\n");
      yield { event: field("event"), data: JSON.parse(field("data") || "null") };
    }
  }
}

let waiting = null;

/** Ask for a key once, however many requests need it. */
function askForKey(wasWrong) {
  waiting ??= new Promise((resolve) => {
    const input = el("input", { type: "password", name: "key", required: true, autocomplete: "off", placeholder: "pk_…" });
    const form = el(
      "form.stack",
      {
        onsubmit: (event) => {
          event.preventDefault();
          sessionStorage.setItem(KEY, input.value.trim());
          waiting = null;
          close();
          resolve();
        },
      },
      el("p", {}, wasWrong ? "The server does not accept this key." : "This server needs a key."),
      el("label", {}, "Key", input),
      el("p.faint", {}, "It is held for this browser tab only. Whoever runs the server makes one with “polyad key add”."),
      el("button.primary", { type: "submit" }, "Continue"),
    );
    const close = openDialog("Key", form);
    input.focus();
  });
  return waiting;
}
