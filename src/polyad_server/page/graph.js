// Draws evidence as a hypergraph: entities as labelled dots, hyperedges as small diamonds or as hulls around their
// entities. The steps by which the search reached the evidence are numbered and drawn stronger.

import "./vendor/d3-dispatch.min.js";
import "./vendor/d3-quadtree.min.js";
import "./vendor/d3-timer.min.js";
import "./vendor/d3-force.min.js";
import { BubbleSets, circle } from "./vendor/bubblesets.js";
import { call } from "./api.js";
import { announce, el, fill, svg } from "./dom.js";
import { address, go } from "./main.js";

const { forceCollide, forceLink, forceManyBody, forceSimulation, forceX, forceY } = globalThis.d3;
const MAX_NODES = 200;
const MAX_HULLS = 15;
const CHARACTER = 6.3; // width of a character of a label in pixels, at most
const HUES = 8;

/** Draw the evidence of a search into a panel. */
export function evidenceGraph(panel, evidence) {
  const graph = new Hypergraph();
  const steps = evidence.trace ?? [];
  const numbers = new Map();
  for (const step of steps) if (!numbers.has(step.hyperedge_id)) numbers.set(step.hyperedge_id, numbers.size + 1);
  const shown = evidence.hits.flatMap((hit) => hit.hyperedges.map((edge) => ({ ...edge, passage_id: hit.passage_id })));
  for (const edge of shown) graph.addHyperedge(edge, numbers.get(edge.id));
  for (const step of steps) {
    for (const name of [step.matched, step.reached, ...step.via]) graph.markStep(step.hyperedge_id, name);
  }
  draw(panel, graph, { title: "How the evidence hangs together" });
}

/** Draw an entity and its neighbours into a panel. */
export function neighbourhoodGraph(panel, neighbourhood) {
  const graph = new Hypergraph();
  graph.addNeighbourhood(neighbourhood);
  draw(panel, graph, { title: "Neighbours" });
}

/** The nodes and links of a drawing: entities by name, hyperedges by id. */
class Hypergraph {
  constructor() {
    this.entities = new Map();
    this.hyperedges = new Map();
  }

  addEntity(name, degree = 0) {
    const id = name.toLowerCase();
    if (!this.entities.has(id)) this.entities.set(id, { id, name, degree: 0, kind: "entity", onPath: false });
    const node = this.entities.get(id);
    node.degree = Math.max(node.degree, degree);
    return node;
  }

  addHyperedge(edge, step = 0) {
    if (this.hyperedges.has(edge.id)) return;
    const members = [...new Set(edge.entities)].map((name) => this.addEntity(name));
    for (const member of members) member.degree += 1;
    this.hyperedges.set(edge.id, { id: `edge ${edge.id}`, kind: "hyperedge", edge, members, step, steps: new Set() });
  }

  addNeighbourhood({ entities, hyperedges }) {
    const names = new Map(entities.map((each) => [each.key, each]));
    for (const each of entities) this.addEntity(each.name, each.degree);
    for (const edge of hyperedges) this.addHyperedge({ ...edge, entities: edge.entities.map((key) => names.get(key).name) });
  }

  /** Mark an entity through which a step of the search went. */
  markStep(hyperedgeId, name) {
    const edge = this.hyperedges.get(hyperedgeId);
    const entity = this.entities.get(String(name).toLowerCase());
    if (edge && entity) {
      entity.onPath = true;
      edge.steps.add(entity.id);
    }
  }

  /** Return the nodes and links to draw: at most MAX_NODES, entities on the path and of high degree first. */
  select() {
    const rank = (node) => (node.onPath ? 1e6 : 0) + node.degree;
    const hyperedges = [...this.hyperedges.values()].slice(0, MAX_NODES / 2);
    const wanted = new Set(hyperedges.flatMap((edge) => edge.members));
    const entities = [...wanted].sort((a, b) => rank(b) - rank(a)).slice(0, MAX_NODES - hyperedges.length);
    const drawn = new Set(entities);
    const links = hyperedges.flatMap((edge) =>
      edge.members.filter((each) => drawn.has(each)).map((each) => ({ source: edge, target: each, onPath: edge.steps.has(each.id) })),
    );
    return { nodes: [...entities, ...hyperedges], entities, hyperedges, links, left: wanted.size - drawn.size };
  }
}

function draw(panel, graph, { title }) {
  let hulls = false;
  const area = el("div.graph-area");
  const details = el("p.graph-details", { dir: "auto", "aria-live": "polite" });
  const toggle = el("button.quiet", { type: "button", "aria-pressed": "false" }, "Hulls");
  const render = () => renderGraph(area, graph, { hulls, details, grow });
  toggle.addEventListener("click", () => {
    hulls = !hulls;
    toggle.setAttribute("aria-pressed", String(hulls));
    render();
  });
  const grow = async (entity) => {
    const around = await call("neighbourhood", { query: { entity: entity.name, limit: 8 } });
    const before = graph.hyperedges.size;
    graph.addNeighbourhood(around);
    announce(graph.hyperedges.size > before ? `${graph.hyperedges.size - before} hyperedges of ${entity.name} added` : `${entity.name} has no more`);
    render();
  };
  toggle.hidden = graph.hyperedges.size > MAX_HULLS;
  fill(panel, el("header.graph-head", {}, el("h2", {}, title), toggle), area, details);
  render();
}

function renderGraph(area, graph, { hulls, details, grow }) {
  const { nodes, entities, hyperedges, links, left } = graph.select();
  const width = Math.max(area.clientWidth, 300);
  const height = Math.max(area.clientHeight, 320);
  layOut(nodes, links, width, height);
  const labels = placeLabels(nodes, entities, width, height);
  const base = left ? `${left} entities of low degree are not drawn.` : "Select an entity to see its neighbours, a diamond to read its sentence.";
  const show = (text) => (details.textContent = text || base);
  show("");
  const drawing = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": `${entities.length} entities in ${hyperedges.length} hyperedges` });
  const useHulls = hulls && hyperedges.length <= MAX_HULLS;
  if (useHulls) drawing.append(svg("g", {}, hyperedges.map((edge, index) => hullOf(edge, entities, index))));
  else drawing.append(svg("g", {}, links.map((link) => lineOf(link))));
  const focus = (node) => highlight(drawing, node, links);
  drawing.append(svg("g", {}, hyperedges.map((edge) => diamond(edge, { show, focus, small: useHulls }))));
  drawing.append(svg("g", {}, entities.map((entity) => dot(entity, { show, focus, grow, label: labels.get(entity) }))));
  fill(area, drawing);
}

/** Compute positions; deterministic, so that the same evidence looks the same. */
function layOut(nodes, links, width, height) {
  nodes.forEach((node, index) => {
    if (node.x === undefined) {
      const angle = index * 2.4;
      const radius = 12 * Math.sqrt(index + 1);
      node.x = width / 2 + radius * Math.cos(angle);
      node.y = height / 2 + radius * Math.sin(angle);
    }
  });
  const crowd = Math.sqrt((width * height) / Math.max(nodes.length, 12));
  forceSimulation(nodes)
    .force("link", forceLink(links).distance(crowd * 0.62).strength(0.5))
    .force("charge", forceManyBody().strength(-crowd * 3.2))
    .force("x", forceX(width / 2).strength(0.09))
    .force("y", forceY(height / 2).strength(0.11))
    .force("collide", forceCollide((node) => (node.kind === "entity" ? 22 : 12)))
    .stop()
    .tick(280);
  for (const node of nodes) {
    node.x = Math.min(Math.max(node.x, 46), width - 46);
    node.y = Math.min(Math.max(node.y, 22), height - 26);
  }
}

function lineOf({ source, target, onPath }) {
  const position = { x1: source.x, y1: source.y, x2: target.x, y2: target.y };
  return svg("line", { ...position, class: onPath ? "link path" : "link", "data-a": source.id, "data-b": target.id });
}

function hullOf(edge, entities, index) {
  const drawn = edge.members.filter((each) => entities.includes(each));
  const bubbles = new BubbleSets();
  for (const each of drawn) bubbles.pushMember(circle(each.x, each.y, 13));
  bubbles.pushMember(circle(edge.x, edge.y, 6));
  for (const each of entities) if (!drawn.includes(each)) bubbles.pushNonMember(circle(each.x, each.y, 9));
  const path = bubbles.compute().sample(8).simplify(0).bSplines().simplify(0);
  return svg("path", { d: path.toString(), class: "hull", "data-a": edge.id, "data-b": edge.id, "data-hue": index % HUES });
}

function diamond(edge, { show, focus, small }) {
  const text = edge.edge.text;
  const size = edge.step ? 9 : small ? 4 : 5.5;
  const label = `${edge.step ? `Step ${edge.step}: ` : ""}${text}`;
  const open = () => go("passage", { id: edge.edge.passage_id });
  return svg(
    "g",
    { class: edge.step ? "node hyperedge path" : "node hyperedge", tabindex: 0, role: "link", "aria-label": label, "data-a": edge.id, ...handlers(edge, label, { show, focus, open }) },
    svg("path", { d: `M0 ${-size}L${size} 0L0 ${size}L${-size} 0Z`, transform: `translate(${edge.x} ${edge.y})` }),
    edge.step ? svg("text", { x: edge.x, y: edge.y + 3.5, class: "step" }, String(edge.step)) : null,
    svg("title", {}, text),
  );
}

/** Return the place of each label that covers no other label or node; entities on the path and of high degree first. */
function placeLabels(nodes, entities, width, height) {
  const taken = nodes.map((node) => box(node.x, node.y, 14, 14));
  const labels = new Map();
  for (const entity of [...entities].sort((a, b) => b.onPath - a.onPath || b.degree - a.degree)) {
    const gap = radiusOf(entity) + 4;
    const wide = cellsOf(shortName(entity)) * CHARACTER * (entity.onPath ? 1.08 : 1);
    const places = [
      { x: entity.x, y: entity.y + gap + 8, anchor: "middle" },
      { x: entity.x, y: entity.y - gap, anchor: "middle" },
      { x: entity.x + gap, y: entity.y + 4, anchor: "start" },
      { x: entity.x - gap, y: entity.y + 4, anchor: "end" },
    ];
    for (const place of places) {
      const shift = { middle: 0, start: wide / 2, end: -wide / 2 }[place.anchor];
      const area = box(place.x + shift, place.y - 4, wide, 13);
      const inside = area.left > 2 && area.right < width - 2 && area.top > 2 && area.bottom < height - 2;
      if (inside && !taken.some((other) => overlaps(area, other))) {
        taken.push(area);
        labels.set(entity, place);
        break;
      }
    }
  }
  return labels;
}

const box = (x, y, wide, high) => ({ left: x - wide / 2, right: x + wide / 2, top: y - high / 2, bottom: y + high / 2 });
const overlaps = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
const radiusOf = (entity) => 4 + Math.min(Math.sqrt(entity.degree) * 1.6, 8);
const WIDE = /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60]/g; // as wide as two letters
const cellsOf = (text) => text.length + (text.match(WIDE) ?? []).length;
const shortName = ({ name }) => (name.length > 24 ? `${name.slice(0, 23)}…` : name);

function dot(entity, { show, focus, grow, label: place }) {
  const radius = radiusOf(entity);
  const { x, y, anchor } = place ?? { x: entity.x, y: entity.y + radius + 12, anchor: "middle" };
  const label = `${entity.name}, ${entity.degree} ${entity.degree === 1 ? "hyperedge" : "hyperedges"}`;
  const open = (event) => (event.shiftKey || event.altKey ? go("entity", { name: entity.name }) : grow(entity));
  return svg(
    "g",
    { class: `node entity${entity.onPath ? " path" : ""}${place ? "" : " unlabelled"}`, tabindex: 0, role: "button", "aria-label": label, "data-a": entity.id, ...handlers(entity, label, { show, focus, open }) },
    svg("circle", { cx: entity.x, cy: entity.y, r: radius }),
    svg("text", { x, y, "text-anchor": anchor }, shortName(entity)),
    svg("title", {}, `${entity.name} (shift-click opens it)`),
  );
}

function handlers(node, label, { show, focus, open }) {
  return {
    onclick: open,
    onkeydown: (event) => (event.key === "Enter" || event.key === " ") && (event.preventDefault(), open(event)),
    onmouseenter: () => (show(label), focus(node)),
    onmouseleave: () => (show(""), focus(null)),
    onfocus: () => (show(label), focus(node)),
    onblur: () => (show(""), focus(null)),
  };
}

/** Dim all that is not connected with a node; null for nothing. */
function highlight(drawing, node, links) {
  drawing.classList.toggle("dimmed", node !== null);
  const near = new Set(node ? [node.id] : []);
  for (const { source, target } of links) {
    if (node && (source.id === node.id || target.id === node.id)) near.add(source.id).add(target.id);
  }
  for (const element of drawing.querySelectorAll("[data-a]")) {
    const { a, b = a } = element.dataset;
    element.classList.toggle("near", near.has(a) && near.has(b));
  }
}

/** Return the address of an entity, for lists beside the graph. */
export function entityLink(name) {
  return el("a", { href: address("entity", { name }) }, name);
}
