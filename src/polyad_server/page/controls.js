// Small parts of forms: questions with two answers, select fields with counts, and numbers as people read them.

import { el, openDialog } from "./dom.js";

export const count = (number, noun) => `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;

/** Return a number in at most three digits: 940, 3.2k, 120k, 4.5M. */
export const short = (number) => new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 2 }).format(number);

const languages = new Intl.DisplayNames(["en"], { type: "language", fallback: "code" });

/** Return the English name of the language with an ISO 639-1 code. */
export const nameLanguage = (code) => languages.of(code);

/** Return a date or time in the form of the reader's language; an incomplete date stays as it is. */
export const readableDate = (text) => (text.length < 10 ? text : new Date(text).toLocaleDateString(undefined, { dateStyle: "medium" }));

/** Ask whether to do something: what happens, to which items, and the verb on the button. */
export function askToConfirm({ title, text, items = [], verb, onConfirm }) {
  const problem = el("p.error", { role: "alert" });
  const button = el("button.primary", { type: "button" }, verb);
  button.addEventListener("click", async () => {
    button.disabled = true;
    try {
      await onConfirm();
      close();
    } catch (error) {
      problem.textContent = error.message;
      button.disabled = false;
    }
  });
  const more = items.length - 8;
  const list = items.length > 0 && el("ul", {}, items.slice(0, 8).map((item) => el("li", { dir: "auto" }, item)), more > 0 && el("li.faint", {}, `and ${more.toLocaleString("en")} more`));
  const cancel = el("button", { type: "button", onclick: () => close() }, "Cancel");
  const close = openDialog(title, el("div.stack", {}, el("p", {}, text), list, problem, el("p.buttons", {}, button, cancel)));
  cancel.focus();
}

/** Show a form in a dialog; an error of the submission, or one that returns false, leaves it open. */
export function openForm({ title, fields, verb, onSubmit }) {
  const problem = el("p.error", { role: "alert" });
  const submit = async (event) => {
    event.preventDefault();
    try {
      if ((await onSubmit()) !== false) close();
    } catch (error) {
      problem.textContent = error.message;
    }
  };
  const close = openDialog(title, el("form.stack", { onsubmit: submit }, fields, problem, el("button.primary", { type: "submit" }, verb)));
  return close;
}

/** Return a select field of the values of a facet with their counts; null if there is no choice. */
export function facetSelect({ label, values, chosen, name = (value) => value, onChange }) {
  const entries = Object.entries(values);
  if (entries.length < 2 && !chosen) return null;
  const options = entries.map(([value, number]) => {
    const key = value || "none";
    return el("option", { value: key, selected: key === chosen }, `${value ? name(value) : "none"} (${number.toLocaleString("en")})`);
  });
  if (chosen && !entries.some(([value]) => (value || "none") === chosen)) options.push(el("option", { value: chosen, selected: true }, chosen));
  return el("select.chip", { "aria-label": label, onchange: (event) => onChange(event.target.value) }, el("option", { value: "" }, `${label}: all`), options);
}
