// Evidence: the cards of hits, the sentence that answers, and where a hit stands in its document.

import { address } from "./route.js";
import { el, fill, markWords, questionWords } from "./dom.js";
import { pageButton } from "./pageimage.js";
import { plainReasons } from "./reasons.js";

const SNIPPET = 215; // characters of a collapsed source: three lines
const CONTEXT = 480; // letters of the sentences that answer, with their neighbours

/** Return where a hit stands: document, page, slide, sheet and heading. */
export function describePlace(hit) {
  if (hit.place !== undefined) return { title: hit.title, rest: hit.place }; // of a saved answer
  // The title of a passage ends with its headings, which stand on a line of their own.
  // The first heading of many documents is their title.
  const bare = hit.heading && hit.title === hit.heading ? hit.title.split(" / ")[0] : hit.title;
  const title = (hit.heading && bare?.endsWith(` / ${hit.heading}`) ? bare.slice(0, -hit.heading.length - 3) : bare) || hit.document_id;
  const parts = [];
  const last = hit.end_page && hit.end_page !== hit.page ? `–${hit.end_page}` : "";
  if (hit.page) parts.push(hit.page_label ? `page ${hit.page_label}` : `page ${hit.page}${last}`);
  if (hit.slide) parts.push(`slide ${hit.slide}`);
  if (hit.sheet) parts.push(`sheet ${hit.sheet}`);
  const headings = (hit.heading ?? "").split(" / ").filter((heading, index, all) => heading && heading !== title && heading !== all[index - 1]);
  if (headings.length) parts.push(headings.join(" / "));
  return { title, rest: parts.join(" · ") };
}

/** Return the name of a hit's file, unless its title says the same. */
function fileName(hit, title) {
  const name = (hit.source || hit.url || hit.document_id).split(/[\\/]/).filter(Boolean).pop() ?? "";
  return name.replace(/\.\w+$/, "") === title ? "" : name;
}

/** Return the address of a hit's passage, with the sentences that the excerpt shows. */
export function passageAddress(hit) {
  const best = hit.text === undefined || hit.place !== undefined ? null : bestSpans(hit)[0];
  const span = best ? { start: hit.start + best.start, end: hit.start + best.end } : hit.excerpt ? { start: hit.excerpt.start, end: hit.excerpt.end } : {};
  return address("passage", { id: hit.passage_id, ...span });
}

/** Return the ranges of the sentences that answer, in the characters of a hit's text. */
function bestSpans(hit) {
  if (hit.best_sentences?.length) return hit.best_sentences;
  return hit.highlight ? [{ start: hit.highlight[0], end: hit.highlight[1] }] : [];
}

/** Return a hit whose best sentence is the one with most words of a claim, unless none has two of them. */
export function focusOnClaim(hit, claim) {
  if (hit.text === undefined || !claim) return hit;
  const words = new Set(questionWords(claim));
  let [span, most] = [null, 1];
  for (const { segment, index } of new Intl.Segmenter(undefined, { granularity: "sentence" }).segment(hit.text)) {
    const number = questionWords(segment).filter((word) => words.has(word)).length;
    if (number > most) [span, most] = [{ start: index, end: index + segment.trimEnd().length }, number];
  }
  return span ? { ...hit, rank: 0, highlight: null, best_sentences: [span] } : hit;
}

/** Return whether a name in a better source led to a hit. */
const isReached = (hit) => hit.rank > 0 && /linked from/.test(hit.reason ?? "");

/** Return the sentences of a hit that answer, as one text; empty if none is known. */
export function bestSentences(hit) {
  const spans = bestSpans(hit).toSorted((a, b) => a.start - b.start);
  return spans.map((span) => tidy(hit.text.slice(span.start, span.end)).trim()).join(" ");
}

/** Return a text on one line, without headings of Markdown, rules and fences of code. */
const tidy = (text) => text.replace(/^(#{1,6}[ \t]+.*|[-=~*_+.]{3,}|`{3,}\w*)$/gm, "").replace(/\s+/g, " ");

const WIDE = /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60]/g;
const widthOf = (text) => text.length + (text.match(WIDE) ?? []).length;

/** Return the beginning of a text, at most about a number of letters wide, cut between words. */
function cut(text, width) {
  if (widthOf(text) <= width) return text;
  const size = Math.max(Math.floor((width * text.length) / widthOf(text)), 0);
  const space = text.slice(0, size).lastIndexOf(" ");
  return `${text.slice(0, space > size / 2 ? space : size)} …`;
}

const SENTENCE_END = /(?<=[.!?]["')\]”’»]*)\s+|(?<=[。！？])|\n\s*\n/g;

/** Return the ranges of the sentences and paragraphs of a text, without those that display nothing. */
function splitSentences(text) {
  const ends = [...text.matchAll(SENTENCE_END)].map((match) => [match.index, match.index + match[0].length]);
  const starts = [0, ...ends.map(([, next]) => next)];
  const ranges = starts.map((start, index) => ({ start, end: ends[index]?.[0] ?? text.length }));
  return ranges.filter(({ start, end }) => tidy(text.slice(start, end)).trim());
}

const overlap = (a, b) => a.start < b.end && b.start < a.end;

/** Return the ranges of the sentences that answer and of their neighbours, in text order, within a width in letters. */
function addNeighbours(hit, width) {
  const measure = ({ start, end }) => widthOf(tidy(hit.text.slice(start, end)));
  const best = bestSpans(hit).map((span) => ({ ...span, answers: true }));
  const selected = best.reduce((sum, span) => sum + measure(span), 0) > width ? best.slice(0, 1) : best;
  const sentences = splitSentences(hit.text);
  const edges = selected.flatMap((span) => [
    { step: 1, place: sentences.findIndex(({ start }) => start >= span.end) },
    { step: -1, place: sentences.findLastIndex(({ end }) => end <= span.start) },
  ]);
  let rest = width - selected.reduce((sum, span) => sum + measure(span), 0);
  for (let open = edges; open.length; ) {
    open = open.filter((edge) => {
      const sentence = sentences[edge.place];
      if (!sentence || measure(sentence) > rest || selected.some((span) => overlap(span, sentence))) return false;
      selected.push(sentence);
      rest -= measure(sentence);
      edge.place += edge.step;
      return true;
    });
  }
  return selected.sort((a, b) => a.start - b.start);
}

/** Return the sentences that answer between their neighbours, as nodes. */
function answerInContext(hit) {
  let end = null;
  return addNeighbours(hit, CONTEXT).map((span) => {
    const gap = end === null ? "" : tidy(hit.text.slice(end, span.start)).trim() ? " … " : " ";
    end = span.end;
    return [gap, el(span.answers ? "span.answers" : "span.context", {}, cut(tidy(hit.text.slice(span.start, span.end)).trim(), CONTEXT))];
  });
}

/** Return the three lines around the sentence that answers, with that sentence marked. */
function snippet(hit, words) {
  const [best] = bestSpans(hit);
  if (!best) return markWords(cut(tidy(hit.excerpt?.text ?? hit.text).trim(), SNIPPET), words);
  const sentence = cut(tidy(hit.text.slice(best.start, best.end)), SNIPPET);
  const rest = SNIPPET - widthOf(sentence);
  const after = rest > 20 ? cut(tidy(hit.text.slice(best.end)), rest) : best.end < hit.text.length ? " …" : "";
  return [best.start > 0 && !/^\s*(#.*)?\s*$/.test(hit.text.slice(0, best.start)) && "… ", el("mark.best", {}, markWords(sentence, words)), el("span.beside", {}, after)];
}

/** Return the text of an excerpt with the sentences that answer marked. */
function wholeExcerpt(hit, words) {
  const text = hit.excerpt?.text ?? hit.text;
  const nodes = [];
  let end = 0;
  for (const span of bestSpans(hit).toSorted((a, b) => a.start - b.start)) {
    const sentence = hit.text.slice(span.start, span.end).trim();
    const start = sentence ? text.indexOf(sentence, end) : -1;
    if (start < 0) continue;
    nodes.push(markWords(text.slice(end, start), words), el("mark.best", {}, sentence));
    end = start + sentence.length;
  }
  return [...nodes, markWords(text.slice(end), words)];
}

/** Return the card of a hit: three lines around its best sentence, and the whole excerpt on request. */
export function hitCard(hit, number, words, { id = null, shared = false } = {}) {
  const { title, rest } = describePlace(hit);
  const place = [fileName(hit, title), rest].filter(Boolean).join(" · ");
  const pageNote = hit.page_label && hit.page_label !== String(hit.page) ? `Page ${hit.page} of the file is printed as ${hit.page_label}.` : null;
  const text = el("p.excerpt.short", { dir: "auto" }, snippet(hit, words));
  const more = el("button.quiet.more", { type: "button", "aria-expanded": "false", "aria-label": `More of source ${number}` }, "More");
  more.addEventListener("click", () => {
    const isOpen = text.classList.toggle("short");
    fill(text, isOpen ? snippet(hit, words) : wholeExcerpt(hit, words));
    more.setAttribute("aria-expanded", String(!isOpen));
    more.textContent = isOpen ? "More" : "Less";
  });
  return el(
    "article.card",
    { id },
    el(
      "header",
      {},
      el("span.number", { "aria-hidden": true }, String(number)),
      el("div", {}, el("h3", { dir: "auto" }, el("a", { href: passageAddress(hit) }, title)), place && el("p.place", { dir: "auto", title: pageNote }, place)),
      relevanceMeter(hit.relevance),
    ),
    text,
    hit.retracted.length > 0 &&
      el("p.warning", {}, "States what was retracted: ", hit.retracted.map((fact, index) => [index ? "; " : "", el("bdi", {}, fact.text)])),
    el("footer", {}, more, whyDetails(hit, pageNote), pageButton(hit), hit.copies.length > 0 && el("span.faint", {}, `also in ${hit.copies.length} more`), shared && el("span.tag", {}, "in both")),
  );
}

/** Return why a hit is there, in plain words; the numbers of the ranking are one click further. */
function whyDetails(hit, pageNote) {
  const numbers = [hit.reason, hit.relevance !== null && `relevance ${hit.relevance.toFixed(2)}`, `score ${hit.score.toFixed(2)}`, pageNote];
  return el(
    "details.reason",
    {},
    el("summary", {}, "Why"),
    plainReasons(hit.reason).map((reason) => el("p", { dir: "auto" }, reason)),
    el("details", {}, el("summary", {}, "Details"), el("p", { dir: "auto" }, numbers.filter(Boolean).join("; "))),
  );
}

function relevanceMeter(relevance) {
  if (relevance === null) return null;
  const percent = Math.round(relevance * 100);
  return el("span.relevance", { title: "How probably this source helps to answer" }, el("span.visually-hidden", {}, "Relevance "), `${percent} %`);
}

/** Return the sentences that answer, or the best alone, cut, if they are wider than some letters. */
function fitSentences(hit, width) {
  const all = bestSentences(hit);
  const best = bestSentences({ ...hit, best_sentences: hit.best_sentences?.slice(0, 1) });
  return hit.rank > 0 || widthOf(all) > width ? cut(best, width) : all; // a second source adds one sentence
}

/** Return the sentences that answer, with their hits: those of the best hit, and of a second that it leads to. */
export function findAnswers(hits) {
  const [first, second] = hits;
  // Passages of one document often share names; that does not lead from source to source.
  const leads = second && second.relevance >= 0.5 && isReached(second) && second.document_id !== first.document_id;
  const answers = [first, leads && second].filter((hit) => hit && bestSentences(hit));
  return answers.map((hit) => ({ hit, text: fitSentences(hit, leads ? 200 : 320) }));
}

/** Return the sentences that answer, large, each with its source. */
export function answerSentences(hits) {
  const answers = findAnswers(hits);
  return answers.map(({ hit, text }) => {
    const { title, rest } = describePlace(hit);
    const source = el("a", { href: passageAddress(hit) }, [title, rest].filter(Boolean).join(" · "));
    return el("figure.found", {}, el("blockquote", { dir: "auto" }, answers.length === 1 ? answerInContext(hit) : el("span.answers", {}, text)), el("figcaption", { dir: "auto" }, source));
  });
}
