// Renders the Markdown of an answer. Tags in the text stay text, images are never loaded, and citations are links.

import "./vendor/purify.min.js";
import { Marked } from "./vendor/marked.esm.js";
import { el } from "./dom.js";

const MARK = /^\[(\d{1,3}(?:\s*[,;–-]\s*\d{1,3})*)\]/;
const SAFE = /^(?:https?|mailto):/i;
const TAGS = "p br hr h3 h4 h5 h6 strong em del code pre blockquote ul ol li table thead tbody tr th td a span".split(" ");
const ATTRIBUTES = ["href", "class", "align", "start", "data-cite"];
const BLOCKS = "p, h3, h4, h5, h6, li, th, td, blockquote";

const escape = (text) => text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);

const citation = {
  name: "citation",
  level: "inline",
  start: (text) => text.search(/\[\d/),
  tokenizer(text) {
    const mark = text.match(MARK);
    return mark ? { type: "citation", raw: mark[0], numbers: expand(mark[1]) } : undefined;
  },
  renderer: ({ numbers }) => numbers.map((number) => `<span data-cite="${number}"></span>`).join(""),
};

const markdown = new Marked({
  gfm: true,
  breaks: true,
  extensions: [citation],
  renderer: {
    html: ({ text }) => escape(text),
    image: ({ text, href }) => escape(`[image: ${text || href}]`),
    checkbox: ({ checked }) => (checked ? "☑ " : "☐ "),
    link({ href, raw, tokens }) {
      return SAFE.test(href) ? `<a href="${escape(href)}">${this.parser.parseInline(tokens)}</a>` : escape(raw);
    },
    heading({ tokens, depth }) {
      const level = Math.min(depth + 2, 6); // below the headings of the page
      return `<h${level}>${this.parser.parseInline(tokens)}</h${level}>`;
    },
  },
});

/**
 * Return Markdown as a fragment of elements.
 * @param {string} text
 * @param {function(number): Node} cite returns the link of a citation mark such as [3]
 */
export function markdownNodes(text, cite) {
  const html = markdown.parse(text);
  const fragment = DOMPurify.sanitize(html, {
    ALLOWED_TAGS: TAGS,
    ALLOWED_ATTR: ATTRIBUTES,
    ALLOW_DATA_ATTR: false,
    RETURN_DOM_FRAGMENT: true,
  });
  for (const mark of fragment.querySelectorAll("[data-cite]")) mark.replaceWith(cite(Number(mark.dataset.cite)));
  for (const link of fragment.querySelectorAll("a[href]:not(.cite)")) showTarget(link);
  for (const block of fragment.querySelectorAll(BLOCKS)) block.dir = "auto";
  for (const table of fragment.querySelectorAll("table")) scrollable(table, "Table");
  for (const code of fragment.querySelectorAll("pre")) scrollable(code, "Code");
  return fragment;
}

/** Return all numbers of a mark: "1, 3-5" are four. */
function expand(marks) {
  return marks.split(/[,;]/).flatMap((part) => {
    const [first, last = first] = part.split(/[–-]/).map(Number);
    return Array.from({ length: Math.min(Math.max(last - first, 0), 20) + 1 }, (_, index) => first + index);
  });
}

/** Say where a link leads, and tell its target nothing about this page. */
function showTarget(link) {
  const url = new URL(link.href);
  const place = url.host || url.pathname;
  link.rel = "noopener noreferrer nofollow";
  link.target = "_blank";
  link.title = link.href;
  if (!link.textContent.includes(place)) link.after(el("span.target", {}, ` (${place})`));
}

function scrollable(element, name) {
  const frame = el("div.scroll", { tabindex: 0, role: "region", "aria-label": name });
  element.replaceWith(frame);
  frame.append(element);
}
