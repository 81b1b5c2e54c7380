// Draws parts of the hypergraph: entities as labels, hyperedges as small diamonds that join them or as hulls around them.

import { BubbleSets, rect } from "./vendor/bubblesets.js";
import { call } from "./api.js";
import { count } from "./controls.js";
import { announce, el, fill } from "./dom.js";
import { findAnswers } from "./evidence.js";
import { GraphView, svgNode } from "./graph-view.js";
import { address, go } from "./route.js";

const MAX_ENTITIES = 36;
const LEAVES = 3; // entities of one hyperedge that nothing else in the drawing mentions
const MAX_HULLS = 12;
const MIN_RELEVANCE = 0.3; // of a source that is drawn; the best source always is

/**
 * Draw the evidence of a search into a panel.
 * @param {string} text answer of a language model; empty for the sentences that answer
 * @returns {Promise<Function>} call it with the answer of a language model, whose names are then drawn first
 */
export async function evidenceGraph(panel, evidence, text = "") {
  const answer = text || findAnswers(evidence.hits).map((each) => each.text).join(" ");
  const graph = new Hypergraph(evidence.query ?? "", answer);
  evidence.hits.forEach((hit, index) => {
    if (index > 0 && hit.relevance !== null && hit.relevance < MIN_RELEVANCE) return;
    for (const edge of hit.hyperedges) graph.addHyperedge({ ...edge, passage_id: hit.passage_id }, index + 1);
  });
  for (const step of evidence.trace ?? []) graph.markNames([step.matched, step.reached, ...step.via]);
  const render = await draw(panel, graph, "How the evidence hangs together");
  return async (newText) => {
    const listDrawn = () => graph.select().entities.map((each) => each.key).join("\n");
    const before = listDrawn();
    graph.answer = newText.toLowerCase();
    if (listDrawn() !== before) await render();
  };
}

/** Draw an entity and its neighbours into a panel. */
export async function neighbourhoodGraph(panel, neighbourhood) {
  const graph = new Hypergraph(neighbourhood.entities[0].name);
  for (const edge of neighbourhood.hyperedges) graph.addHyperedge(edge);
  await draw(panel, graph, "Neighbours");
}

/** The entities and hyperedges of a drawing. */
class Hypergraph {
  /**
   * @param {string} question text whose names come first
   * @param {string} answer text whose names come next
   */
  constructor(question, answer = "") {
    this.question = question.toLowerCase();
    this.answer = answer.toLowerCase();
    this.marked = new Set();
    this.hyperedges = new Map();
    this.entities = new Map();
    this.asked = new Set(); // entities that were selected to show their neighbours
  }

  addHyperedge(edge, source = 0) {
    if (this.hyperedges.has(edge.id)) return;
    this.hyperedges.set(edge.id, { id: `edge ${edge.id}`, kind: "hyperedge", edge, source, keys: [], width: 22, height: 22 });
  }

  markNames(names) {
    for (const name of names) this.marked.add(String(name).toLowerCase());
  }

  /** Ask the server which members of the hyperedges are names. */
  async loadNames() {
    const hyperedges = [...this.hyperedges.keys()].slice(0, 500);
    const { entities, members } = await call("graph", { method: "POST", json: { hyperedges } });
    for (const entity of entities) {
      const name = entity.name.toLowerCase();
      const isMarked = this.marked.has(name) || this.marked.has(entity.key) || this.question.includes(name) || this.asked.has(entity.key);
      this.entities.set(entity.key, { ...this.entities.get(entity.key), ...entity, id: entity.key, kind: "entity", isMarked });
    }
    for (const [id, keys] of Object.entries(members)) this.hyperedges.get(id).keys = keys;
  }

  /** Return what is drawn: entities of the question or the path first, then those of the answer, then those in several documents or hyperedges. */
  select() {
    const edges = [...this.hyperedges.values()];
    const degrees = new Map();
    for (const { keys } of edges) for (const key of keys) degrees.set(key, (degrees.get(key) ?? 0) + 1);
    const rank = (key) => {
      const { isMarked, name, documents } = this.entities.get(key);
      return (isMarked ? 10_000 : 0) + (this.answer.includes(name.toLowerCase()) ? 1000 : 0) + (documents > 1 ? 100 : 0) + degrees.get(key);
    };
    const isShared = (key) => rank(key) > 1;
    const wanted = new Set([...degrees.keys()].filter(isShared));
    for (const { keys } of edges) for (const key of keys.filter((each) => !isShared(each)).slice(0, LEAVES)) wanted.add(key);
    const keys = [...wanted].sort((a, b) => rank(b) - rank(a)).slice(0, MAX_ENTITIES);
    const entities = keys.map((key) => Object.assign(this.entities.get(key), { degree: degrees.get(key) }));
    const drawn = new Set(entities);
    const hyperedges = edges.map((edge) => Object.assign(edge, { members: edge.keys.map((key) => this.entities.get(key)).filter((each) => drawn.has(each)) })).filter((edge) => edge.members.length);
    const links = hyperedges.flatMap((edge) => edge.members.map((each) => ({ source: edge, target: each, isStrong: each.isMarked })));
    return { entities, hyperedges, links };
  }
}

async function draw(panel, graph, title) {
  const details = el("p.graph-details", { dir: "auto", "aria-live": "polite" });
  const legend = el("p.graph-legend");
  const toggle = el("button.quiet", { type: "button", "aria-pressed": "false" }, "Hulls");
  const view = new GraphView({ details, hint: "Select an entity to add its neighbours, a diamond to read its sentence." });
  const grow = async (entity) => {
    graph.asked.add(entity.key);
    const around = await call("neighbourhood", { query: { entity: entity.key, limit: 8 } });
    const before = graph.hyperedges.size;
    for (const edge of around.hyperedges) graph.addHyperedge(edge);
    const added = graph.hyperedges.size - before;
    announce(added ? `${count(added, "fact")} of ${entity.name} added` : `${entity.name} has no more`);
    await render();
  };
  const render = async () => {
    await graph.loadNames();
    const { entities, hyperedges, links } = graph.select();
    const hasHulls = toggle.getAttribute("aria-pressed") === "true" && hyperedges.length <= MAX_HULLS;
    toggle.hidden = hyperedges.length > MAX_HULLS;
    legend.textContent = describe(hyperedges, entities, hasHulls);
    const open = (event, entity) => (event.shiftKey || event.altKey ? go("entity", { name: entity.name }) : grow(entity));
    const shapes = [...hyperedges.map((edge) => ({ node: edge, label: edge.edge.text, role: "link", className: "hyperedge", draw: drawDiamond, open: () => go("passage", { id: edge.edge.passage_id }) }))];
    for (const entity of entities) {
      const label = `${entity.name}, ${count(entity.degree, "fact")}`;
      shapes.push({ node: entity, label, role: "button", className: entity.isMarked ? "entity path" : "entity", open: (event) => open(event, entity) });
    }
    view.draw(shapes, links, hasHulls ? () => hyperedges.map((edge, index) => drawHull(edge, entities, index)) : null);
    if (!entities.length) fill(view.area, el("p.faint", {}, "These passages state no named entities."));
  };
  toggle.addEventListener("click", () => {
    toggle.setAttribute("aria-pressed", String(toggle.getAttribute("aria-pressed") !== "true"));
    render();
  });
  fill(panel, el("header.graph-head", {}, el("h2", {}, title), view.controls(toggle)), view.area, legend, details);
  await render();
  return render;
}

function describe(hyperedges, entities, hasHulls) {
  if (hasHulls) return "Each coloured area is one fact and surrounds the entities that it joins.";
  const numbered = hyperedges.some((edge) => edge.source) ? "A diamond is a fact, with the number of its source" : "A diamond is a fact that joins entities";
  return entities.some((each) => each.isMarked) ? `${numbered}; blue names are in the question or led to a source.` : `${numbered}.`;
}

function drawDiamond({ source }) {
  const size = source ? 11 : 6;
  return [svgNode("path", { d: `M0 ${-size}L${size} 0L0 ${size}L${-size} 0Z` }), source ? svgNode("text", { y: 3.5, class: "step" }, String(source)) : null];
}

function drawHull(edge, entities, index) {
  const box = ({ x, y, width, height }) => rect(x - width / 2, y - height / 2, width, height);
  const bubbles = new BubbleSets();
  for (const each of [edge, ...edge.members]) bubbles.pushMember(box(each));
  for (const each of entities) if (!edge.members.includes(each)) bubbles.pushNonMember(box(each));
  const path = bubbles.compute().sample(8).simplify(0).bSplines().simplify(0);
  return svgNode("path", { d: path.toString(), class: "hull", "data-a": edge.id, "data-hue": index % 8 });
}

// The whole index

/** Show the most frequent entities of the index by communities, and find the path between two of them. */
export async function showGraph(main, parameters, signal) {
  const details = el("p.graph-details", { dir: "auto", "aria-live": "polite" });
  const view = new GraphView({ details, hint: "Select an entity to see its facts." });
  const legend = el("p.graph-legend", {}, "Colours are communities: entities that often stand in the same facts. Larger names stand in more passages.");
  const chips = el("p.options");
  fill(
    main,
    el("section.page.wide", {}, el("h1", {}, "Graph"), pathForm(parameters, signal), el("section.graph-panel.whole", { "aria-label": "The whole index" }, el("header.graph-head", {}, chips, view.controls()), view.area, legend, details)),
  );
  fill(view.area, el("p.faint", {}, "Loading …"));
  const overview = await call("graph", { query: { limit: 70 }, signal });
  if (!overview.entities.length) return fill(view.area, el("p.faint", {}, "The index has no named entities yet."));
  const most = overview.entities[0].documents;
  const nodes = new Map(overview.entities.map((each) => [each.key, { ...each, id: each.key, kind: "entity", scale: 0.85 + 0.6 * Math.sqrt(each.documents / most) }]));
  const links = overview.links.map(({ source, target, weight }) => ({ source: nodes.get(source), target: nodes.get(target), weight }));
  const shapes = [...nodes.values()].map((node) => {
    const type = node.type && node.type !== "name" ? `${node.type}, ` : "";
    const open = () => go("entity", { name: node.name });
    return { node, label: `${node.name}: ${type}${count(node.documents, "passage")}`, role: "link", className: "entity", hue: node.community < 0 ? null : node.community % 8, open };
  });
  view.draw(shapes, links, null);
  const types = {};
  for (const { type } of nodes.values()) if (type) types[type] = (types[type] ?? 0) + 1;
  const groups = overview.communities.slice(0, 8).map((name, number) => ({ name, hue: number % 8, includes: (node) => node.community === number }));
  for (const [type, number] of Object.entries(types)) if (Object.keys(types).length > 1) groups.push({ name: `${type} (${number})`, includes: (node) => node.type === type });
  fill(chips, groups.map((group) => groupChip(group, view, chips)));
}

/** Return a button that dims all nodes outside a community or of other types. */
function groupChip({ name, hue = null, includes }, view, chips) {
  const chip = el("button.chip", { type: "button", "aria-pressed": "false", dir: "auto" }, hue !== null && el("span.swatch", { "data-hue": hue }), name);
  chip.addEventListener("click", () => {
    const isOn = chip.getAttribute("aria-pressed") !== "true";
    for (const each of chips.querySelectorAll("button")) each.setAttribute("aria-pressed", "false");
    chip.setAttribute("aria-pressed", String(isOn));
    view.dimAllBut(isOn ? includes : null);
  });
  return chip;
}

function pathForm(parameters, signal) {
  const [from, to] = ["from", "to"].map((key) => el("input", { name: key, dir: "auto", value: parameters.get(key) ?? "", required: true, placeholder: key === "from" ? "One entity" : "Another entity", "aria-label": key === "from" ? "Path from" : "Path to" }));
  const result = el("div", { "aria-live": "polite" });
  const submit = (event) => {
    event.preventDefault();
    go("graph", { from: from.value.trim(), to: to.value.trim() });
  };
  if (parameters.get("from") && parameters.get("to")) showPath(result, parameters.get("from"), parameters.get("to"), signal);
  return el("div.path", {}, el("form.path-form", { onsubmit: submit }, el("span", {}, "Path between"), from, el("span", {}, "and"), to, el("button", { type: "submit" }, "Show")), result);
}

async function showPath(result, source, target, signal) {
  try {
    const { steps } = await call("path", { query: { source, target }, signal });
    if (!steps.length) return fill(result, el("p.faint", {}, "No facts connect them."));
    const item = (step) => el("li", {}, el("p", { dir: "auto" }, el("strong", {}, entityLink(step.from_name)), " → ", el("strong", {}, entityLink(step.to_name))), el("p.excerpt", { dir: "auto" }, step.text), el("a", { href: address("passage", { id: step.passage_id }), dir: "auto" }, step.title));
    fill(result, el("ol.path-steps", {}, steps.map(item)));
  } catch (error) {
    if (!signal.aborted) fill(result, el("p.error", { role: "alert" }, error.message));
  }
}

/** Return the address of an entity, for lists beside the graph. */
export function entityLink(name) {
  return el("a", { href: address("entity", { name }) }, name);
}
