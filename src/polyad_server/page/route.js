// The address of the page, which holds the whole state of a view.

/** Return the name and the parameters of the view in the address. */
export function readAddress() {
  const [name, query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  return { name, parameters: new URLSearchParams(query) };
}

/** Return the parameters of the view in the address. */
export function getParameters() {
  return readAddress().parameters;
}

/** Return the address of a view with its parameters; empty ones are left out, and a list is repeated. */
export function address(name, parameters = {}) {
  const query = new URLSearchParams();
  const current = getParameters().get("workspace");
  if (current) query.set("workspace", current);
  for (const [key, value] of Object.entries(parameters)) {
    for (const each of [value].flat()) if (each && key !== "workspace") query.append(key, each);
  }
  const text = query.toString();
  return `#/${name}${text ? `?${text}` : ""}`;
}

/** Show a view, also if it is the one that is shown. */
export function go(name, parameters) {
  const next = address(name, parameters);
  if (next === location.hash) dispatchEvent(new HashChangeEvent("hashchange"));
  else location.hash = next;
}
