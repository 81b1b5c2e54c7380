// The views that ask a question: a conversation with its evidence and the graph, or two retrievers side by side.

import { call } from "./api.js";
import { forgetTurns, openTurns } from "./conversation.js";
import { el, fill, format, plural, questionWords } from "./dom.js";
import { hitCard } from "./evidence.js";
import { growingField, questionForm, readParameters, showProblem } from "./form.js";
import { address, go } from "./route.js";
import { openSaved, recentConversations, saveButton } from "./saved.js";
import { readModel, readSettings } from "./settings.js";

export async function showAsk(main, parameters, signal) {
  const saved = await openSaved(parameters, signal);
  const questions = parameters.getAll("q").filter(Boolean);
  const form = questionForm("ask", parameters, { retriever: parameters.get("retriever") ?? "" }, forgetTurns);
  if (!questions.length) {
    forgetTurns();
    const about = el("div.about");
    fill(main, el("section.welcome", {}, el("h1", {}, "Ask your documents"), form, about));
    form.querySelector("textarea").focus();
    return describeIndex(about, signal);
  }
  const model = readModel();
  const turns = openTurns(questions, { ...readOptions(parameters), ...(model && { model }) }, saved?.turns);
  const graph = el("aside.graph-panel", { "aria-label": "The evidence as a hypergraph" });
  fill(main, el("section.results", {}, el("div.reading", {}, form, turns.map((turn) => turn.element), followUpForm(turns, parameters)), graph));
  document.title = `${questions[0]} – polyad`;
  for (const [index, turn] of turns.entries()) {
    if (signal.aborted) return;
    const isLast = index === turns.length - 1;
    await turn.run({ earlier: turns.slice(0, index), isLast, isNew: isLast && turn.state === "new", form, graph, signal });
  }
}

function followUpForm(turns, parameters) {
  const field = growingField("Ask a follow-up question");
  const submit = (event) => {
    event.preventDefault();
    const question = field.value.trim();
    if (question) go("ask", { ...readParameters(parameters), q: [...parameters.getAll("q"), question] });
  };
  return el(
    "form.question.follow-up",
    { onsubmit: submit },
    el("div.question-line", {}, el("a.new-chat", { href: address("ask") }, "New chat"), field, el("button.primary", { type: "submit" }, "Ask")),
    el("p.tools", {}, saveButton(turns, parameters)),
  );
}

async function describeIndex(about, signal) {
  const [stats, recent] = await Promise.all([call("stats", { signal }), recentConversations(signal)]);
  if (!stats.documents) {
    fill(about, el("p.faint", {}, "No documents yet: add some under ", el("a", { href: address("documents") }, "Documents"), "."));
    return;
  }
  const counts = [plural(stats.documents, "document"), plural(stats.entities, "entity", "entities"), plural(stats.hyperedges, "fact")];
  fill(about, el("p.faint", {}, counts.join(" · ")), recent);
  const { questions } = await call("suggestions", { signal });
  const links = questions.map((question) => el("li", {}, el("a.suggestion", { href: address("ask", { q: question }), dir: "auto" }, question)));
  if (links.length) about.prepend(el("ul.suggestions", { "aria-label": "Questions to begin with" }, links));
}

function readOptions(parameters) {
  return {
    ...readSettings(),
    ...(parameters.get("retriever") && { retriever: parameters.get("retriever") }),
    where: parameters.get("where") || null,
    as_of: parameters.get("as_of") || null,
    explain: true,
    ...(parameters.get("all") && { min_relevance: 0 }),
  };
}

// Two retrievers side by side

export async function showCompare(main, parameters, signal) {
  const question = parameters.get("q");
  const names = { a: parameters.get("a") || "default", b: parameters.get("b") || "dense" };
  const form = questionForm("compare", parameters, names);
  if (!question) {
    const about = "Two search methods are tried with the same question, and their sources stand side by side. A source that both find has the mark “in both”.";
    fill(main, el("section.welcome", {}, el("h1", {}, "Compare two search methods"), form, el("p.faint", {}, about)));
    return;
  }
  const columns = Object.values(names).map((name) => el("section.column", { "aria-label": name }, el("h2", {}, name), el("p.faint", { "aria-busy": "true" }, "Searching …")));
  fill(main, el("div.comparison", {}, el("h1.visually-hidden", {}, "Compare two search methods"), form, el("div.columns", {}, columns)));
  const options = { ...readOptions(parameters), question };
  const results = await Promise.allSettled(
    Object.values(names).map((retriever) => call("search", { method: "POST", json: { ...options, retriever }, signal })),
  );
  if (signal.aborted) return;
  const ids = results.map((result) => new Set(result.value?.hits.map((hit) => hit.passage_id)));
  results.forEach((result, index) => {
    columns[index].lastChild.remove();
    if (result.status === "fulfilled") showColumn(columns[index], result.value, ids[1 - index], questionWords(question));
    else if (!showProblem(form, result.reason.message)) columns[index].append(el("p.error", { role: "alert" }, result.reason.message));
  });
}

function showColumn(column, evidence, others, words) {
  column.firstChild.append(el("span.faint", {}, ` ${format(Math.round(evidence.timings_ms.total))} ms`));
  column.append(...evidence.hits.map((hit, index) => hitCard(hit, index + 1, words, { shared: others.has(hit.passage_id) })));
  if (!evidence.hits.length) column.append(el("p.faint", {}, "Nothing found."));
}
