// The pages of one passage, one entity and one document.

import { call } from "./api.js";
import { announce, el, fill, readableText } from "./dom.js";
import { askToConfirm, count, nameLanguage, openForm, readableDate } from "./controls.js";
import { hideDocuments, indexAgain, removeDocuments, showInSearches } from "./documents.js";
import { describePlace } from "./evidence.js";
import { entityLink, neighbourhoodGraph } from "./graph.js";
import { address, go } from "./route.js";
import { pageButton, pictureList } from "./pageimage.js";
import { askToRetract, retractedCard } from "./retractions.js";
import { askInDocuments } from "./scope.js";

const crumbs = (...parts) => el("p.crumbs", {}, parts.flatMap((part, index) => (index ? [" / ", part] : [part])));

export async function showPassage(main, parameters, signal) {
  const id = parameters.get("id");
  const [passage, { hyperedges, retracted }] = await Promise.all([
    call("passage", { query: { id }, signal }),
    call("passage/hyperedges", { query: { id }, signal }),
  ]);
  const { title, rest } = describePlace(passage);
  const span = { start: Number(parameters.get("start") || passage.start), end: Number(parameters.get("end") || passage.end) };
  const isInside = passage.start <= span.start && span.end <= passage.end;
  if (!isInside) return showDocument(main, new URLSearchParams({ id: passage.document_id, ...span }), signal);
  const [start, end] = parameters.has("end") ? [span.start - passage.start, span.end - passage.start] : [0, 0];
  const open = address("document", { id: passage.document_id, ...span });
  fill(
    main,
    el(
      "section.page",
      {},
      crumbs(el("a", { href: open, dir: "auto" }, passage.document_id), "passage"),
      el("h1", { dir: "auto" }, title),
      rest && el("p.place", { dir: "auto" }, rest),
      metadataList(passage.metadata),
      el("div.text", { dir: "auto" }, readableText(passage.text, start, end)),
      el("p", {}, el("a", { href: open }, "Show in the document"), " ", pageButton(passage)),
      el("h2", {}, "Facts"),
      hyperedges.map((edge) => factCard(edge)),
      retracted.map((fact) => retractedCard(fact, () => showPassage(main, parameters, signal))),
      !hyperedges.length && !retracted.length && el("p.faint", {}, "None."),
    ),
  );
  document.title = `${title} – polyad`;
  main.querySelector("#span")?.scrollIntoView({ block: "center" });
}

function metadataList(metadata) {
  const entries = Object.entries(metadata).filter(([, value]) => String(value).length < 120);
  if (!entries.length) return null;
  const list = el("dl.metadata", {}, entries.map(([key, value]) => [el("dt", { dir: "auto" }, key), el("dd", { dir: "auto" }, String(value))]));
  return el("details.more", {}, el("summary", {}, "Metadata"), list);
}

function factCard(edge) {
  const card = el(
    "article.fact",
    {},
    el("p", { dir: "auto" }, readableText(edge.text)),
    el("p.members", {}, edge.entities.map((name) => el("span.chip", { dir: "auto" }, entityLink(name)))),
    el("footer", {}, el("button.quiet", { type: "button", onclick: () => askToRetract({ hyperedge: edge.id }, edge.text, card) }, "Retract …")),
  );
  return card;
}

export async function showEntity(main, parameters, signal) {
  const name = parameters.get("name");
  const [entity, around] = await Promise.all([
    call("entity", { query: { name }, signal }),
    call("neighbourhood", { query: { entity: name, limit: 15 }, signal }),
  ]);
  const names = new Map(around.entities.map((each) => [each.key, each.name]));
  const graph = el("aside.graph-panel", { "aria-label": "Neighbours as a hypergraph" });
  const facts = around.hyperedges.map((edge) =>
    el(
      "article.fact",
      {},
      el("p", { dir: "auto" }, readableText(edge.text)),
      el("p.members", {}, edge.entities.filter((key) => key !== entity.key).map((key) => el("span.chip", { dir: "auto" }, entityLink(names.get(key))))),
      el("footer", {}, el("a", { href: address("passage", { id: edge.passage_id }) }, "Passage")),
    ),
  );
  const actions = el(
    "p.actions",
    {},
    el("button.quiet", { type: "button", onclick: () => askForAlias(entity.name) }, "Add another name …"),
    el("button.quiet", { type: "button", onclick: () => askToRetract({ entity: entity.name }, entity.name, actions) }, "Retract from all facts …"),
  );
  const page = el(
    "div.reading",
    {},
    crumbs("entity"),
    el("h1", { dir: "auto" }, entity.name),
    entity.type && entity.type !== "name" && el("p.place", {}, entity.type),
    entity.description && el("p", { dir: "auto" }, entity.description),
    actions,
    el("h2", {}, `${around.hyperedges.length} of ${around.total} facts`),
    facts,
  );
  fill(main, el("section.results", {}, page, graph));
  document.title = `${entity.name} – polyad`;
  neighbourhoodGraph(graph, around);
}

function askForAlias(entity) {
  const name = el("input", { dir: "auto", required: true, maxlength: 500, placeholder: "USA" });
  const onSubmit = async () => {
    const report = await call("aliases", { method: "POST", json: { name: name.value.trim(), entity } });
    announce(`${count(report.documents.length, "document")} changed`);
    go("entity", { name: entity });
  };
  const help = el("p.faint", {}, "Facts of this name become facts of the entity, also in documents that are added later.");
  openForm({ title: "Another name", fields: [el("label", {}, `Another name of ${entity}`, name), help], verb: "Add", onSubmit });
  name.focus();
}

const PARTS = { text: "Text", passages: "Passages", left: "Left out" };

export async function showDocument(main, parameters, signal) {
  const id = parameters.get("id");
  const part = parameters.get("part") ?? "text";
  const found = await call("document", { query: { id }, signal });
  const { row } = found;
  const [start, end] = ["start", "end"].map((key) => Number(parameters.get(key) ?? 0));
  const tab = ([name, label]) => {
    const text = name === "passages" ? `${label} (${row.passages.toLocaleString("en")})` : label;
    return el("a", { href: address("document", { id, part: name === "text" ? "" : name }), "aria-current": name === part ? "page" : null }, text);
  };
  const content = el("div", {}, part === "text" && el("div.text", { dir: "auto" }, readableText(found.text, start, end)));
  fill(
    main,
    el(
      "section.page",
      {},
      crumbs(el("a", { href: address("documents") }, "documents"), el("bdi", {}, found.id)),
      el("h1", { dir: "auto" }, found.title || found.id),
      el("p.place", {}, describeRow(row)),
      found.url && el("p.place", { dir: "ltr" }, found.url),
      metadataList(found.metadata),
      pictureList(found),
      el("p.actions", {}, documentActions(row)),
      el("nav.tabs", { "aria-label": "Parts of the document" }, Object.entries(PARTS).map(tab)),
      content,
    ),
  );
  document.title = `${found.title || found.id} – polyad`;
  main.querySelector("#span")?.scrollIntoView({ block: "center" });
  if (part === "passages") await addPassages(content, id, "", signal);
  if (part === "left") await showLeftOut(content, id, signal);
}

function describeRow(row) {
  const state = { disabled: "hidden from searches", empty: "no text" }[row.state];
  const language = row.language && nameLanguage(row.language);
  return [row.type, language, `${row.tokens.toLocaleString("en")} tokens`, readableDate(row.date), row.recorded && `added ${readableDate(row.recorded)}`, state].filter(Boolean).join(" · ");
}

function documentActions(row) {
  const button = (label, change, view = "document") => {
    const onConfirm = async () => {
      await change.onConfirm();
      go(view, view === "document" ? { id: row.id } : {});
    };
    return el("button.quiet", { type: "button", onclick: () => askToConfirm({ ...change, onConfirm }) }, label);
  };
  return [
    row.state === "searchable" && el("button.quiet", { type: "button", onclick: () => askInDocuments([row.id]) }, "Ask in this document"),
    row.state === "disabled" ? button("Show in searches", showInSearches([row])) : button("Hide from searches …", hideDocuments([row])),
    row.source && button("Index again …", indexAgain([row]), "documents"),
    button("Remove …", removeDocuments([row]), "documents"),
  ];
}

async function addPassages(content, id, cursor, signal) {
  const page = await call("document/passages", { query: { id, cursor, limit: 50 }, signal });
  const cards = page.passages.map((passage) => {
    const { rest } = describePlace({ ...passage, title: "", document_id: "" });
    return el("article.fact", {}, rest && el("p.place", { dir: "auto" }, rest), el("div.text", { dir: "auto" }, readableText(passage.text)), el("footer", {}, el("a", { href: address("passage", { id: passage.id }) }, "Facts of this passage")));
  });
  content.append(...cards);
  if (!cursor && !cards.length) content.append(el("p.faint", {}, "None: the document is hidden from searches, or has no text."));
  if (page.next_cursor) {
    const more = el("button", { type: "button", onclick: () => (more.remove(), addPassages(content, id, page.next_cursor)) }, "More");
    content.append(more);
  }
}

/** Show what reading left out: counts by kind, and the texts themselves if the server has the file. */
async function showLeftOut(content, id, signal) {
  const { counts, texts } = await call("document/removals", { query: { id }, signal });
  const kinds = [...new Set([...Object.keys(counts), ...Object.keys(texts)])];
  if (!kinds.length) fill(content, el("p.faint", {}, "Nothing was left out in reading."));
  for (const kind of kinds) {
    content.append(el("h2", {}, `${kind} (${(counts[kind] ?? texts[kind].length).toLocaleString("en")})`));
    content.append(texts[kind] ? el("ul.plain.left-out", {}, texts[kind].slice(0, 500).map((text) => el("li", { dir: "auto" }, text))) : el("p.faint", {}, "Only their number was recorded: the server does not have the file."));
  }
}
