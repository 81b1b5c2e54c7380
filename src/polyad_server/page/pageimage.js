// The page of a PDF file or scan, or a picture inside a document, with the passage marked, beside its text.

import { getBlob } from "./api.js";
import { el, fill, openDialog } from "./dom.js";

const WIDTHS = [700, 1000, 1500, 2200];

/** Return a button that shows the page of a hit or passage, or its picture; null for one with neither. */
export function pageButton(hit) {
  if (!hit.metadata?.sha256 || !(hit.page || hit.metadata.pictures?.length)) return null;
  const span = hit.excerpt ? { start: hit.excerpt.start, end: hit.excerpt.end } : {};
  const source = { path: "passages/image", query: { id: hit.passage_id ?? hit.id, ...span }, text: hit.excerpt?.text ?? hit.text, hasFigures: hit.page && hit.metadata.pictures?.length };
  return el("button.quiet", { type: "button", onclick: () => showPage(source) }, hit.page ? "Page" : "Picture");
}

/** Return the list of a document's pictures, each of which can be opened; null if it lists none. */
export function pictureList({ id, metadata }) {
  if (!metadata.pictures?.length || !metadata.sha256) return null;
  const items = metadata.pictures.map((label, index) => {
    const source = { path: "document/image", query: { id, picture: index + 1 }, text: label };
    return el("li", {}, el("button.quiet", { type: "button", dir: "auto", onclick: () => showPage(source) }, label));
  });
  return el("details.more", {}, el("summary", {}, `Pictures (${items.length})`), el("ul.plain", {}, items));
}

function showPage(source) {
  const state = { page: null, pages: 1, zoom: 1, crop: false };
  const canvas = el("canvas.page-image", { role: "img" });
  const note = el("p.faint", { role: "status" });
  const step = (name, label, change) => el("button", { type: "button", "aria-label": label, onclick: () => show(change) }, name);
  const previous = step("‹", "Previous page", () => (state.page -= 1));
  const next = step("›", "Next page", () => (state.page += 1));
  const smaller = step("−", "Smaller", () => (state.zoom -= 1));
  const larger = step("+", "Larger", () => (state.zoom += 1));
  const figure = source.hasFigures && el("button", { type: "button", "aria-pressed": "false", onclick: () => show(() => Object.assign(state, { crop: !state.crop, page: null })) }, "Figure");
  const buttons = [previous, next, smaller, larger, figure].filter(Boolean);

  async function show(change = () => {}) {
    change();
    buttons.forEach((button) => (button.disabled = true));
    try {
      const query = { ...source.query, page: state.page, width: WIDTHS[state.zoom], crop: state.crop || null };
      const { blob, headers } = await getBlob(source.path, { query });
      const noun = headers.get("Polyad-Kind") === "picture" ? "Picture" : "Page";
      state.page = Number(headers.get("Polyad-Page"));
      state.pages = source.query.picture || state.crop ? 1 : Number(headers.get("Polyad-Pages"));
      const place = state.pages > 1 || !source.query.picture ? `${noun} ${state.page}${state.crop ? "" : ` of ${state.pages}`}` : source.text;
      const picture = await createImageBitmap(blob);
      [canvas.width, canvas.height] = [picture.width, picture.height];
      canvas.getContext("2d").drawImage(picture, 0, 0);
      canvas.setAttribute("aria-label", place);
      canvas.style.width = `${Math.round((WIDTHS[state.zoom] / WIDTHS[1]) * 100)}%`;
      fill(note, place);
    } catch (error) {
      fill(note, `${error.message}. The text is beside it.`);
    }
    previous.disabled = !state.page || state.page <= 1;
    next.disabled = !state.page || state.page >= state.pages;
    smaller.disabled = state.zoom === 0;
    if (figure) {
      figure.disabled = false;
      figure.setAttribute("aria-pressed", state.crop);
    }
    larger.disabled = state.zoom === WIDTHS.length - 1;
  }

  const text = el("div.text", { dir: "auto", tabindex: 0, "aria-label": "Text" }, source.text);
  const frame = el("div.page-frame", { tabindex: 0, role: "group", "aria-label": "Page" }, canvas);
  openDialog(source.query.picture ? "Picture" : "Page", el("div.row", {}, buttons, note), el("div.page-view", {}, frame, text));
  document.getElementById("dialog").classList.add("wide");
  document.getElementById("dialog").addEventListener("close", (event) => event.target.classList.remove("wide"), { once: true });
  show();
}
