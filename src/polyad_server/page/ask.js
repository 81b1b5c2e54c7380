// The views that ask a question: one retriever with an answer and the graph, or two side by side.

import { call, stream } from "./api.js";
import { el, fill, questionWords } from "./dom.js";
import { answerNodes, hitCard, passageAddress } from "./evidence.js";
import { evidenceGraph } from "./graph.js";
import { address, go } from "./main.js";
import { describeScope } from "./scope.js";
import { readSettings } from "./settings.js";

const RETRIEVERS = ["default", "hypersu", "hypergraphrag", "hyperretriever", "hypermemory", "dense", "bm25"];

export async function showAsk(main, parameters, signal) {
  const question = parameters.get("q") ?? "";
  const form = questionForm(parameters);
  if (!question) {
    fill(main, el("section.welcome", {}, el("h1", {}, "Ask your documents"), form, await describeIndex(signal)));
    form.querySelector("input").focus();
    return;
  }
  const answer = el("div.answer", { "aria-live": "polite", "aria-busy": "true" }, el("p.faint", {}, "Searching …"));
  const hits = el("div.hits");
  const graph = el("aside.graph-panel", { "aria-label": "The evidence as a hypergraph" });
  fill(main, el("section.results", {}, el("div.reading", {}, form, answer, hits), graph));
  document.title = `${question} – polyad`;
  await writeAnswer(readOptions(parameters), { answer, hits, graph, signal });
}

async function describeIndex(signal) {
  const stats = await call("stats", { signal });
  if (!stats.documents) return el("p.faint", {}, "No documents yet: add some under ", el("a", { href: address("documents") }, "Documents"), ".");
  const counts = [`${format(stats.documents)} documents`, `${format(stats.entities)} entities`, `${format(stats.hyperedges)} hyperedges`];
  return el("p.faint", {}, counts.join(" · "));
}

const format = (number) => number.toLocaleString("en");

function readOptions(parameters) {
  return {
    question: parameters.get("q"),
    ...readSettings(),
    ...(parameters.get("retriever") && { retriever: parameters.get("retriever") }),
    where: parameters.get("where") || null,
    as_of: parameters.get("as_of") || null,
    explain: true,
    ...(parameters.get("all") && { min_relevance: 0 }),
  };
}

async function writeAnswer(options, { answer, hits, graph, signal }) {
  let text = "";
  const words = questionWords(options.question);
  for await (const { event, data } of stream("ask", { method: "POST", json: { ...options, stream: true }, signal })) {
    if (signal.aborted) return;
    if (event === "text") {
      text += data.text;
      fill(answer, answerNodes(text, () => ""));
    } else if (event === "error") {
      fill(answer, el("p.error", { role: "alert" }, data.message));
    } else if (event === "done") {
      showWhole(data, words, { answer, hits, graph });
    }
  }
  answer.removeAttribute("aria-busy");
}

function showWhole(data, words, { answer, hits, graph }) {
  const sources = new Map(data.citations.map((citation) => [citation.number, citation]));
  const cite = (number) => (sources.has(number) ? passageAddress(sources.get(number)) : "");
  const note = data.note && el("p.note", {}, shortenNote(data));
  const found = data.evidence.hits;
  const all = !found.length && el("p", {}, el("a", { href: address("ask", { ...readAddress(), all: 1 }) }, "Show the closest passages"));
  fill(answer, answerNodes(data.answer, cite), note, all);
  const heading = el("h2", {}, data.answer ? "Sources" : "Evidence", el("span.faint", {}, ` ${Math.round(data.evidence.timings_ms.total)} ms`));
  fill(hits, found.length ? heading : null, found.map((hit, index) => hitCard(hit, index + 1, words)));
  if (found.length) evidenceGraph(graph, data.evidence);
}

const readAddress = () => Object.fromEntries(new URLSearchParams(location.hash.split("?")[1]));

function shortenNote(data) {
  if (data.note.startsWith("Nothing in the documents fits")) return "The documents do not seem to answer this question.";
  return data.note.startsWith("No language model is set") ? "No language model is set: this is the evidence alone." : data.note;
}

// The form

function questionForm(parameters, { fields = [] } = {}) {
  const input = el("input", {
    type: "search",
    dir: "auto",
    name: "q",
    value: parameters.get("q") ?? "",
    placeholder: "Ask a question",
    "aria-label": "Question",
    maxlength: 8000,
    autocomplete: "off",
    enterkeyhint: "search",
  });
  const view = fields.length ? "compare" : "ask";
  const submit = (changes = {}) => {
    const values = Object.fromEntries([...parameters].filter(([key]) => key !== "workspace"));
    go(view, { ...values, q: input.value.trim(), ...changes });
  };
  return el(
    "form.question",
    { role: "search", onsubmit: (event) => (event.preventDefault(), submit()) },
    el("div.question-line", {}, input, el("button.primary", { type: "submit" }, "Ask")),
    el("div.options", {}, fields.length ? fields : retrieverSelector("retriever", parameters, submit), filterChips(parameters, submit)),
  );
}

function retrieverSelector(name, parameters, submit) {
  const chosen = parameters.get(name) ?? "";
  const others = RETRIEVERS.includes(chosen) || !chosen ? RETRIEVERS : [...RETRIEVERS, chosen];
  return el(
    "select.chip",
    { "aria-label": "Retriever", onchange: (event) => submit({ [name]: event.target.value }) },
    el("option", { value: "", selected: !chosen }, "retriever: automatic"),
    others.map((each) => el("option", { value: each, selected: each === chosen }, each)),
  );
}

/** Return the filter and the time as chips that can be removed, and a field to add one. */
function filterChips(parameters, submit) {
  const chip = (key, text) =>
    parameters.get(key) &&
    el("span.chip", { dir: "auto" }, text, el("button.quiet", { type: "button", "aria-label": `Remove ${text}`, onclick: () => submit({ [key]: "" }) }, "✕"));
  const add = (key, label, example) =>
    !parameters.get(key) &&
    el(
      "details.chip-editor",
      {},
      el("summary.chip", {}, label),
      el("input", {
        placeholder: example,
        dir: "auto",
        "aria-label": label,
        onkeydown: (event) => {
          if (event.key === "Enter") {
            event.preventDefault();
            submit({ [key]: event.target.value.trim() });
          }
        },
      }),
    );
  return [
    chip("where", describeScope(parameters.get("where") ?? "")),
    chip("as_of", `as of ${parameters.get("as_of")}`),
    add("where", "+ filter", 'year >= 2020 and path like "manuals/*"'),
    add("as_of", "+ date", "2024-05-17"),
  ];
}

// Two retrievers side by side

export async function showCompare(main, parameters, signal) {
  const names = ["a", "b"].map((key, index) => parameters.get(key) || ["default", "dense"][index]);
  const submit = (changes) => {
    const values = Object.fromEntries([...parameters].filter(([key]) => key !== "workspace"));
    go("compare", { ...values, q: main.querySelector("input[type=search]").value.trim(), ...changes });
  };
  const chosen = new URLSearchParams(parameters);
  names.forEach((name, index) => chosen.set("ab"[index], name));
  const fields = ["a", "b"].map((key) => retrieverSelector(key, chosen, submit));
  const form = questionForm(parameters, { fields });
  const columns = names.map((name) => el("section.column", { "aria-label": name }, el("h2", {}, name)));
  fill(main, el("div.comparison", {}, form, el("div.columns", {}, columns)));
  if (!parameters.get("q")) return;
  const options = readOptions(parameters);
  const results = await Promise.allSettled(
    names.map((retriever) => call("search", { method: "POST", json: { ...options, retriever }, signal })),
  );
  const ids = results.map((result) => new Set(result.value?.hits.map((hit) => hit.passage_id)));
  results.forEach((result, index) => {
    if (result.status === "rejected") columns[index].append(el("p.error", { role: "alert" }, result.reason.message));
    else showColumn(columns[index], result.value, ids[1 - index], questionWords(options.question));
  });
}

function showColumn(column, evidence, others, words) {
  column.firstChild.append(el("span.faint", {}, ` ${Math.round(evidence.timings_ms.total)} ms`));
  evidence.hits.forEach((hit, index) => {
    const card = hitCard(hit, index + 1, words, { shared: others.has(hit.passage_id) });
    card.removeAttribute("id");
    column.append(card);
  });
  if (!evidence.hits.length) column.append(el("p.faint", {}, "Nothing found."));
}
