// Says in plain words why a source is there. The names of signals come from the ranking of the server.

const PLAIN = [
  [/^linked from another passage about '(.+)'$/, (name) => `It is linked with another passage about “${name}”.`],
  [/^linked from '(.+)', which mentions '(.+)'$/, (title, name) => `“${title}” mentions “${name}”, and this text is about it.`],
  [/two steps from|about an entity that|joins a linked entity|one link away/, () => "It is about something that another good source mentions."],
  [/about a name in the question/, () => "It is about a name in your question."],
  [/mentions names|joins a name/, () => "It mentions names in your question."],
  [/adds words of the question/, () => "It adds what another good source leaves open."],
  [/rare number/, () => "It contains a number or a phrase of your question."],
  [/words/, () => "It contains words of your question."],
  [/hyperedge similar/, () => "One of its statements is close in meaning to your question."],
  [/similar|similarity/, () => "It is close in meaning to your question."],
  [/shares an entity/, () => "It shares a name with another good source."],
  [/compared with the best/, () => "It holds up in comparison with the other good sources."],
];

/** Return up to three sentences for the reasons of a hit, such as "mentions names in the question +0.31; ...". */
export function plainReasons(reason) {
  const sentences = new Set();
  const parts = reason.split("; ").filter((part) => !/ -\d/.test(part) && !part.startsWith("other signals"));
  for (const part of parts.reverse()) { // a link, which says most, comes last
    const name = part.replace(/ [+]\d+(\.\d+)?$/, "");
    const rule = PLAIN.find(([pattern]) => pattern.test(name));
    if (rule) sentences.add(rule[1](...name.match(rule[0]).slice(1)));
  }
  const [first, ...others] = [...sentences];
  if (!first) return ["Its text fits your question best."];
  return [first, ...others.reverse()].slice(0, 3);
}
