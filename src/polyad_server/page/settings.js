// The settings of a workspace that this browser remembers: the model that writes answers, the search method, and the number
// of sources of an answer.

import { call, getRetrievers, getWorkspace } from "./api.js";
import { announce, el } from "./dom.js";
import { openForm } from "./controls.js";

const KEY = "polyad-settings";

const readAll = () => JSON.parse(localStorage.getItem(KEY) ?? "{}");

/** Return the options of a search that this browser remembers for the workspace; those of the address take precedence. */
export function readSettings() {
  const { retriever, k } = readAll()[getWorkspace()] ?? {};
  return { ...(retriever && { retriever }), ...(k && { k }) };
}

/** Return the name of the model that writes answers; empty for the model of the server. */
export const readModel = () => readAll()[getWorkspace()]?.model ?? "";

const describeModel = ({ name, model, endpoint }) => [name, model !== name && model, endpoint && `at ${endpoint}`].filter(Boolean).join(" · ");

/** Show the settings of the workspace in a dialog; `onChange` is called after they were saved. */
export async function openSettings(onChange) {
  const { retriever = "", k = "" } = readAll()[getWorkspace()] ?? {};
  const { settings, language_model: own, models } = await call("stats");
  const none = "none: answers are the evidence alone";
  const model = models.length > 0 && el("select", {}, el("option", { value: "" }, own ? `automatic (${own})` : none), models.map((each) => el("option", { value: each.name, selected: each.name === readModel() }, describeModel(each))));
  const choice = el("select", {}, el("option", { value: "" }, "automatic"), getRetrievers().map((name) => el("option", { value: name, selected: name === retriever }, name)));
  const number = el("input", { type: "number", min: 1, max: 50, value: k, placeholder: "5" });
  const onSubmit = () => {
    const chosen = { model: model ? model.value : "", retriever: choice.value, k: Number(number.value) || 0 };
    localStorage.setItem(KEY, JSON.stringify({ ...readAll(), [getWorkspace()]: chosen }));
    announce("Saved in this browser.");
    onChange();
  };
  const facts = [["Embedder", settings.embedder], settings.languages && ["Languages", settings.languages], !model && ["Language model", own || none]].filter(Boolean);
  const list = el("dl.metadata", {}, facts.map(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]));
  openForm({ title: "Settings", fields: [model && el("label", {}, "Language model of answers", model), el("label", {}, "Search method", choice), el("label", {}, "Number of sources", number), list, el("p.faint", {}, "Whoever runs the server lists the models.")], verb: "Save", onSubmit });
}
