// Tokens and what stands between them. Positions in a text are counted by the server in code
// points, and JavaScript counts in UTF-16 units: so texts are cut here as lists of code points.

const words = globalThis.Intl?.Segmenter ? new Intl.Segmenter(undefined, { granularity: "word" }) : null;

/** What stands before every token, and after the last: one string more than tokens. */
export function gaps(tokens, text, starts) {
  if (text === null || text === undefined || !starts || starts.length !== tokens.length) {
    return ["", ...tokens.slice(1).map(() => " "), ""];
  }
  const points = Array.from(text);
  const found = [];
  let end = 0;
  tokens.forEach((token, i) => {
    found.push(points.slice(end, Math.max(end, starts[i])).join(""));
    end = Math.max(end, starts[i] + Array.from(token).length);
  });
  found.push(points.slice(end).join(""));
  return found;
}

/** The tokens of the word that a token is part of, as {start, end}: a word is what the browser's
 *  dictionary takes for one, so that Chinese is cut too. */
export function wordAt(tokens, between, token) {
  const { text, bounds } = joined(tokens, between);
  if (!words) return { start: token, end: token + 1 };
  // A window of tokens suffices, and keeps long texts fast.
  const from = bounds[Math.max(0, token - 8)][0];
  const to = bounds[Math.min(tokens.length - 1, token + 8)][1];
  const [low, high] = bounds[token];
  let [first, last] = [low, high];
  for (const part of words.segment(text.slice(from, to))) {
    const [start, end] = [from + part.index, from + part.index + part.segment.length];
    if (start < high && end > low) [first, last] = [Math.min(first, start), Math.max(last, end)];
  }
  let [start, end] = [token, token + 1];
  while (start > 0 && bounds[start - 1][1] > first) start -= 1;
  while (end < tokens.length && bounds[end][0] < last) end += 1;
  return { start, end };
}

/** The text of a range of tokens. */
export function textOf(tokens, between, { start, end }) {
  let text = tokens[start];
  for (let i = start + 1; i < end; i += 1) text += between[i] + tokens[i];
  return text;
}

/** Put labelled text into an element, to look at only. */
export function showMarked(into, tokens, between, spans, numberOf) {
  let at = 0;
  const add = (parent, from, to) => {
    for (let i = from; i < to; i += 1) parent.append(i === from && parent !== into ? "" : between[i], tokens[i]);
  };
  for (const span of spans) {
    add(into, at, span.start);
    const mark = document.createElement("span");
    mark.className = `sample type-${numberOf(span.type) % 10}`;
    into.append(between[span.start]);
    add(mark, span.start, span.end);
    const tag = document.createElement("span");
    tag.className = "sample-type";
    tag.textContent = span.type;
    mark.append(tag);
    into.append(mark);
    at = span.end;
  }
  add(into, at, tokens.length);
  if (spans.length) return;
  const none = document.createElement("span");
  none.className = "none";
  none.textContent = "Nothing marked";
  into.append(none);
}

function joined(tokens, between) {
  let text = "";
  const bounds = tokens.map((token, i) => {
    text += between[i];
    const start = text.length;
    text += token;
    return [start, text.length];
  });
  return { text, bounds };
}
