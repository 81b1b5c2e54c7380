// The table of documents: find, sort and select documents; hide, remove or index them again, or ask a question in them.

import { call } from "./api.js";
import { announce, el, fill } from "./dom.js";
import { askToConfirm, count, facetSelect, nameLanguage, readableDate, short } from "./controls.js";
import { address } from "./route.js";
import { askInDocuments, askInFacets } from "./scope.js";
import { followReindexing, uploadPanel } from "./upload.js";

const COLUMNS = [
  { key: "title", label: "Title" },
  { key: "type", label: "Type" },
  { key: "language", label: "Language" },
  { key: "tokens", label: "Size (tokens)", hint: "A token is about three quarters of a word", isNumber: true },
  { key: "passages", label: "Passages", isNumber: true },
  { key: "date", label: "Date" },
  { key: "recorded", label: "Added" },
  { key: "state", label: "State" },
];
const FACETS = { type: "Type", language: "Language", year: "Year", folder: "Folder", state: "State" };
const ROWS = 100;
const MAX_IDS = 10_000; // of one request
const STATES = { searchable: "searchable", disabled: "hidden", empty: "no text" };

const NAMES = { language: nameLanguage, state: (state) => STATES[state] };

export async function showDocuments(main, parameters, signal) {
  const table = new DocumentTable(parameters);
  const { panel, isWritable } = await uploadPanel(() => table.load());
  table.isWritable = isWritable;
  fill(main, el("section.page.wide", {}, el("h1", {}, "Documents"), panel, table.element));
  await table.load(signal);
}

class DocumentTable {
  constructor(parameters) {
    this.query = Object.fromEntries(["text", "sort", "descending", ...Object.keys(FACETS)].map((key) => [key, parameters.get(key) ?? ""]));
    this.selected = new Map(); // rows by id
    this.rows = [];
    this.filters = el("div.options");
    this.bar = el("div.selection-bar", { role: "region", "aria-label": "Selected documents" });
    this.body = el("tbody");
    this.head = el("thead");
    this.more = el("p");
    this.summary = el("p.faint", { role: "status" });
    const search = el("input", { type: "search", dir: "auto", value: this.query.text, placeholder: "Part of a title or id", "aria-label": "Find a document" });
    search.addEventListener("input", () => {
      clearTimeout(this.timer);
      this.timer = setTimeout(() => this.change({ text: search.value.trim() }), 250);
    });
    const scroll = el("div.scroll", { tabindex: 0, role: "region", "aria-label": "Table of documents" }, el("table.documents", {}, this.head, this.body));
    this.element = el("div", {}, el("div.toolbar", { role: "search" }, search, this.filters), this.summary, this.bar, scroll, this.more);
  }

  /** Change the filter or the order; the address follows, so that a reload shows the same table. */
  change(changes) {
    Object.assign(this.query, changes);
    history.replaceState(null, "", address("documents", this.query));
    return this.load();
  }

  async load(signal) {
    const page = await this.fetchPage("", ROWS, signal);
    this.rows = page.documents;
    this.total = page.total;
    this.next = page.next_cursor;
    this.draw(page.facets);
  }

  fetchPage(cursor, limit, signal) {
    return call("documents", { query: { ...this.query, cursor, limit }, signal });
  }

  draw(facets) {
    const selects = Object.entries(FACETS).map(([facet, label]) =>
      facetSelect({ label, values: facets[facet], chosen: this.query[facet], name: NAMES[facet], onChange: (value) => this.change({ [facet]: value }) }),
    );
    const isFiltered = Object.keys(FACETS).some((facet) => this.query[facet]) || this.query.text;
    const ask = isFiltered && this.total > 0 && el("button", { type: "button", onclick: () => this.askInAll() }, this.total === 1 ? "Ask in the one shown" : `Ask in all ${this.total.toLocaleString("en")} ${this.total > this.rows.length ? "found" : "shown"}`);
    const active = document.activeElement?.getAttribute("aria-label");
    fill(this.filters, selects, ask);
    this.filters.querySelector(`select[aria-label="${active}"]`)?.focus();
    this.summary.textContent = isFiltered ? `${count(this.total, "document")} found` : count(this.total, "document");
    const all = el("input", { type: "checkbox", "aria-label": "Select all shown documents", onclick: (event) => this.selectRows(this.rows, event.target.checked) });
    fill(this.head, el("tr", {}, el("th", { scope: "col" }, all), COLUMNS.map((column) => this.drawHeading(column))));
    this.all = all;
    fill(this.body, this.rows.map((row, index) => this.drawRow(row, index)));
    this.element.querySelector("table").hidden = !this.rows.length;
    this.drawMore();
    this.drawBar();
  }

  drawHeading({ key, label, hint, isNumber }) {
    const isSorted = (this.query.sort || "id") === key;
    const isDescending = isSorted && this.query.descending === "true";
    const sort = async () => {
      await this.change({ sort: key, descending: isSorted && !isDescending ? "true" : "" });
      this.head.querySelector(`[data-column="${key}"]`).focus();
    };
    const mark = isSorted ? (isDescending ? " ↓" : " ↑") : "";
    const button = el("button.quiet", { type: "button", onclick: sort, title: hint, "data-column": key }, label + mark);
    return el(isNumber ? "th.count" : "th", { scope: "col", "aria-sort": isSorted ? (isDescending ? "descending" : "ascending") : null }, button);
  }

  drawRow(row, index) {
    const title = row.title || row.id;
    const box = el("input", { type: "checkbox", checked: this.selected.has(row.id), "aria-label": `Select ${title}`, "data-id": row.id });
    box.addEventListener("click", (event) => {
      const isRange = event.shiftKey && this.last !== undefined;
      const [first, last] = isRange ? [Math.min(this.last, index), Math.max(this.last, index)] : [index, index];
      this.last = index;
      this.selectRows(this.rows.slice(first, last + 1), box.checked);
    });
    return el(
      "tr",
      { class: row.state === "searchable" ? null : "inactive" },
      el("td", {}, box),
      el("td.title", { dir: "auto" }, el("a", { href: address("document", { id: row.id }) }, title), row.title && row.title !== row.id && el("span.id", { dir: "auto" }, row.id)),
      el("td", {}, row.type),
      el("td", {}, row.language && nameLanguage(row.language)),
      el("td.count", { title: `${row.tokens.toLocaleString("en")} tokens` }, short(row.tokens)),
      el("td.count", {}, row.passages.toLocaleString("en")),
      el("td.date", {}, readableDate(row.date)),
      el("td.date", {}, row.recorded && el("time", { datetime: row.recorded }, readableDate(row.recorded))),
      el("td", {}, STATES[row.state]),
    );
  }

  drawMore() {
    const left = this.total - this.rows.length;
    const more = async () => {
      const page = await this.fetchPage(this.next, ROWS);
      const start = this.rows.length;
      this.rows.push(...page.documents);
      this.next = page.next_cursor;
      this.body.append(...page.documents.map((row, index) => this.drawRow(row, start + index)));
      this.drawMore();
    };
    const empty = this.total === 0 && "Nothing matches. Change the filter, or add documents above.";
    fill(this.more, empty, left > 0 && el("button", { type: "button", onclick: more }, `Show ${Math.min(left, ROWS)} more of ${left.toLocaleString("en")}`));
  }

  // Selection

  selectRows(rows, isSelected) {
    for (const row of rows) isSelected ? this.selected.set(row.id, row) : this.selected.delete(row.id);
    for (const box of this.body.querySelectorAll("input")) box.checked = this.selected.has(box.dataset.id);
    this.drawBar();
  }

  /** Return all documents that match the filter, at most as many as one request may change. */
  async fetchAll() {
    const rows = [];
    for (let cursor = ""; rows.length < MAX_IDS; ) {
      const page = await this.fetchPage(cursor, 1000);
      rows.push(...page.documents);
      cursor = page.next_cursor;
      if (!cursor) break;
    }
    return rows;
  }

  async selectAll() {
    const rows = await this.fetchAll();
    this.selectRows(rows, true);
    if (rows.length < this.total) announce(`The first ${MAX_IDS.toLocaleString("en")} are selected.`);
  }

  async askInAll() {
    const { text, year, state, ...facets } = this.query;
    if (text || year || state || Object.values(facets).includes("none")) askInDocuments((await this.fetchAll()).map((row) => row.id));
    else askInFacets(facets);
  }

  drawBar() {
    const rows = [...this.selected.values()];
    const isAll = this.rows.length > 0 && this.rows.every((row) => this.selected.has(row.id));
    this.all.checked = isAll;
    this.all.indeterminate = !isAll && this.rows.some((row) => this.selected.has(row.id));
    this.bar.hidden = !rows.length;
    if (!rows.length) return;
    const button = (label, onclick) => el("button", { type: "button", onclick }, label);
    const ask = (chosen) => el("button.primary", { type: "button", onclick: () => askInDocuments(chosen.map((row) => row.id)) }, `Ask in ${chosen.length.toLocaleString("en")} selected`);
    const visible = rows.filter((row) => row.state !== "disabled");
    const hidden = rows.filter((row) => row.state === "disabled");
    fill(
      this.bar,
      el("strong", { role: "status" }, `${rows.length.toLocaleString("en")} selected`),
      isAll && rows.length < this.total && el("button.quiet", { type: "button", onclick: () => this.selectAll() }, `Select all ${this.total.toLocaleString("en")}`),
      visible.length > 0 && ask(visible),
      this.isWritable && [
        visible.length > 0 && button("Hide …", () => this.confirm(hideDocuments(visible))),
        hidden.length > 0 && button("Show in searches", () => this.confirm(showInSearches(hidden))),
        button("Index again …", () => this.confirm(indexAgain(rows))),
        button("Remove …", () => this.confirm(removeDocuments(rows))),
      ],
      el("button.quiet", { type: "button", onclick: () => this.selectRows(rows, false) }, "Clear"),
    );
  }

  confirm(change) {
    const onConfirm = async () => {
      await change.onConfirm();
      this.selected.clear();
      await this.load();
    };
    askToConfirm({ ...change, onConfirm });
  }
}

// Changes of documents: each states what happens, to which documents, and does it. The page of a document uses them too.

const titles = (rows) => rows.map((row) => row.title || row.id);
const ids = (rows) => rows.map((row) => row.id);
const post = (path, json) => call(`documents/${path}`, { method: "POST", json });

export const hideDocuments = (rows) => ({
  title: `Hide ${count(rows.length, "document")}`,
  text: "No search and no answer uses them until you show them again. Nothing is deleted.",
  items: titles(rows),
  verb: "Hide",
  onConfirm: async () => {
    await post("disable", { ids: ids(rows) });
    announce(`${count(rows.length, "document")} hidden.`);
  },
});

export const showInSearches = (rows) => ({
  title: `Show ${count(rows.length, "document")} in searches`,
  text: "Searches and answers use them again.",
  items: titles(rows),
  verb: "Show",
  onConfirm: async () => {
    await post("enable", { ids: ids(rows) });
    announce(`${count(rows.length, "document")} shown again.`);
  },
});

export const removeDocuments = (rows) => ({
  title: `Remove ${count(rows.length, "document")}`,
  text: "The text, the passages and the facts are deleted from the index. Files on disk stay as they are. This cannot be undone here: to bring a document back, add it again.",
  items: titles(rows),
  verb: "Remove",
  onConfirm: async () => {
    await post("remove", { ids: ids(rows) });
    announce(`${count(rows.length, "document")} removed.`);
  },
});

export const indexAgain = (rows) => {
  const withFile = rows.filter((row) => row.source);
  const others = rows.length - withFile.length;
  const left = others > 0 ? ` ${count(others, "uploaded document")} ${others === 1 ? "has" : "have"} no file on the server and cannot be read again; upload them instead.` : "";
  return {
    title: `Index ${count(withFile.length, "document")} again`,
    text: `The server reads their files again and replaces their passages and facts. If facts are extracted by a language model, it is paid for again.${left}`,
    items: titles(withFile),
    verb: "Index again",
    onConfirm: async () => {
      if (!withFile.length) throw new Error("None of these documents has a file on the server.");
      const { job } = await post("reindex", { ids: ids(withFile) });
      followReindexing(job, withFile.length);
    },
  };
};
