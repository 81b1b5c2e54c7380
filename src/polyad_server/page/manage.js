// The log of changes, and the description of the API.

import { call } from "./api.js";
import { el, fill } from "./dom.js";
import { retractionList } from "./retractions.js";

export async function showLog(main, parameters, signal) {
  const reload = () => showLog(main, parameters, signal);
  const [{ changes }, retractions] = await Promise.all([call("log", { query: { limit: 200 }, signal }), retractionList(reload, signal)]);
  const head = ["Time", "Change", "Documents", "Passages", "Facts", "Tokens"];
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
  fill(main, el("section.page", {}, el("h1", {}, "Log"), el("h2", {}, "Retracted facts"), retractions, el("h2", {}, "Changes"), el("div.scroll", { tabindex: 0, role: "region", "aria-label": "Changes" }, table)));
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
