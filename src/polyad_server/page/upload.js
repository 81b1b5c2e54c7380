// Adding documents: files, folders, pasted text and web pages. Each file has a row with its progress and its result.

import { ApiError, call, getWorkspace, stream } from "./api.js";
import { el, fill } from "./dom.js";
import { count, openForm } from "./controls.js";
import { address } from "./route.js";

const FILES_PER_JOB = 50;
const SKIPPED_FOLDERS = /(^|\/)(\.[^/]+|node_modules|__pycache__)(\/|$)/; // hidden files and what programs generate
const WORDS = { waiting: "waiting", sending: "sending", reading: "reading", indexing: "indexing", added: "added", updated: "updated", unchanged: "unchanged", failed: "failed" };
const OUTCOMES = ["added", "updated", "unchanged", "failed"];

const MIN_SHARE = 0.1; // of the bytes, after which the remaining time is credible
const MIN_SECONDS = 8;

/** Return the remaining time in words; empty before it is credible. */
export function describeRemaining(seconds, done, total) {
  if (seconds < MIN_SECONDS || done >= total || done < MIN_SHARE * total) return "";
  const left = (seconds * (total - done)) / done;
  if (left < 60) return "under a minute left";
  return left < 5400 ? `about ${Math.round(left / 60)} min left` : `about ${(left / 3600).toFixed(1)} h left`;
}

const panels = new Map(); // by workspace, so that uploads go on while another view is shown

/** Return the panel that adds documents to the workspace; `onEnd` is called when documents were added. */
export async function uploadPanel(onEnd) {
  const name = getWorkspace();
  if (!panels.has(name)) panels.set(name, new Uploads(await call("workspaces")));
  const uploads = panels.get(name);
  uploads.onEnd = onEnd;
  uploads.resume();
  return { panel: uploads.element, isWritable: uploads.isWritable };
}

/** Show the progress of indexing documents again. */
export function followReindexing(job, number) {
  const uploads = panels.get(getWorkspace());
  const row = new FileRow(`${count(number, "document")} again`);
  uploads?.add([row]);
  uploads?.follow(job, [row]);
}

/** The row of one file: its name, its progress, and then its result with the reason of a failure. */
class FileRow {
  constructor(name, file) {
    Object.assign(this, { name, file, state: "waiting" });
    this.element = el("li.file");
    this.show({ state: "waiting" });
  }

  show({ state, reason = "", added = 0, updated = 0, unchanged = 0, failed = 0, document_id: id = "" }, detail = "") {
    this.state = state;
    const numbers = { added, updated, unchanged, failed };
    const counts = OUTCOMES.filter((outcome) => numbers[outcome]);
    const isSingle = counts.length === 1 && numbers[counts[0]] === 1;
    const isOver = OUTCOMES.includes(state);
    const text = isOver && counts.length && !isSingle ? counts.map((outcome) => `${numbers[outcome].toLocaleString("en")} ${outcome}`).join(", ") : WORDS[state];
    const title = id && isSingle ? el("a", { href: address("document", { id }) }, this.name) : this.name;
    this.element.dataset.state = state;
    fill(
      this.element,
      el("span.file-name", { dir: "auto" }, title),
      !isOver && state !== "waiting" && el("progress", { "aria-label": `${this.name}: ${text}` }),
      el("span.file-state", {}, text, detail && ` · ${detail}`),
      reason && el("span.file-reason", { dir: "auto" }, reason),
    );
  }
}

class Uploads {
  constructor({ allow_urls: allowUrls, max_body_mb: megabytes = 64, scope }) {
    this.isWritable = scope !== "read";
    this.maxBytes = megabytes * 900_000; // the parts of a form need some room
    this.rows = [];
    this.jobs = new Set();
    this.summary = el("p.upload-summary", { role: "status" });
    this.list = el("ul.plain.files", { tabindex: 0, "aria-label": "Files" });
    this.stop = el("button.quiet", { type: "button", onclick: () => this.cancel() }, "Cancel");
    this.clear = el("button.quiet", { type: "button", onclick: () => (this.rows.splice(0), this.draw()) }, "Clear list");
    this.report = el("section.uploads", { hidden: true, "aria-label": "Added files" }, el("header", {}, this.summary, this.stop, this.clear), this.list);
    this.element = el("div", {}, this.isWritable && this.buildArea(allowUrls), this.report);
  }

  buildArea(allowUrls) {
    const files = el("input", { type: "file", multiple: true, id: "files", class: "visually-hidden" });
    const folder = el("input", { type: "file", multiple: true, webkitdirectory: true, id: "folder", class: "visually-hidden", "aria-label": "Add a folder", tabindex: -1 });
    for (const input of [files, folder]) {
      input.addEventListener("change", () => {
        this.upload([...input.files].map((file) => [file.webkitRelativePath || file.name, file]));
        input.value = "";
      });
    }
    const area = el("label.drop", { for: "files" }, el("strong", {}, "Add files"), " or drop files and folders here", files);
    for (const name of ["dragover", "dragleave", "drop"]) {
      area.addEventListener(name, async (event) => {
        event.preventDefault();
        area.classList.toggle("over", name === "dragover");
        if (name === "drop") this.upload(await listDropped(event.dataTransfer));
      });
    }
    const button = (label, onclick) => el("button", { type: "button", onclick }, label);
    return el(
      "div",
      {},
      area,
      el("p.buttons", {}, button("Add a folder", () => folder.click()), button("Paste text", () => this.askForText()), allowUrls && button("Add a web page", () => this.askForAddresses()), folder),
    );
  }

  add(rows) {
    this.rows.unshift(...rows);
    this.list.prepend(...rows.map((row) => row.element));
    this.draw();
  }

  draw() {
    const numbers = {};
    for (const { state } of this.rows) numbers[state] = (numbers[state] ?? 0) + 1;
    const outcomes = OUTCOMES.filter((state) => numbers[state]).map((state) => `${numbers[state].toLocaleString("en")} ${state}`);
    const left = this.rows.filter(({ state }) => !OUTCOMES.includes(state)).length;
    const remaining = this.remaining || this.estimate();
    const text = [left > 0 && `${count(left, "file")} to go${remaining ? `, ${remaining}` : ""}`, ...outcomes].filter(Boolean).join(" · ");
    if (this.summary.textContent !== text) this.summary.textContent = text;
    this.stop.hidden = !this.jobs.size;
    this.clear.hidden = left > 0;
    this.report.hidden = !this.rows.length;
    if (!this.rows.length) fill(this.list);
  }

  /** Estimate the remaining time by the bytes of the files since the first of them was sent. */
  estimate() {
    const rows = this.rows.filter(({ file, begun }) => file && begun >= this.begun);
    const sum = (list) => list.reduce((bytes, { file }) => bytes + file.size, 0);
    return describeRemaining((performance.now() - this.begun) / 1000, sum(rows.filter(({ state }) => OUTCOMES.includes(state))), sum(rows));
  }

  // Files and folders

  async upload(named) {
    const rows = named.filter(([name]) => !SKIPPED_FOLDERS.test(name)).map(([name, file]) => new FileRow(name, file));
    if (!rows.length) return;
    if (!this.rows.some(({ state }) => !OUTCOMES.includes(state))) this.begun = performance.now();
    for (const row of rows) row.begun = performance.now();
    this.add(rows);
    for (const batch of this.split(rows)) {
      const body = new FormData();
      for (const row of batch) {
        body.append("files", row.file, row.name);
        row.show({ state: "sending" });
      }
      await this.send("documents/files", { method: "POST", body }, batch);
    }
    this.onEnd?.();
  }

  /** Divide rows into requests that the server accepts. */
  split(rows) {
    const batches = [];
    let bytes = Infinity;
    for (const row of rows) {
      if (bytes + row.file.size > this.maxBytes || batches.at(-1).length === FILES_PER_JOB) {
        batches.push([]);
        bytes = 0;
      }
      batches.at(-1).push(row);
      bytes += row.file.size;
    }
    return batches;
  }

  /** Send a request that starts a job for some rows, and follow the job to its end. */
  async send(path, request, rows) {
    try {
      const { job } = await call(path, request);
      await this.follow(job, rows);
    } catch (error) {
      const reason = error instanceof ApiError && error.status === 413 ? "above the size that the server accepts" : error.message;
      for (const row of rows) if (!OUTCOMES.includes(row.state)) row.show({ state: "failed", reason });
    }
    this.draw();
  }

  async follow(job, rows) {
    this.jobs.add(job.id);
    try {
      for await (const { data } of stream("job/events", { query: { id: job.id } })) this.update(data, rows);
    } finally {
      this.jobs.delete(job.id);
      this.draw();
    }
    if (job.kind === "documents") this.onEnd?.();
  }

  update(job, rows) {
    const hasMore = this.rows.some((row) => row.state === "waiting" && !rows.includes(row)); // which the job does not know
    this.remaining = (!hasMore && job.message.match(/[^,]* left$/)?.[0].trim()) || "";
    if (job.kind === "documents") rows[0].show(describeReindexing(job), job.ended ? "" : job.message);
    else if (job.results.length) job.results.forEach((result, index) => rows[index].show(result));
    else for (const row of rows) row.show(job.state === "queued" ? { state: "waiting" } : { state: "reading" });
    this.draw();
  }

  cancel() {
    for (const id of this.jobs) call("job/cancel", { method: "POST", json: { id } });
  }

  /** Show the jobs that run since before this page was opened. */
  async resume() {
    if (this.jobs.size) return;
    const { jobs } = await call("jobs", { query: { limit: 20 } });
    for (const job of jobs.filter((each) => !each.ended && !this.jobs.has(each.id))) {
      const rows = job.kind === "documents" ? [new FileRow(`${count(job.files.length, "document")} again`)] : job.files.map((name) => new FileRow(name));
      this.add(rows);
      this.follow(job, rows).then(() => this.onEnd?.());
    }
  }

  // Pasted text and web pages

  askForText() {
    const title = el("input", { dir: "auto", required: true, maxlength: 300 });
    const text = el("textarea", { dir: "auto", required: true, rows: 10 });
    const onSubmit = () => {
      const id = title.value.trim();
      const row = new FileRow(id);
      this.add([row]);
      const request = { method: "POST", json: { documents: [{ id, title: id, text: text.value }] } };
      this.send("documents", request, [row]).then(() => this.onEnd?.());
    };
    openForm({ title: "Paste text", fields: [el("label", {}, "Title", title), el("label", {}, "Text", text)], verb: "Add", onSubmit });
    title.focus();
  }

  askForAddresses() {
    const urls = el("textarea", { dir: "ltr", required: true, rows: 4, placeholder: "https://example.org/page" });
    const onSubmit = () => {
      const rows = [...new Set(urls.value.split(/\s+/).filter(Boolean))].map((url) => new FileRow(url));
      this.add(rows);
      this.send("documents/urls", { method: "POST", json: { urls: rows.map((row) => row.name) } }, rows).then(() => this.onEnd?.());
    };
    const help = el("p.faint", {}, "One address a line, at most 20. The server fetches each page once, without the pages it links to.");
    openForm({ title: "Add web pages", fields: [el("label", {}, "Addresses", urls), help], verb: "Add", onSubmit });
    urls.focus();
  }
}

function describeReindexing(job) {
  if (!job.ended) return { state: "indexing" };
  const { updated = 0, added = 0, unchanged = 0 } = job.report ?? {};
  const failed = job.results.length;
  const reasons = job.results.map((each) => `${each.name}: ${each.reason}`);
  return { state: updated + added + unchanged ? "updated" : "failed", updated: updated + added, unchanged, failed, reason: reasons.join("; ") || (job.state === "succeeded" ? "" : job.message) };
}

/** Return the files of a drop as [path, file], with all files of dropped folders. */
async function listDropped(transfer) {
  const entries = [...transfer.items].map((item) => item.webkitGetAsEntry?.()).filter(Boolean);
  return entries.length ? (await Promise.all(entries.map(listEntry))).flat() : [...transfer.files].map((file) => [file.name, file]);
}

async function listEntry(entry) {
  const path = entry.fullPath.replace(/^\//, "");
  if (SKIPPED_FOLDERS.test(path)) return [];
  if (entry.isFile) return [[path, await new Promise((resolve, reject) => entry.file(resolve, reject))]];
  const reader = entry.createReader();
  const children = [];
  for (;;) {
    const part = await new Promise((resolve, reject) => reader.readEntries(resolve, reject)); // at most 100 at a time
    if (!part.length) break;
    children.push(...part);
  }
  return (await Promise.all(children.map(listEntry))).flat();
}
