// The page of a PDF file or scan as a picture, with the passage marked, beside the text of the passage.

import { getBlob } from "./api.js";
import { el, fill, openDialog } from "./dom.js";

const WIDTHS = [700, 1000, 1500, 2200];

/** Return a button that shows the page of a hit or passage; null for one without pages. */
export function pageButton(hit) {
  if (!hit.page || !hit.metadata?.sha256) return null;
  return el("button.quiet", { type: "button", onclick: () => showPage(hit) }, "Page");
}

function showPage(hit) {
  const state = { page: null, pages: 1, zoom: 1 };
  const canvas = el("canvas.page-image", { role: "img" });
  const note = el("p.faint", { role: "status" });
  const step = (name, label, change) => el("button", { type: "button", "aria-label": label, onclick: () => show(change) }, name);
  const previous = step("‹", "Previous page", () => (state.page -= 1));
  const next = step("›", "Next page", () => (state.page += 1));
  const smaller = step("−", "Smaller", () => (state.zoom -= 1));
  const larger = step("+", "Larger", () => (state.zoom += 1));
  const span = hit.excerpt ? { start: hit.excerpt.start, end: hit.excerpt.end } : {};
  const buttons = [previous, next, smaller, larger];

  async function show(change = () => {}) {
    change();
    buttons.forEach((button) => (button.disabled = true));
    try {
      const query = { id: hit.passage_id ?? hit.id, ...span, page: state.page, width: WIDTHS[state.zoom] };
      const { blob, headers } = await getBlob("passages/image", { query });
      state.page = Number(headers.get("Polyad-Page"));
      state.pages = Number(headers.get("Polyad-Pages"));
      const picture = await createImageBitmap(blob);
      [canvas.width, canvas.height] = [picture.width, picture.height];
      canvas.getContext("2d").drawImage(picture, 0, 0);
      canvas.setAttribute("aria-label", `Page ${state.page} of ${state.pages}`);
      canvas.style.width = `${Math.round((WIDTHS[state.zoom] / WIDTHS[1]) * 100)}%`;
      fill(note, `Page ${state.page} of ${state.pages}`);
    } catch (error) {
      fill(note, `${error.message}. The text is beside it.`);
    }
    previous.disabled = !state.page || state.page <= 1;
    next.disabled = !state.page || state.page >= state.pages;
    smaller.disabled = state.zoom === 0;
    larger.disabled = state.zoom === WIDTHS.length - 1;
  }

  const text = el("div.text", { dir: "auto", tabindex: 0, "aria-label": "Text" }, hit.excerpt?.text ?? hit.text);
  const frame = el("div.page-frame", { tabindex: 0, role: "group", "aria-label": "Page" }, canvas);
  openDialog("Page", el("div.row", {}, buttons, note), el("div.page-view", {}, frame, text));
  document.getElementById("dialog").classList.add("wide");
  document.getElementById("dialog").addEventListener("close", (event) => event.target.classList.remove("wide"), { once: true });
  show();
}
