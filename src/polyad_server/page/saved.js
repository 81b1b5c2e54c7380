// Conversations that are saved with the index: save one, open it with its answers, and the list of them.

import { ApiError, call, getBlob, hasKey } from "./api.js";
import { announce, el, fill } from "./dom.js";
import { askToConfirm, count, openForm, readableDate } from "./controls.js";
import { address } from "./route.js";

const OPTIONS = ["retriever", "where", "as_of"];

/** Return the conversation that the address names, and put its questions into the address if they are not there; else null. */
export async function openSaved(parameters, signal) {
  const id = parameters.get("saved");
  if (!id) return null;
  try {
    const conversation = await call("conversation", { query: { id }, signal });
    if (!parameters.has("q")) {
      for (const key of OPTIONS) if (conversation.options[key]) parameters.set(key, conversation.options[key]);
      for (const turn of conversation.turns) parameters.append("q", turn.question);
      writeAddress(parameters);
    }
    return conversation;
  } catch (error) {
    if (!(error instanceof ApiError && error.status === 404 && parameters.has("q"))) throw error;
    parameters.delete("saved"); // of another key, or deleted: the questions of the address are answered anew
    return null;
  }
}

const writeAddress = (parameters) => history.replaceState(null, "", `#/ask?${parameters}`);

/** Save the turns of a conversation, as a new one or in place of the saved one. */
async function save(turns, parameters) {
  const saved = turns.map((turn) => turn.toSaved());
  const id = parameters.get("saved");
  if (id) await call("conversation", { method: "PATCH", query: { id }, json: { turns: saved } });
  else {
    const options = Object.fromEntries(OPTIONS.map((key) => [key, parameters.get(key) ?? ""]));
    const json = { title: turns[0].question.slice(0, 200), turns: saved, options };
    parameters.set("saved", (await call("conversations", { method: "POST", json })).id);
    writeAddress(parameters);
  }
  announce("The conversation is saved with the index.");
}

export function saveButton(turns, parameters) {
  const onclick = async () => {
    if (turns.some((turn) => turn.isBusy)) return announce("Wait for the answer, or stop it.");
    await save(turns, parameters).catch((error) => announce(error.message));
  };
  return el("button.quiet", { type: "button", onclick }, "Save conversation");
}

/** Return the last saved conversations with a link to all; null if there are none. */
export async function recentConversations(signal) {
  const { conversations, total } = await call("conversations", { query: { limit: 3 }, signal });
  if (!total) return null;
  const all = el("a", { href: address("conversations") }, total > 3 ? `All ${total} saved conversations` : "Saved conversations");
  return el("p.faint.saved", {}, all, ": ", conversations.map((each, index) => [index ? ", " : "", conversationLink(each)]));
}

const conversationLink = ({ id, title }) => el("a", { href: address("ask", { saved: id }), dir: "auto" }, title);

export async function showConversations(main, parameters, signal) {
  const { conversations, total } = await call("conversations", { query: { limit: 200 }, signal });
  const reload = () => showConversations(main, parameters, signal);
  const whose = hasKey() ? "Only your key, and administrators, can open them." : "They are stored with the index.";
  const note = total ? whose : "None yet. “Save conversation” below an answer stores it with the index.";
  fill(main, el("section.page", {}, el("h1", {}, "Saved conversations"), el("p.faint", {}, note), el("ul.plain.conversations", {}, conversations.map((each) => item(each, reload)))));
}

function item(conversation, reload) {
  const button = (label, onclick) => el("button.quiet", { type: "button", onclick, "aria-label": `${label} ${conversation.title}` }, label);
  return el(
    "li.fact",
    {},
    el("p", {}, conversationLink(conversation)),
    el("p.faint", {}, `${count(conversation.questions, "question")} · ${readableDate(conversation.updated)}`),
    el("footer", {}, button("Rename", () => rename(conversation, reload)), button("Export", () => download(conversation)), button("Delete", () => remove(conversation, reload))),
  );
}

function rename({ id, title }, reload) {
  const field = el("input", { value: title, required: true, maxlength: 200, dir: "auto" });
  const onSubmit = async () => {
    await call("conversation", { method: "PATCH", query: { id }, json: { title: field.value } });
    await reload();
  };
  openForm({ title: "Rename the conversation", fields: [el("label", {}, "Title", field)], verb: "Rename", onSubmit });
}

function remove({ id, title }, reload) {
  const onConfirm = async () => {
    await call("conversation", { method: "DELETE", query: { id } });
    await reload();
  };
  askToConfirm({ title: "Delete the conversation", text: "Its answers are deleted from the index. This cannot be undone.", items: [title], verb: "Delete", onConfirm });
}

/** Download a conversation as Markdown; the request has the key, which a link would not send. */
async function download({ id, title }) {
  try {
    const { blob } = await getBlob("conversation/markdown", { query: { id } });
    const href = URL.createObjectURL(blob);
    el("a", { href, download: `${title.replace(/[\\/:*?"<>|]/g, " ").slice(0, 80)}.md` }).click();
    setTimeout(() => URL.revokeObjectURL(href), 10_000);
  } catch (error) {
    announce(error.message);
  }
}
