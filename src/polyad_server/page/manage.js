// The lists: documents with their upload, the log of changes, and the description of the API.

import { call, stream } from "./api.js";
import { el, fill } from "./dom.js";
import { address, go } from "./main.js";

export async function showDocuments(main, parameters, signal) {
  const like = parameters.get("like") ?? "";
  const list = el("div");
  const search = el("input", { type: "search", dir: "auto", value: like, placeholder: "Part of the id", "aria-label": "Find a document" });
  const form = el("form.question-line", { role: "search", onsubmit: (event) => (event.preventDefault(), go("documents", { like: search.value.trim() })) }, search, el("button", { type: "submit" }, "Find"));
  fill(main, el("section.page", {}, el("h1", {}, "Documents"), uploadArea(() => loadDocuments(list, like)), form, list));
  await loadDocuments(list, like, signal);
}

async function loadDocuments(list, like, signal) {
  fill(list);
  await addDocuments(list, like, "", signal);
}

async function addDocuments(list, like, cursor, signal) {
  const page = await call("documents", { query: { like, cursor, limit: 50 }, signal });
  if (!cursor) list.append(el("p.faint", {}, `${page.total.toLocaleString("en")} documents`), el("ul.plain"));
  const rows = list.querySelector("ul");
  for (const { id } of page.documents) rows.append(el("li", { dir: "auto" }, el("a", { href: address("document", { id }) }, id)));
  if (page.next_cursor) {
    const more = el("button", { type: "button", onclick: () => (more.remove(), addDocuments(list, like, page.next_cursor)) }, "More");
    list.append(more);
  }
}

/** Return the area that takes files, by a click or by dropping them, and shows the progress of their indexing. */
function uploadArea(onEnd) {
  const input = el("input", { type: "file", multiple: true, id: "files", class: "visually-hidden" });
  const jobs = el("div", { "aria-live": "polite" });
  const area = el("label.drop", { for: "files" }, el("strong", {}, "Add files"), " or drop them here", input);
  input.addEventListener("change", () => upload(input.files, jobs, onEnd));
  for (const name of ["dragover", "dragleave", "drop"]) {
    area.addEventListener(name, (event) => {
      event.preventDefault();
      area.classList.toggle("over", name === "dragover");
      if (name === "drop") upload(event.dataTransfer.files, jobs, onEnd);
    });
  }
  return el("div", {}, area, jobs);
}

async function upload(files, jobs, onEnd) {
  if (!files.length) return;
  const names = files.length === 1 ? files[0].name : `${files.length} files`;
  const state = el("p.job", {}, el("progress"), ` ${names}: sending`);
  jobs.prepend(state);
  const body = new FormData();
  for (const file of files) body.append("files", file);
  try {
    const { job } = await call("documents/files", { method: "POST", body });
    const cancel = el("button.quiet", { type: "button", onclick: () => call("job/cancel", { method: "POST", json: { id: job.id } }) }, "Cancel");
    for await (const { data } of stream("job/events", { query: { id: job.id } })) {
      fill(state, data.ended ? null : el("progress"), ` ${names}: ${describeJob(data)} `, data.ended ? null : cancel);
    }
  } catch (error) {
    fill(state, el("span.error", {}, `${names}: ${error.message}`));
  }
  await onEnd();
}

function describeJob(job) {
  if (!job.ended) return job.done ? `${job.done} indexed` : job.message || job.state;
  const { added = 0, updated = 0, unchanged = 0, failures = [] } = job.report ?? {};
  const counts = [`${added} added`, updated && `${updated} updated`, unchanged && `${unchanged} unchanged`].filter(Boolean);
  const reasons = failures.map((failure) => `${failure.id}: ${failure.reason}`);
  return [job.state === "succeeded" ? counts.join(", ") : `${job.state}. ${job.message}`, ...reasons].join("; ");
}

export async function showLog(main, _parameters, signal) {
  const { changes } = await call("log", { query: { limit: 200 }, signal });
  const head = ["Time", "Change", "Documents", "Passages", "Hyperedges", "Tokens"];
  const rows = changes.map((each) =>
    el(
      "tr",
      {},
      el("td", {}, el("time", { datetime: each.time }, new Date(each.time).toLocaleString())),
      el("td", {}, each.command),
      [each.documents, each.passages, each.hyperedges, each.tokens].map((count) => el("td.count", {}, count.toLocaleString("en"))),
    ),
  );
  const table = el("table", {}, el("thead", {}, el("tr", {}, head.map((text) => el("th", { scope: "col" }, text)))), el("tbody", {}, rows));
  fill(main, el("section.page", {}, el("h1", {}, "Log"), el("div.scroll", { tabindex: 0, role: "region", "aria-label": "Changes" }, table)));
}

/** Return the paragraphs of a Markdown text, with its code. */
function readableDescription(text) {
  return text.split(/\n{2,}/).map((part) => el("p", {}, part.split("`").map((piece, index) => (index % 2 ? el("code", {}, piece) : piece))));
}

export async function showApi(main, _parameters, signal) {
  const description = await (await fetch("/openapi.json", { signal })).json();
  const groups = new Map();
  for (const [path, methods] of Object.entries(description.paths)) {
    for (const [method, route] of Object.entries(methods)) {
      const tag = route.tags?.[0] ?? "other";
      groups.set(tag, [...(groups.get(tag) ?? []), { path, method: method.toUpperCase(), text: route.description ?? "" }]);
    }
  }
  const sections = [...groups].map(([tag, routes]) => [
    el("h2", {}, tag),
    el("dl.routes", {}, routes.map(({ path, method, text }) => [el("dt", {}, el("code", {}, `${method} ${path}`)), el("dd", {}, readableDescription(text))])),
  ]);
  const link = el("a", { href: "/openapi.json" }, "/openapi.json");
  fill(main, el("section.page", {}, el("h1", {}, "API"), el("p", {}, "The whole description, with all fields and examples: ", link), sections));
}
