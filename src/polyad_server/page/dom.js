// Builds elements. Text is always set as text, so nothing in a document is ever interpreted as HTML.

const SVG = "http://www.w3.org/2000/svg";

/**
 * Create an element.
 * @param {string} name tag with optional classes: "button.primary"
 * @param {Object} [properties] attributes; functions named onclick, onsubmit ... become listeners
 * @param {...(Node|string|null|undefined|Array)} children nodes and texts; empty ones are left out
 */
export function el(name, properties = {}, ...children) {
  const [tag, ...classes] = name.split(".");
  const element = document.createElement(tag);
  if (classes.length) element.className = classes.join(" ");
  setProperties(element, properties);
  append(element, children);
  return element;
}

/** Create an SVG element; see el. */
export function svg(tag, properties = {}, ...children) {
  const element = document.createElementNS(SVG, tag);
  setProperties(element, properties);
  append(element, children);
  return element;
}

function setProperties(element, properties) {
  for (const [key, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else element.setAttribute(key, value === true ? "" : String(value));
  }
}

function append(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child !== null && child !== undefined && child !== false && child !== "") element.append(child);
  }
}

/** Replace the children of an element. */
export function fill(element, ...children) {
  element.replaceChildren();
  append(element, children);
  return element;
}

export const format = (number) => number.toLocaleString("en");

/** Return a number with its noun: "1 document", "2,000 documents". */
export function plural(count, noun, nouns = `${noun}s`) {
  return `${format(count)} ${count === 1 ? noun : nouns}`;
}

/** Tell users of screen readers, and for a moment everybody, what happened. */
export function announce(text) {
  const status = document.getElementById("status");
  status.textContent = text;
  status.classList.add("visible");
  clearTimeout(announce.timer);
  announce.timer = setTimeout(() => status.classList.remove("visible"), 4000);
}

/** Return text as nodes in which the given words are marked. */
export function markWords(text, words) {
  const wanted = words.filter((word) => word.length > 2).map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  if (!wanted.length) return [text];
  const pattern = new RegExp(`(?<![\\p{L}\\p{N}])(${wanted.join("|")})(?![\\p{L}\\p{N}])`, "giu");
  return text.split(pattern).map((part, index) => (index % 2 ? el("mark", {}, part) : part));
}

/** Return text without the marks of Markdown headings, which are bold, and with the characters from start to end marked. */
export function readableText(text, start = 0, end = 0) {
  let position = 0;
  let isMarked = false;
  return text.split(/(?<=\n)/).flatMap((line) => {
    const [from, to] = [Math.max(start - position, 0), Math.min(end - position, line.length)];
    const heading = line.match(/^#{1,6}[ \t]+/)?.[0].length ?? 0;
    position += line.length;
    const piece = (begin, stop) => line.slice(Math.max(begin, heading), Math.max(stop, heading));
    const mark = to > from && el("mark", { id: isMarked ? null : "span" }, piece(from, to));
    isMarked ||= Boolean(mark);
    const parts = mark ? [piece(0, from), mark, piece(to, line.length)] : [line.slice(heading)];
    return heading ? [el("strong", {}, parts)] : parts;
  });
}

const COMMON = new Set(
  "the and for was were who what when where which how why did does has have had that this with from are its not can she her his him they them their you your".split(" "),
);

/** Return the words of a question that are worth marking. */
export function questionWords(question) {
  return [...new Set(question.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [])].filter((word) => !COMMON.has(word));
}

/** Show a dialog with a title; returns a function that closes it. */
export function openDialog(title, ...children) {
  const dialog = document.getElementById("dialog");
  const close = () => dialog.close();
  fill(
    dialog,
    el(
      "div.dialog-head",
      {},
      el("h2", { id: "dialog-title" }, title),
      el("button.quiet", { type: "button", onclick: close, "aria-label": "Close" }, "✕"),
    ),
    ...children,
  );
  if (!dialog.open) dialog.showModal();
  return close;
}
