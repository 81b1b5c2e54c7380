// The scope of a question: a filter that selects some documents or a folder, and its description for people.

import { announce } from "./dom.js";
import { count } from "./controls.js";
import { go } from "./route.js";

const MAX_LENGTH = 9500; // characters of a filter that the server accepts, with room for another condition
const quoted = (text) => `"${text.replace(/[\\"]/g, "\\$&")}"`;

/** Ask a question in some documents only. */
export function askInDocuments(ids) {
  const where = `id in (${ids.map(quoted).join(", ")})`;
  if (where.length > MAX_LENGTH) announce(`${count(ids.length, "document")} are too many to list; choose a folder, a type or a language instead.`);
  else go("ask", { where });
}

/** Ask a question in the documents of a folder, a type, a language or a year. */
export function askInFacets({ folder, type, language }) {
  const conditions = [
    folder && `path like ${quoted(`${folder.replace(/[*?[]/g, "?")}/*`)}`,
    type && `extension = ${quoted(`.${type}`)}`,
    language && `language = ${quoted(language)}`,
  ];
  go("ask", { where: conditions.filter(Boolean).join(" and ") });
}

/** Return a filter in words if it is the scope of a question: "in 3 documents"; otherwise the filter as it is. */
export function describeScope(where) {
  const [, kind, list] = where.match(/^(id in \(|path like )((?:"(?:[^"\\]|\\.)*"(?:, )?)+)\)?$/) ?? [];
  if (!kind) return where;
  const names = list.match(/"(?:[^"\\]|\\.)*"/g).map((name) => name.slice(1, -1).replace(/\\(.)/g, "$1"));
  if (kind === "path like ") return `in the folder ${names[0].replace(/\/\*$/, "")}`;
  return names.length === 1 ? `in ${names[0]}` : `in ${count(names.length, "document")}`;
}
