// The settings of a workspace that this browser remembers: the search method, and the number of sources of an answer.

import { call, getWorkspace } from "./api.js";
import { announce, el } from "./dom.js";
import { openForm } from "./controls.js";
import { RETRIEVERS } from "./form.js";

const KEY = "polyad-settings";

const readAll = () => JSON.parse(localStorage.getItem(KEY) ?? "{}");

/** Return the options of a search that this browser remembers for the workspace; those of the address take precedence. */
export function readSettings() {
  const { retriever, k } = readAll()[getWorkspace()] ?? {};
  return { ...(retriever && { retriever }), ...(k && { k }) };
}

/** Show the settings of the workspace in a dialog; `onChange` is called after they were saved. */
export async function openSettings(onChange) {
  const { retriever = "", k = "" } = readAll()[getWorkspace()] ?? {};
  const { settings, language_model: model } = await call("stats");
  const choice = el("select", {}, el("option", { value: "" }, "automatic"), RETRIEVERS.map((name) => el("option", { value: name, selected: name === retriever }, name)));
  const number = el("input", { type: "number", min: 1, max: 50, value: k, placeholder: "5" });
  const onSubmit = () => {
    localStorage.setItem(KEY, JSON.stringify({ ...readAll(), [getWorkspace()]: { retriever: choice.value, k: Number(number.value) || 0 } }));
    announce("Saved in this browser.");
    onChange();
  };
  const facts = [["Embedder", settings.embedder], ["Language model", model || "none: answers are the evidence alone"]];
  const list = el("dl.metadata", {}, facts.map(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]));
  openForm({ title: "Settings", fields: [el("label", {}, "Search method", choice), el("label", {}, "Number of sources", number), list, el("p.faint", {}, "Whoever runs the server chooses the models.")], verb: "Save", onSubmit });
}
