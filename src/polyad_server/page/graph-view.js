// A drawing of nodes and links that can be moved, enlarged and searched. Nodes are boxes as large as their labels, and the
// layout moves boxes until none covers another, so that every label can be read.

import "./vendor/d3-dispatch.min.js";
import "./vendor/d3-quadtree.min.js";
import "./vendor/d3-timer.min.js";
import "./vendor/d3-force.min.js";
import { el, fill, svg } from "./dom.js";

const { forceLink, forceManyBody, forceSimulation, forceX, forceY } = globalThis.d3;
const FONT = 12;
const GAP = 8; // between two boxes
const MAX_LABEL = 36;

export const svgNode = svg;

const ruler = document.createElement("canvas").getContext("2d");
const shortName = (name) => (name.length > MAX_LABEL ? `${name.slice(0, MAX_LABEL - 1)}…` : name);

function measure(node) {
  const size = FONT * (node.scale ?? 1);
  ruler.font = `600 ${size}px system-ui, sans-serif`;
  node.width = ruler.measureText(shortName(node.name)).width + size * 1.4;
  node.height = size * 2;
}

export class GraphView {
  /** @param {Object} options an element for details of the node under the pointer, and the hint that it shows otherwise */
  constructor({ details, hint }) {
    this.details = details;
    this.hint = hint;
    this.area = el("div.graph-area");
    this.zoomed = { scale: 1, x: 0, y: 0 };
  }

  /** Return the buttons and the search field of the drawing. */
  controls(...others) {
    const search = el("input.graph-search", { type: "search", dir: "auto", placeholder: "Find", "aria-label": "Find in the graph" });
    search.addEventListener("input", () => this.search(search.value.trim().toLowerCase()));
    const button = (text, label, onclick) => el("button.quiet", { type: "button", "aria-label": label, title: label, onclick }, text);
    return el("span.graph-controls", {}, others, search, button("−", "Zoom out", () => this.zoom(1 / 1.3)), button("+", "Zoom in", () => this.zoom(1.3)), button("⤢", "Fit", () => this.fit()));
  }

  /**
   * Lay out and draw nodes.
   * @param {Array} shapes {node, label, role, className, hue, draw, open}; nodes that were drawn before stay near their place
   * @param {Array} links {source, target, isStrong, weight} between nodes
   * @param {?Function} drawHulls returns elements that stand for the links, once the nodes have places
   */
  draw(shapes, links, drawHulls) {
    this.shapes = shapes;
    this.links = links;
    const nodes = shapes.map((shape) => shape.node);
    for (const node of nodes) if (node.kind === "entity") measure(node);
    this.width = Math.max(this.area.clientWidth, 300);
    this.height = Math.max(this.area.clientHeight, 320);
    layOut(nodes, links, this.width / this.height);
    const lines = drawHulls ? drawHulls() : links.map((link) => drawLine(link));
    const number = nodes.filter((node) => node.kind === "entity").length;
    this.drawing = svg("svg", { role: "group", "aria-label": number === 1 ? "1 entity" : `${number} entities` }, svg("g", {}, lines), svg("g", {}, shapes.map((shape) => this.drawShape(shape))));
    this.drawing.addEventListener("wheel", (event) => this.onWheel(event), { passive: false });
    this.drawing.addEventListener("pointerdown", (event) => this.startMove(event));
    fill(this.area, this.drawing);
    this.fit();
    this.show("");
  }

  drawShape({ node, label, role, className, hue = null, draw, open }) {
    const focus = (isOn) => {
      this.show(isOn ? label : "");
      this.highlight(isOn ? node : null);
    };
    return svg(
      "g",
      {
        class: `node ${className}`,
        transform: `translate(${node.x} ${node.y})`,
        tabindex: 0,
        role,
        "aria-label": label,
        "data-a": node.id,
        "data-hue": hue,
        onclick: (event) => !this.hasMoved && open(event),
        onkeydown: (event) => (event.key === "Enter" || event.key === " ") && (event.preventDefault(), open(event)),
        onmouseenter: () => focus(true),
        onmouseleave: () => focus(false),
        onfocus: () => focus(true),
        onblur: () => focus(false),
      },
      draw ? draw(node) : drawBox(node),
      svg("title", {}, label),
    );
  }

  show(text) {
    this.details.textContent = text.length > 300 ? `${text.slice(0, 299)}…` : text || this.hint;
  }

  // Emphasis

  /** Dim all that is not connected with a node; null for nothing. */
  highlight(node) {
    if (!node) return this.dim(this.kept ?? null);
    const near = new Set([node]);
    for (const { source, target } of this.links) if (source === node || target === node) near.add(source).add(target);
    this.dim(near);
  }

  dimAllBut(includes) {
    this.kept = includes && new Set(this.shapes.map((shape) => shape.node).filter(includes));
    this.dim(this.kept);
  }

  search(text) {
    const matches = text ? this.shapes.filter(({ node }) => node.name?.toLowerCase().includes(text)) : [];
    this.dimAllBut(text ? (node) => matches.some((match) => match.node === node) : null);
    if (!text) return this.show("");
    this.show(matches.length ? matches.slice(0, 5).map(({ label }) => label).join(" · ") : "Nothing in this drawing has this name.");
    if (matches.length === 1) this.centre(matches[0].node);
  }

  dim(kept) {
    const ids = kept && new Set([...kept].map((node) => node.id));
    this.drawing.classList.toggle("dimmed", ids !== null);
    for (const element of this.drawing.querySelectorAll("[data-a]")) {
      const { a, b = a } = element.dataset;
      element.classList.toggle("near", Boolean(ids?.has(a) && ids.has(b)));
    }
  }

  // Position and size

  /** Show the whole drawing, not larger than its natural size. */
  fit() {
    const nodes = this.shapes.map((shape) => shape.node);
    if (!nodes.length) return;
    const left = Math.min(...nodes.map((node) => node.x - node.width / 2));
    const right = Math.max(...nodes.map((node) => node.x + node.width / 2));
    const top = Math.min(...nodes.map((node) => node.y - node.height / 2));
    const bottom = Math.max(...nodes.map((node) => node.y + node.height / 2));
    const scale = Math.min(this.width / (right - left + 24), this.height / (bottom - top + 24), 1.15);
    this.zoomed = { scale, x: (left + right) / 2, y: (top + bottom) / 2 };
    this.applyZoom();
  }

  zoom(factor, x = this.zoomed.x, y = this.zoomed.y) {
    const scale = Math.min(Math.max(this.zoomed.scale * factor, 0.15), 4);
    const change = 1 - this.zoomed.scale / scale;
    this.zoomed = { scale, x: this.zoomed.x + (x - this.zoomed.x) * change, y: this.zoomed.y + (y - this.zoomed.y) * change };
    this.applyZoom();
  }

  centre({ x, y }) {
    this.zoomed = { scale: Math.max(this.zoomed.scale, 1), x, y };
    this.applyZoom();
  }

  applyZoom() {
    const { scale, x, y } = this.zoomed;
    const [width, height] = [this.width / scale, this.height / scale];
    this.drawing.setAttribute("viewBox", `${x - width / 2} ${y - height / 2} ${width} ${height}`);
  }

  /** Zoom by the wheel with Ctrl, which is also what a touchpad sends for two fingers; the wheel alone scrolls the page. */
  onWheel(event) {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    const point = new DOMPoint(event.clientX, event.clientY).matrixTransform(this.drawing.getScreenCTM().inverse());
    this.zoom(Math.exp(-event.deltaY / 300), point.x, point.y);
  }

  startMove(start) {
    const { x, y, scale } = this.zoomed;
    this.hasMoved = false;
    const move = (event) => {
      const [dx, dy] = [event.clientX - start.clientX, event.clientY - start.clientY];
      if (Math.hypot(dx, dy) > 4) this.hasMoved = true;
      this.zoomed = { scale, x: x - dx / scale, y: y - dy / scale };
      this.applyZoom();
    };
    addEventListener("pointermove", move);
    addEventListener("pointerup", () => removeEventListener("pointermove", move), { once: true });
  }
}

function drawBox(node) {
  const { width, height, name, scale = 1 } = node;
  return [svg("rect", { x: -width / 2, y: -height / 2, width, height, rx: height / 2 }), svg("text", { y: FONT * scale * 0.35, "font-size": FONT * scale }, shortName(name))];
}

function drawLine({ source, target, isStrong, weight }) {
  const position = { x1: source.x, y1: source.y, x2: target.x, y2: target.y };
  return svg("line", { ...position, class: isStrong ? "link path" : "link", "stroke-width": weight ? 0.8 + 4 * weight : null, "data-a": source.id, "data-b": target.id });
}

/** Compute places; deterministic, so that the same graph looks the same. */
function layOut(nodes, links, ratio) {
  nodes.forEach((node, index) => {
    if (node.x !== undefined) return;
    const near = links.find((link) => (link.source === node || link.target === node) && (link.source.x ?? link.target.x) !== undefined);
    const origin = near ? (near.source === node ? near.target : near.source) : { x: 0, y: 0 };
    const radius = near ? 40 : 14 * Math.sqrt(index + 1);
    node.x = origin.x + radius * Math.cos(index * 2.4) * ratio;
    node.y = origin.y + radius * Math.sin(index * 2.4);
  });
  const crowd = nodes.length > 50 ? 0.35 : 1; // of many nodes, closeness matters more than air
  forceSimulation(nodes)
    .force("link", forceLink(links).distance(55).strength((link) => 0.25 + 0.5 * (link.weight ?? 0.4)))
    .force("charge", forceManyBody().strength((node) => crowd * (-260 - 2 * node.width)).distanceMax(700))
    .force("x", forceX(0).strength(0.07 / crowd / Math.max(ratio, 0.6)))
    .force("y", forceY(0).strength((0.07 / crowd) * Math.max(ratio, 0.6)))
    .force("boxes", () => separate(nodes, 1))
    .stop()
    .tick(260);
  for (let round = 0; round < 400 && separate(nodes, 1); round++);
}

/** Move boxes that overlap apart, along the axis with the smaller overlap; returns whether any was moved. */
function separate(nodes, share) {
  let hasMoved = false;
  for (let first = 0; first < nodes.length; first++) {
    for (let second = first + 1; second < nodes.length; second++) {
      const [a, b] = [nodes[first], nodes[second]];
      const [dx, dy] = [b.x - a.x, b.y - a.y];
      const overlapX = (a.width + b.width) / 2 + GAP - Math.abs(dx);
      const overlapY = (a.height + b.height) / 2 + GAP - Math.abs(dy);
      if (overlapX <= 0.01 || overlapY <= 0.01) continue;
      hasMoved = true;
      if (overlapX < overlapY) {
        const step = (Math.sign(dx || 1) * overlapX * share) / 2;
        a.x -= step;
        b.x += step;
      } else {
        const step = (Math.sign(dy || 1) * overlapY * share) / 2;
        a.y -= step;
        b.y += step;
      }
    }
  }
  return hasMoved;
}
