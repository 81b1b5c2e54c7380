// A small window beside a link that shows what the link leads to, while the pointer or the focus is on it.

import { el, fill } from "./dom.js";

const GAP = 6; // pixels between link and window
let hiding = 0;

function getWindow() {
  const shown = document.getElementById("preview");
  if (shown) return shown;
  const created = el("div.preview", { id: "preview", role: "tooltip", hidden: true, onmouseenter: () => clearTimeout(hiding), onmouseleave: hide });
  document.body.append(created);
  document.addEventListener("keydown", (event) => event.key === "Escape" && hide());
  addEventListener("hashchange", hide);
  return created;
}

function hide() {
  clearTimeout(hiding);
  const shown = document.getElementById("preview");
  if (shown) shown.hidden = true;
}

/** Add a preview to a link; `draw` returns the nodes that it shows. */
export function addPreview(link, draw) {
  const show = () => {
    clearTimeout(hiding);
    const preview = getWindow();
    fill(preview, draw());
    preview.hidden = false;
    const place = link.getBoundingClientRect();
    const { width, height } = preview.getBoundingClientRect();
    const left = Math.max(Math.min(place.left, innerWidth - width - 16), 8);
    const isAbove = place.bottom + height + GAP > innerHeight;
    preview.style.left = `${left + scrollX}px`;
    preview.style.top = `${scrollY + (isAbove ? place.top - height - GAP : place.bottom + GAP)}px`;
  };
  const leave = () => {
    clearTimeout(hiding);
    hiding = setTimeout(hide, 150); // time to move the pointer into the preview
  };
  link.setAttribute("aria-describedby", "preview");
  link.addEventListener("mouseenter", show);
  link.addEventListener("focus", show);
  link.addEventListener("mouseleave", leave);
  link.addEventListener("blur", leave);
  return link;
}
