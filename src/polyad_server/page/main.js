// The frame of the page: navigation, workspaces and theme.

import { call, forgetKey, hasKey, setRetrievers, setWorkspace } from "./api.js";
import { announce, el, fill } from "./dom.js";
import { showAsk, showCompare } from "./ask.js";
import { showDocument, showEntity, showPassage } from "./objects.js";
import { showDocuments } from "./documents.js";
import { showGraph } from "./graph.js";
import { showApi, showLog } from "./manage.js";
import { address, go, readAddress } from "./route.js";
import { showConversations } from "./saved.js";
import { openSettings } from "./settings.js";

const VIEWS = {
  __proto__: null, // so that "constructor" in an address is no view
  "": showAsk,
  ask: showAsk,
  compare: showCompare,
  passage: showPassage,
  entity: showEntity,
  document: showDocument,
  documents: showDocuments,
  graph: showGraph,
  conversations: showConversations,
  log: showLog,
  api: showApi,
};
const LINKS = { ask: "Ask", compare: "Compare", documents: "Documents", graph: "Graph", log: "Log" };
const THEME = "polyad-theme";

let workspaces = [];
let leave = () => {};

async function show() {
  leave();
  const { name, parameters } = readAddress();
  setWorkspace(parameters.get("workspace") ?? (workspaces.length > 1 ? workspaces[0] : ""));
  const main = document.getElementById("main");
  drawBar(name, parameters);
  document.title = "polyad";
  const stopped = new AbortController();
  leave = () => stopped.abort();
  try {
    await (VIEWS[name] ?? showAsk)(main, parameters, stopped.signal);
  } catch (error) {
    if (!stopped.signal.aborted) fill(main, el("section.column", {}, el("p.error", { role: "alert" }, error.message)));
  }
}

function drawBar(name, parameters) {
  const active = name === "" ? "ask" : name;
  fill(
    document.querySelector(".bar nav"),
    Object.entries(LINKS).map(([view, text]) =>
      el("a", { href: address(view), "aria-current": view === active ? "page" : null }, text),
    ),
  );
  fill(
    document.querySelector(".bar-end"),
    workspaces.length > 1 && workspaceSelector(parameters),
    hasKey() && el("button.quiet", { type: "button", onclick: () => (forgetKey(), location.reload()) }, "Forget key"),
    el("button.quiet", { type: "button", onclick: () => openSettings(show) }, "Settings"),
    el("button.quiet", { type: "button", onclick: switchTheme, "aria-label": "Switch between light and dark" }, "◐"),
  );
}

function workspaceSelector(parameters) {
  const chosen = parameters.get("workspace") ?? workspaces[0];
  return el(
    "select",
    {
      "aria-label": "Workspace",
      onchange: (event) => (location.hash = `#/ask?${new URLSearchParams({ workspace: event.target.value })}`),
    },
    workspaces.map((each) => el("option", { value: each, selected: each === chosen }, each)),
  );
}

function switchTheme() {
  const dark = getComputedStyle(document.documentElement).colorScheme === "dark";
  applyTheme(dark ? "light" : "dark");
}

function applyTheme(theme) {
  document.documentElement.dataset.theme = theme;
  localStorage.setItem(THEME, theme);
}

document.addEventListener("keydown", (event) => {
  const typing = event.target.closest("input, textarea, select, dialog");
  if (event.key === "/" && !typing) {
    const input = document.querySelector("main textarea[name=q], main input[type=search]");
    if (input) {
      event.preventDefault();
      input.focus();
    } else go("ask");
  }
});

async function start() {
  const saved = localStorage.getItem(THEME);
  const system = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  document.documentElement.dataset.theme = saved ?? system;
  try {
    const listed = await call("workspaces");
    workspaces = listed.workspaces.map((each) => each.name);
    setRetrievers(listed.retrievers);
  } catch (error) {
    announce(error.message);
  }
  addEventListener("hashchange", () => {
    document.getElementById("dialog").close(); // it belongs to the page before
    show();
  });
  await show();
}

start();
