// The scope of a question: a filter that selects some documents or a folder, and its description for people.

import { announce } from "./dom.js";
import { count } from "./controls.js";
import { go } from "./main.js";

const MAX_LENGTH = 9500; // characters of a filter that the server accepts, with room for another condition
const quoted = (text) => `"${text.replace(/[\\"]/g, "\\$&")}"`;

/** Ask a question in some documents only. */
export function askInDocuments(ids) {
  const where = ids.length === 1 ? `id = ${quoted(ids[0])}` : `id in (${ids.map(quoted).join(", ")})`;
  if (where.length > MAX_LENGTH) announce(`${count(ids.length, "document")} are too many to list; choose a folder, a type or a year instead.`);
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
  const listed = where.match(/^id in \(("(?:[^"\\]|\\.)*"(?:, )?)+\)$/);
  if (listed) return `in ${count(where.match(/"(?:[^"\\]|\\.)*"/g).length, "document")}`;
  const [, kind, text] = where.match(/^(id =|path like) "((?:[^"\\]|\\.)*)"$/) ?? [];
  if (!kind) return where;
  const name = text.replace(/\\(.)/g, "$1");
  return kind === "id =" ? `in ${name}` : `in the folder ${name.replace(/\/\*$/, "")}`;
}
