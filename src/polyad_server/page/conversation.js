// A conversation: each question with its sources and its answer. The address holds the questions; answers are kept
// while the page is open, so that the way back from a source shows them at once.

import { stream } from "./api.js";
import { announce, el, fill, plural, questionWords } from "./dom.js";
import { answerSentences, bestSentences, describePlace, findAnswers, focusOnClaim, hitCard, passageAddress } from "./evidence.js";
import { showProblem } from "./form.js";
import { evidenceGraph } from "./graph.js";
import { address, getParameters } from "./route.js";
import { markdownNodes } from "./markdown.js";
import { addPreview } from "./preview.js";
import { describeScope } from "./scope.js";

const MAX_TURNS = 20; // messages that the server gets with a follow-up question

let turns = [];
let turnsKey = "";

/** Forget all answers, so that the next question is answered anew. */
export function forgetTurns() {
  turns = [];
}

/** Return the turns of a list of questions; those that were answered before with the same options are reused, or were saved. */
export function openTurns(questions, options, saved = []) {
  const key = JSON.stringify(options);
  const same = key === turnsKey ? questions.findIndex((question, index) => turns[index]?.question !== question) : 0;
  turns = turns.slice(0, same < 0 ? questions.length : same);
  turnsKey = key;
  for (const question of questions.slice(turns.length)) {
    const turn = new Turn(question, options, turns.length + 1);
    const { [turns.length]: before } = saved;
    if (before?.question === question && before.answer) turn.restore(before);
    turns.push(turn);
  }
  return [...turns];
}

/** One question with its sources and its answer. */
class Turn {
  constructor(question, options, position) {
    this.question = question;
    this.options = options;
    this.prefix = `t${position}-hit-`; // of the ids of its sources
    this.state = "new"; // then searching, writing, done, stopped or failed
    this.text = "";
    this.evidence = null;
    this.answer = el("div.answer", { "aria-live": "polite" });
    this.notice = el("div.notice");
    this.tools = el("p.tools");
    this.hits = el("div.hits");
    const heading = position === 1 ? el("h1.visually-hidden", { dir: "auto" }, question) : el("h2.asked", { dir: "auto" }, question);
    this.element = el("article.turn", {}, heading, this.answer, this.notice, this.tools, this.hits);
  }

  get isBusy() {
    return ["searching", "writing"].includes(this.state);
  }

  /** Show a saved answer with its sources, without a search. */
  restore({ answer, sources }) {
    const citations = sources.map((source) => ({ ...source, excerpt: { ...source } }));
    Object.assign(this, { state: "done", text: answer, data: { citations } });
    const item = ({ number, ...source }) => el("li", { value: number }, el("a", { href: passageAddress(source), dir: "auto" }, source.title), source.place && ` · ${source.place}`, el("p.excerpt", { dir: "auto" }, source.excerpt.text));
    fill(this.hits, citations.length > 0 && [el("h2", {}, "Sources"), el("ol.saved-sources", {}, citations.map(item))]);
    this.draw();
  }

  /** Return the question with its answer and sources, to be saved; without an answer, the best sources. */
  toSaved() {
    const numbers = this.text ? [...new Set(this.data?.citations.map((each) => each.number) ?? [])].sort((a, b) => a - b) : [1, 2, 3, 4, 5];
    const hits = numbers.map((number) => [number, this.findHit(number)]).filter(([, hit]) => hit);
    const sources = hits.map(([number, hit]) => {
      const { title, rest } = describePlace(hit);
      const span = new URLSearchParams(passageAddress(hit).split("?")[1]);
      return { number, passage_id: hit.passage_id, title: title.slice(0, 1000), place: rest.slice(0, 1000), text: sentenceOf(hit), start: Number(span.get("start")), end: Number(span.get("end")) };
    });
    return { question: this.question, answer: this.text, sources };
  }

  /** Answer the question, unless it is answered; `context` has the earlier turns, the form, the graph and the signal. */
  async run(context, { regenerate = false } = {}) {
    this.context = context;
    if (!regenerate && ["done", "failed", "stopped"].includes(this.state)) return this.drawGraph();
    const controller = new AbortController();
    this.stop = () => controller.abort();
    Object.assign(this, { state: "searching", text: "", data: null, problem: "" });
    this.draw();
    try {
      await this.receive(AbortSignal.any([context.signal, controller.signal]), regenerate);
    } catch (error) {
      if (context.signal.aborted) this.state = "new";
      else if (controller.signal.aborted) this.state = "stopped";
      else this.fail(error.message);
    }
    if (!context.signal.aborted) this.draw();
  }

  async receive(signal, regenerate) {
    const history = this.context.earlier.flatMap((turn) => turn.toMessages()).slice(-MAX_TURNS);
    const json = { ...this.options, question: this.question, history, stream: true, regenerate };
    for await (const { event, data } of stream("ask", { method: "POST", json, signal })) {
      if (event === "evidence") {
        data.hits.forEach((hit, rank) => (hit.rank = rank));
        Object.assign(this, { evidence: data, state: "writing" });
        this.drawHits();
        this.drawGraph();
        if (this.context.isNew && this.context.earlier.length) this.element.scrollIntoView({ block: "start" });
      } else if (event === "text") this.text += data.text;
      else if (event === "error") this.fail(data.message);
      else if (event === "done") {
        Object.assign(this, { data, text: data.answer, state: "done" });
        if (this.text) this.graph?.then((follow) => follow(this.text));
      }
      this.drawSoon();
    }
    if (this.state === "writing") this.fail("the connection ended before the answer was complete");
  }

  fail(message) {
    this.state = "failed";
    this.problem = message;
    if (!this.evidence) showProblem(this.context.form, message) && (this.problem = "");
  }

  toMessages() {
    const answer = this.text || findAnswers(this.evidence?.hits ?? []).map(({ text }) => text).join(" ");
    return [{ role: "user", content: this.question }, ...(answer ? [{ role: "assistant", content: answer.slice(0, 20000) }] : [])];
  }

  /** Draw at the next frame: a fast model sends more pieces than a screen shows. */
  drawSoon() {
    this.frame ??= requestAnimationFrame(() => this.draw());
  }

  draw() {
    cancelAnimationFrame(this.frame);
    this.frame = undefined;
    const { isBusy } = this;
    if (isBusy) this.answer.setAttribute("aria-busy", "true");
    else this.answer.removeAttribute("aria-busy");
    const hits = this.evidence?.hits ?? [];
    const waits = this.state === "searching" ? "Searching …" : `${plural(hits.length, "source")} found. Writing the answer …`;
    const marks = {}; // citation marks by number
    fill(this.answer, this.text ? markdownNodes(this.text, (number) => this.cite(number, (marks[number] = (marks[number] ?? -1) + 1))) : isBusy ? el("p.faint", {}, waits) : answerSentences(hits));
    fill(this.notice, this.notices(hits));
    fill(this.tools, this.buttons(isBusy));
  }

  notices(hits) {
    const query = this.evidence?.query;
    const wasRewritten = query && query.trim() !== this.question.trim();
    const spelling = Object.entries(this.evidence?.spelling ?? {}).map(([typed, word]) => `${word} for ${typed}`);
    const isEmpty = this.state === "done" && !hits.length && !this.text;
    const absent = (this.evidence?.absent_names ?? []).map(({ text, nearest }) => `No passage contains ${text}${nearest && `; the nearest is ${nearest}`}.`);
    const note = isEmpty ? [describeNothing(this.options), ...absent].join(" ") : this.data?.note && shortenNote(this.data.note);
    const everything = address("ask", { ...Object.fromEntries(getParameters()), q: getParameters().getAll("q"), all: 1 });
    return [
      this.problem && el("p.error", { role: "alert" }, this.evidence ? `No answer: ${this.problem}. ${hits.length ? "Here is the evidence that was found." : ""}` : this.problem),
      this.state === "stopped" && el("p.note", {}, "Stopped."),
      note && el("p.note", { dir: "auto" }, note),
      spelling.length > 0 && el("p.note", { dir: "auto" }, `Searched ${spelling.join(", ")}.`),
      wasRewritten && el("p.note", { dir: "auto" }, "Searched for: ", el("bdi", {}, query)),
      this.evidence && !hits.length && !this.text && !this.options.all && el("p", {}, el("a", { href: everything, onclick: forgetTurns }, "Show the closest passages")),
    ];
  }

  buttons(isBusy) {
    if (isBusy) return el("button", { type: "button", onclick: this.stop }, "Stop");
    const again = this.text || this.problem || this.state === "stopped";
    const { model } = this.options;
    const regenerate = () => this.run(this.context, { regenerate: true });
    return [
      this.text && el("button.quiet", { type: "button", onclick: () => copy(this.toText()) }, "Copy"),
      this.text && model && el("span.faint", { dir: "auto" }, model),
      again && el("button.quiet.again", { type: "button", onclick: regenerate }, this.state === "done" ? "Regenerate" : "Try again"),
    ];
  }

  drawHits() {
    const { hits, timings_ms: times, query } = this.evidence;
    const words = questionWords(query);
    const heading = el("h2", {}, "Sources", el("span.faint", {}, ` ${Math.round(times.total)} ms`));
    fill(this.hits, hits.length > 0 && heading, hits.map((hit, index) => hitCard(hit, index + 1, words, { id: this.prefix + (index + 1) })));
  }

  drawGraph() {
    if (!this.context.isLast) return;
    this.context.graph.hidden = !this.evidence; // of a saved answer
    if (this.evidence?.hits.length) this.graph = evidenceGraph(this.context.graph, this.evidence, this.text);
  }

  /** Return the hit that a citation mark refers to; its best sentence is that of the claim before the mark. */
  findHit(number, occurrence = 0) {
    const citations = this.data?.citations.filter((each) => each.number === number) ?? [];
    const cited = citations[Math.min(occurrence, citations.length - 1)];
    const hits = this.evidence?.hits ?? [];
    const hit = cited ? hits.find((each) => each.passage_id === cited.passage_id) ?? cited : hits[number - 1];
    return hit && focusOnClaim(hit, cited?.claim);
  }

  cite(number, occurrence) {
    const hit = this.findHit(number, occurrence);
    if (!hit) return document.createTextNode(`[${number}]`);
    const { title, rest } = describePlace(hit);
    const link = el("a.cite", { href: passageAddress(hit), "aria-label": `Source ${number}` }, String(number));
    return addPreview(link, () => [el("strong", { dir: "auto" }, title), rest && el("span.place", { dir: "auto" }, rest), el("p", { dir: "auto" }, sentenceOf(hit))]);
  }

  /** Return the answer with the list of its sources, for the clipboard. */
  toText() {
    const numbers = [...new Set(this.data?.citations.map((each) => each.number) ?? [])].sort((a, b) => a - b);
    const sources = numbers.map((number) => {
      const { title, rest } = describePlace(this.findHit(number));
      return `[${number}] ${[title, rest].filter(Boolean).join(", ")}`;
    });
    return [this.text, sources.join("\n")].filter(Boolean).join("\n\n");
  }
}

/** Return the sentence of a hit or citation that answers. */
const sentenceOf = (hit) => ((hit.text !== undefined && bestSentences(hit)) || hit.excerpt?.text || "").slice(0, 400);

async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    announce("Copied with its sources.");
  } catch {
    announce("The browser does not permit copying on this page; select the text instead.");
  }
}

/** Say that nothing was found, and what was searched. */
function describeNothing({ where, as_of: date }) {
  const scope = where && describeScope(where);
  const documents = !where ? "all documents" : scope === where ? `the documents where ${where}` : scope;
  return `The documents do not seem to answer this question. Searched ${documents}${date ? ` as of ${date}` : ""}: nothing fits.`;
}

function shortenNote(note) {
  if (note.startsWith("Nothing in the documents fits")) return "The documents do not seem to answer this question.";
  return note.startsWith("No language model is set") ? "No language model is set: these are the sentences that fit best." : note;
}
