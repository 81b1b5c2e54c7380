// Evidence: the cards of hits, an answer with its citations, and where a hit stands in its document.

import { address } from "./main.js";
import { el, markWords } from "./dom.js";

/** Return where a hit stands: document, page, slide, sheet and heading. */
export function describePlace(hit) {
  // The title of a passage ends with its headings, which stand on a line of their own.
  const title = (hit.heading && hit.title?.endsWith(` / ${hit.heading}`) ? hit.title.slice(0, -hit.heading.length - 3) : hit.title) || hit.document_id;
  const parts = [];
  const last = hit.end_page && hit.end_page !== hit.page ? `–${hit.end_page}` : "";
  if (hit.page) parts.push(hit.page_label && hit.page_label !== String(hit.page) ? `p. ${hit.page_label} (${hit.page})` : `p. ${hit.page}${last}`);
  if (hit.slide) parts.push(`slide ${hit.slide}`);
  if (hit.sheet) parts.push(`sheet ${hit.sheet}`);
  if (hit.heading && hit.heading !== title) parts.push(hit.heading);
  return { title, rest: parts.join(" · ") };
}

/** Return the address of a hit's passage, with the sentences that the excerpt shows. */
export function passageAddress(hit) {
  const span = hit.excerpt ? { start: hit.excerpt.start, end: hit.excerpt.end } : {};
  return address("passage", { id: hit.passage_id, ...span });
}

/** Return the card of a hit. */
export function hitCard(hit, number, words, { shared = false } = {}) {
  const { title, rest } = describePlace(hit);
  const reason = el("details.reason", {}, el("summary", {}, "Why"), el("p", {}, hit.reason || "No reason is known."));
  return el(
    "article.card",
    { id: `hit-${number}`, tabindex: -1 },
    el(
      "header",
      {},
      el("span.number", { "aria-hidden": true }, String(number)),
      el("div", {}, el("h3", { dir: "auto" }, el("a", { href: passageAddress(hit) }, title)), rest && el("p.place", { dir: "auto" }, rest)),
      relevanceMeter(hit.relevance),
    ),
    el("p.excerpt", { dir: "auto" }, markWords(hit.excerpt?.text ?? hit.text, words)),
    hit.retracted.length > 0 &&
      el("p.warning", {}, "States what was retracted: ", hit.retracted.map((fact, index) => [index ? "; " : "", el("bdi", {}, fact.text)])),
    el("footer", {}, reason, hit.copies.length > 0 && el("span.faint", {}, `also in ${hit.copies.length} more`), shared && el("span.tag", {}, "in both")),
  );
}

function relevanceMeter(relevance) {
  if (relevance === null) return null;
  const percent = Math.round(relevance * 100);
  return el("span.relevance", { title: `Relevance ${relevance.toFixed(2)}` }, el("span.visually-hidden", {}, "Relevance "), `${percent} %`);
}

const MARK = /\[(\d{1,3}(?:\s*[,;–-]\s*\d{1,3})*)\]/g;

/** Return the text of an answer as paragraphs in which each citation mark is a link to its passage. */
export function answerNodes(text, addressOf) {
  return text
    .split(/\n{2,}/)
    .filter((part) => part.trim())
    .map((part) => el("p", { dir: "auto" }, citeMarks(part, addressOf)));
}

function citeMarks(text, addressOf) {
  const nodes = [];
  let end = 0;
  for (const match of text.matchAll(MARK)) {
    nodes.push(text.slice(end, match.index));
    for (const number of expand(match[1])) {
      const href = addressOf(number);
      nodes.push(
        href
          ? el("a.cite", { href, "aria-label": `Source ${number}` }, String(number))
          : el("a.cite", { href: `#hit-${number}`, onclick: (event) => focusHit(event, number) }, String(number)),
      );
    }
    end = match.index + match[0].length;
  }
  nodes.push(text.slice(end));
  return nodes;
}

function expand(marks) {
  return marks.split(/[,;]/).flatMap((part) => {
    const [first, last = first] = part.split(/[–-]/).map(Number);
    return Array.from({ length: Math.min(Math.max(last - first, 0), 20) + 1 }, (_, index) => first + index);
  });
}

function focusHit(event, number) {
  event.preventDefault();
  const card = document.getElementById(`hit-${number}`);
  card?.scrollIntoView({ block: "center", behavior: "smooth" });
  card?.focus();
}
