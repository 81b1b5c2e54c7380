// The pages of one passage, one entity and one document.

import { call } from "./api.js";
import { announce, el, fill, openDialog, readableText } from "./dom.js";
import { describePlace } from "./evidence.js";
import { entityLink, neighbourhoodGraph } from "./graph.js";
import { address, go } from "./main.js";

const crumbs = (...parts) => el("p.crumbs", {}, parts.flatMap((part, index) => (index ? [" / ", part] : [part])));

export async function showPassage(main, parameters, signal) {
  const id = parameters.get("id");
  const [passage, { hyperedges }] = await Promise.all([
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
      el("p", {}, el("a", { href: open }, "Show in the document")),
      el("h2", {}, "Facts"),
      hyperedges.length ? hyperedges.map((edge) => factCard(edge)) : el("p.faint", {}, "None."),
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
  return el(
    "article.fact",
    {},
    el("p", { dir: "auto" }, readableText(edge.text)),
    el("p.members", {}, edge.entities.map((name) => el("span.chip", { dir: "auto" }, entityLink(name)))),
    el("footer", {}, el("button.quiet", { type: "button", onclick: () => askToRetract({ hyperedge: edge.id }, edge.text) }, "Retract …")),
  );
}

/** Show what a retraction would withdraw, and withdraw it when its reason is confirmed. */
async function askToRetract(selector, title) {
  const preview = await call("retractions", { method: "POST", json: { ...selector, reason: "preview", dry_run: true } });
  const reason = el("input", { dir: "auto", required: true, maxlength: 2000, placeholder: "superseded in 2025" });
  const facts = preview.withdrawn.slice(0, 20).map((one) => el("li", { dir: "auto" }, one.text, one.entities.length ? ` (${one.entities.join(", ")})` : ""));
  const more = preview.withdrawn.length - facts.length;
  const form = el(
    "form.stack",
    {
      onsubmit: async (event) => {
        event.preventDefault();
        await call("retractions", { method: "POST", json: { ...selector, reason: reason.value.trim() } });
        close();
        announce(`${preview.withdrawn.length} withdrawn. “polyad restore” undoes it.`);
        go("log");
      },
    },
    el("p", {}, `This withdraws ${preview.withdrawn.length === 1 ? "one fact" : `${preview.withdrawn.length} facts`}; no search returns them any more:`),
    el("ul", {}, facts, more > 0 && el("li.faint", {}, `and ${more} more`)),
    el("label", {}, "Reason", reason),
    el("button.primary", { type: "submit" }, "Retract"),
  );
  const close = openDialog(`Retract: ${title.slice(0, 80)}`, form);
  reason.focus();
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
  const page = el(
    "div.reading",
    {},
    crumbs("entity"),
    el("h1", { dir: "auto" }, entity.name),
    entity.type && entity.type !== "name" && el("p.place", {}, entity.type),
    entity.description && el("p", { dir: "auto" }, entity.description),
    el(
      "p.actions",
      {},
      el("button.quiet", { type: "button", onclick: () => askForAlias(entity.name) }, "Add another name …"),
      el("button.quiet", { type: "button", onclick: () => askToRetract({ entity: entity.name }, entity.name) }, "Retract from all facts …"),
    ),
    el("h2", {}, `${around.hyperedges.length} of ${around.total} facts`),
    facts,
  );
  fill(main, el("section.results", {}, page, graph));
  document.title = `${entity.name} – polyad`;
  neighbourhoodGraph(graph, around);
}

function askForAlias(entity) {
  const name = el("input", { dir: "auto", required: true, maxlength: 500, placeholder: "USA" });
  const form = el(
    "form.stack",
    {
      onsubmit: async (event) => {
        event.preventDefault();
        const report = await call("aliases", { method: "POST", json: { name: name.value.trim(), entity } });
        close();
        announce(`${report.documents.length} documents changed. “polyad alias --remove” undoes it.`);
        go("entity", { name: entity });
      },
    },
    el("label", {}, `Another name of ${entity}`, name),
    el("p.faint", {}, "Facts of this name become facts of the entity, also in documents that are added later."),
    el("button.primary", { type: "submit" }, "Add"),
  );
  const close = openDialog("Another name", form);
  name.focus();
}

export async function showDocument(main, parameters, signal) {
  const id = parameters.get("id");
  const found = await call("document", { query: { id }, signal });
  const [start, end] = ["start", "end"].map((key) => Number(parameters.get(key) ?? 0));
  fill(
    main,
    el(
      "section.page",
      {},
      crumbs(el("a", { href: address("documents") }, "documents"), el("bdi", {}, found.id)),
      el("h1", { dir: "auto" }, found.title || found.id),
      metadataList(found.metadata),
      el(
        "p.actions",
        {},
        el("button.quiet", { type: "button", onclick: () => hide(found.id) }, "Hide from searches"),
        el("button.quiet", { type: "button", onclick: () => askToRemove(found.id) }, "Remove …"),
      ),
      el("div.text", { dir: "auto" }, readableText(found.text, start, end)),
    ),
  );
  document.title = `${found.title || found.id} – polyad`;
  main.querySelector("#span")?.scrollIntoView({ block: "center" });
}

async function hide(id) {
  await call("documents/disable", { method: "POST", json: { ids: [id] } });
  announce(`${id} is hidden. “polyad enable” shows it again.`);
}

function askToRemove(id) {
  const confirm = async () => {
    await call("document", { method: "DELETE", query: { id } });
    close();
    go("documents");
  };
  const close = openDialog(
    "Remove the document",
    el("div.stack", {}, el("p", {}, el("bdi", {}, id), " and all that was derived from it are removed."), el("button.primary", { type: "button", onclick: confirm }, "Remove")),
  );
}
