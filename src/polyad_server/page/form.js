// The form of a question: a field that grows with its text, the retriever, a filter and a date.

import { getRetrievers } from "./api.js";
import { el } from "./dom.js";
import { go } from "./route.js";
import { describeScope } from "./scope.js";

const EDITORS = {
  where: { label: "+ filter", example: 'year >= 2020 and path like "manuals/*"', format: describeScope },
  as_of: { label: "+ date", example: "2024-05-17", format: (value) => `as of ${value}` },
};

/** Return the parameters of a view as an object; the questions of a conversation are a list. */
export function readParameters(parameters) {
  const values = Object.fromEntries([...parameters].filter(([key]) => key !== "workspace"));
  return parameters.has("q") ? { ...values, q: parameters.getAll("q") } : values;
}

/** Return a text field as high as its text. Enter submits its form, and Shift+Enter begins a new line. */
export function growingField(label, value = "", properties = {}) {
  const field = el("textarea", { name: "q", rows: 1, dir: "auto", "aria-label": label, placeholder: label, maxlength: 8000, autocomplete: "off", enterkeyhint: "search", ...properties }, value);
  const grow = () => {
    field.style.height = "auto";
    if (field.scrollHeight) field.style.height = `${field.scrollHeight}px`;
  };
  field.addEventListener("input", grow);
  field.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    field.form.requestSubmit();
  });
  new ResizeObserver(grow).observe(field);
  return field;
}

/**
 * Return the form of a first question.
 * @param {string} view the view that shows the results: "ask" or "compare"
 * @param {URLSearchParams} parameters
 * @param {Object} retrievers selected retriever by the name of its parameter
 * @param {function()} onSubmit called before the view changes
 */
export function questionForm(view, parameters, retrievers, onSubmit = () => {}) {
  const question = growingField("Ask a question", parameters.get("q") ?? "");
  const editors = Object.keys(EDITORS).map((key) => editorOf(key, parameters.get(key) ?? "", () => submit()));
  const selectors = Object.entries(retrievers).map(([name, chosen]) => retrieverSelector(name, chosen, () => submit()));
  const submit = () => {
    const fields = [...selectors, ...editors.map((editor) => editor.querySelector("input"))];
    const values = Object.fromEntries(fields.map((field) => [field.name, field.value.trim()]));
    onSubmit();
    const q = question.value.trim();
    const all = q === parameters.get("q") ? parameters.get("all") : ""; // a new question is judged anew
    go(view, { ...readParameters(parameters), ...values, q, all, saved: "" });
  };
  return el(
    "form.question",
    { role: "search", onsubmit: (event) => (event.preventDefault(), submit()) },
    el("div.question-line", {}, question, el("button.primary", { type: "submit" }, "Ask")),
    el("div.options", {}, selectors, editors),
  );
}

function retrieverSelector(name, chosen, submit) {
  const others = [...new Set([...getRetrievers(), chosen].filter(Boolean))];
  return el(
    "select.chip",
    { name, "aria-label": "Search method", onchange: submit },
    name === "retriever" && el("option", { value: "", selected: !chosen }, "search method: automatic"),
    others.map((each) => el("option", { value: each, selected: each === chosen }, each)),
  );
}

/** Return a chip that opens the field of a filter or a date, with a button that removes its value. */
function editorOf(key, value, submit) {
  const { label, example, format } = EDITORS[key];
  const input = el("input", { name: key, value, placeholder: example, dir: "auto", "aria-label": label, "aria-describedby": `problem-${key}` });
  input.addEventListener("keydown", (event) => event.key === "Enter" && (event.preventDefault(), submit()));
  const remove = () => {
    input.value = "";
    submit();
  };
  return el(
    "div.chip-editor",
    {},
    el("details", {}, el(value ? "summary.chip.value" : "summary.chip", { dir: "auto" }, value ? format(value) : label), input),
    value && el("button.quiet", { type: "button", "aria-label": `Remove ${format(value)}`, onclick: remove }, "✕"),
    el("p.error", { id: `problem-${key}`, role: "alert" }),
  );
}

/** Show an error beside the field that it is about; returns whether there is such a field. */
export function showProblem(form, message) {
  const key = { "the filter": "where", as_of: "as_of" }[message.match(/^(the filter|as_of)\b/)?.[0]];
  const input = key && form.querySelector(`input[name=${key}]`);
  if (!input?.value) return false;
  input.closest("details").open = true;
  input.setAttribute("aria-invalid", "true");
  form.querySelector(`#problem-${key}`).textContent = message;
  input.focus();
  return true;
}
