// Retracted facts: withdrawing them with a reason, and taking the retraction back, at once or later.

import { call } from "./api.js";
import { forgetTurns } from "./conversation.js";
import { announce, el, readableText } from "./dom.js";
import { count, openForm, readableDate } from "./controls.js";
import { address } from "./route.js";

/**
 * Show what a retraction would withdraw, and withdraw it when its reason is confirmed.
 * @param {Object} selector the facts to withdraw
 * @param {string} title text of the fact, or name of the entity
 * @param {Element} place the element that an Undo button replaces while the retraction can be taken back
 */
export async function askToRetract(selector, title, place) {
  const preview = await call("retractions", { method: "POST", json: { ...selector, reason: "preview", dry_run: true } });
  const missing = el("span.error", { id: "missing-reason", role: "alert" });
  const reason = el("input", { dir: "auto", "aria-required": "true", "aria-describedby": "missing-reason", maxlength: 2000, placeholder: "superseded in 2025" });
  const facts = preview.withdrawn.slice(0, 20).map((one) => el("li", { dir: "auto" }, one.text, one.entities.length ? ` (${one.entities.join(", ")})` : ""));
  const more = preview.withdrawn.length - facts.length;
  const isOne = preview.withdrawn.length === 1;
  const withdrawn = isOne ? "one fact" : count(preview.withdrawn.length, "fact");
  const promise = isOne
    ? "Searches no longer use it as a fact or as a link between documents. Its sentence stays in the document and is marked as retracted."
    : "Searches no longer use them as facts or as links between documents. Their sentences stay in the documents and are marked as retracted.";
  const onSubmit = async () => {
    if (!reason.value.trim()) {
      reason.setAttribute("aria-invalid", "true");
      missing.textContent = "Say why the fact does not hold; the reason is shown beside its sentence.";
      reason.focus();
      return false;
    }
    await call("retractions", { method: "POST", json: { ...selector, reason: reason.value.trim() } });
    forgetTurns();
    announce(`${withdrawn} withdrawn`);
    offerUndo(place, selector, withdrawn);
    return true;
  };
  openForm({
    title: "Retract",
    fields: [
      selector.entity && el("p", { dir: "auto" }, el("strong", {}, title)),
      el("p", {}, `This withdraws ${withdrawn}:`),
      selector.hyperedge ? el("blockquote", { dir: "auto" }, readableText(title)) : el("ul", {}, facts, more > 0 && el("li.faint", {}, `and ${more} more`)),
      el("p", {}, promise),
      el("label", {}, "Reason (required)", reason, missing),
    ],
    verb: "Retract",
    onSubmit,
  });
  reason.focus();
}

/** Replace an element by a note with a button that takes a retraction back. */
function offerUndo(place, selector, withdrawn) {
  const button = undoButton(selector, () => {
    note.replaceWith(place);
    place.querySelector("button")?.focus();
  });
  const note = el("p.undo", {}, `Retracted: ${withdrawn}.`, button, el("a", { href: address("log") }, "All retractions"));
  place.replaceWith(note);
  button.focus();
}

/** Return a button that takes a retraction back and then calls `onUndone`. */
function undoButton(selector, onUndone) {
  const undo = async () => {
    try {
      await call("retractions/restore", { method: "POST", json: selector });
      forgetTurns();
      onUndone();
      announce("Retraction taken back");
    } catch (error) {
      announce(error.message);
    }
  };
  return el("button", { type: "button", onclick: undo }, "Undo");
}

/** Return the card of a fact of a passage that was retracted before; `onUndone` is called when it holds again. */
export function retractedCard(fact, onUndone) {
  const isAlone = Boolean(fact.selector?.hyperedge); // otherwise other facts were retracted with it
  const names = fact.entities.length > 0 && el("p.faint", { dir: "auto" }, `Without ${fact.entities.join(", ")}`);
  return el(
    "article.fact.retracted",
    {},
    el("p", { dir: "auto" }, fact.entities.length ? readableText(fact.text) : el("s", {}, readableText(fact.text))),
    names,
    el("p.faint", { dir: "auto" }, `Retracted: ${fact.reason}`),
    el("footer", {}, isAlone && undoButton(fact.selector, onUndone), el("a", { href: address("log") }, "All retractions")),
  );
}

/** Return the list of all retractions; `onUndone` is called when one was taken back. */
export async function retractionList(onUndone, signal) {
  const { retractions, total } = await call("retractions", { query: { limit: 200 }, signal });
  if (!total) return el("p.faint", {}, "None.");
  const more = total - retractions.length;
  return el("ul.plain.retractions", {}, retractions.map((each) => retractionItem(each, onUndone)), more > 0 && el("li.faint", {}, `and ${count(more, "older one")}`));
}

function retractionItem(retraction, onUndone) {
  const [fact] = retraction.facts;
  const isAlone = Boolean(retraction.id);
  const scope = [retraction.entity && `all facts of ${retraction.entity}`, retraction.where && `all facts where ${retraction.where}`];
  const text = isAlone ? fact?.text ?? retraction.text : scope.filter(Boolean).join(", ");
  const details = [
    isAlone && retraction.entity && `without ${fact?.entities.join(", ") || retraction.entity}`,
    !isAlone && count(retraction.fact_count, "fact"),
    retraction.reason,
    readableDate(retraction.recorded),
    !retraction.selector && "no longer in the index",
  ];
  const link = fact && el("a", { href: address("passage", { id: fact.passage_id }) }, "Passage");
  return el(
    "li.fact",
    {},
    el("p", { dir: "auto" }, el("s", {}, readableText(text))),
    el("p.faint", { dir: "auto" }, details.filter(Boolean).join(" · ")),
    el("footer", {}, retraction.selector && undoButton(retraction.selector, onUndone), link),
  );
}
