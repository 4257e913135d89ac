// Tokens and what stands between them. Positions in a text are counted by the server in code
// points, and JavaScript counts in UTF-16 units: so texts are cut here as lists of code points.

import { rowsOf } from "./state.js";
import { drawLines } from "./tags.js";

// Without a dictionary, a word is a run of letters and digits; where a script has no spaces, one token.
const RUN = /[\p{L}\p{M}\p{N}_]+(?:['’][\p{L}\p{M}]+)*/gu;
const UNSPACED = /[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Thai}\p{sc=Lao}\p{sc=Khmer}\p{sc=Myanmar}]/u;
const SAYS_SOMETHING = /[^\p{P}\p{Z}\p{C}]/u;
const STRONG = /[\p{L}\u200e\u200f\u061c]/u;
const RIGHT_TO_LEFT = /[\p{sc=Arab}\p{sc=Hebr}\p{sc=Syrc}\p{sc=Thaa}\p{sc=Nkoo}\p{sc=Samr}\p{sc=Mand}\p{sc=Adlm}\p{sc=Rohg}\u200f\u061c]/u;

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

// ---- tokens that are cut ----
//
// A span may begin and end within tokens: `from_char` is its first character in its first token,
// `to_char` one past the last in its last token, both in code points. A place is [token, character].

/** The places where spans begin or end within tokens. */
export function cutsOf(spans) {
  return spans.flatMap(({ start, end, from_char: from, to_char: to }) => [...(from ? [[start, from]] : []), ...(to ? [[end - 1, to]] : [])]);
}

/** Cut tokens: {places, tokens, between} of their parts. */
export function cutTokens(tokens, between, cuts) {
  const inner = new Map();
  for (const [n, char] of cuts) inner.set(n, (inner.get(n) ?? new Set()).add(char));
  const [places, parts, gaps] = [[], [], []];
  tokens.forEach((token, n) => {
    const points = inner.has(n) ? Array.from(token) : null;
    const bounds = points ? [0, ...[...inner.get(n)].filter((char) => char > 0 && char < points.length).sort((a, b) => a - b)] : [0];
    bounds.forEach((char, i) => {
      places.push([n, char]);
      parts.push(points ? points.slice(char, bounds[i + 1]).join("") : token);
      gaps.push(char ? "" : between[n]);
    });
  });
  return { places, tokens: parts, between: [...gaps, between.at(-1)] };
}

/** A span of tokens as one of their parts. */
export function onParts(places, span) {
  const at = (token, char) => {
    const i = places.findIndex(([n, c]) => n > token || (n === token && c >= char));
    return i < 0 ? places.length : i;
  };
  const { start, end, from_char: from, to_char: to, ...rest } = span;
  return { ...rest, start: at(start, from ?? 0), end: to ? at(end - 1, to) : at(end, 0) };
}

/** A span of parts as one of their tokens. */
export function onTokens(places, { start, end, type }) {
  const [first, last] = [places[start], places[end] ?? [places.at(-1)[0] + 1, 0]];
  return {
    start: first[0], end: last[1] ? last[0] + 1 : last[0], type,
    ...(first[1] ? { from_char: first[1] } : {}), ...(last[1] ? { to_char: last[1] } : {}),
  };
}

/** Where a token can be cut: between what readers see as characters. */
export function charactersOf(token) {
  const units = globalThis.Intl?.Segmenter ? Array.from(new Intl.Segmenter().segment(token), ({ segment }) => segment) : Array.from(token.matchAll(/\P{M}\p{M}*/gu), ([unit]) => unit);
  let at = 0;
  return units.map((unit) => {
    const here = at;
    at += Array.from(unit).length;
    return here;
  });
}

/** The words of a text as a reader sees them, by the browser's dictionary, made of whole tokens. */
export class Words {
  constructor(tokens, between) {
    const { text, bounds } = joined(tokens, between);
    const parts = segments(text);
    this.first = []; // of every word its first token
    this.of = new Int32Array(tokens.length); // of every token its word
    this.says = []; // whether a word is more than punctuation
    let [part, last] = [0, -1];
    bounds.forEach(([start, end], i) => {
      while (part < parts.length - 1 && parts[part][1] <= start) part += 1;
      if (part > last) {
        this.first.push(i);
        this.says.push(false);
      }
      // The last part that the token reaches into: a token may be longer than a word.
      for (last = Math.max(part, last); last < parts.length - 1 && parts[last][1] < end;) last += 1;
      this.of[i] = this.first.length - 1;
      if (SAYS_SOMETHING.test(tokens[i])) this.says[this.of[i]] = true;
    });
  }

  /** How many words the text has, punctuation aside. */
  get size() {
    return this.says.filter(Boolean).length;
  }

  /** The tokens of the word that a token is part of, as {start, end}. */
  at(token) {
    const word = this.of[token];
    return { start: this.first[word], end: this.first[word + 1] ?? this.of.length };
  }

  /** The token that a step of a word leads to, ahead (1) or back (-1): where a word begins, or, with
   *  `far`, its far end; punctuation alone is passed over. */
  step(token, way, far) {
    const { start, end } = this.at(token);
    if (way < 0 && token > start) return start;
    if (way > 0 && far && token < end - 1) return end - 1;
    let word = this.of[token] + way;
    while (word >= 0 && word < this.first.length && !this.says[word]) word += way;
    if (word < 0) return 0;
    if (word >= this.first.length) return this.of.length - 1;
    const next = this.at(this.first[word]);
    return way > 0 && far ? next.end - 1 : next.start;
  }
}

/** Of every token whether its paragraph runs from right to left: by its first letter. */
export function directions(tokens, between) {
  const found = new Uint8Array(tokens.length);
  let [begin, sign] = [0, null];
  const read = (text, i) => {
    text.split("\n").forEach((line, n) => {
      if (n > 0) [begin, sign] = [i, null];
      sign ??= STRONG.exec(line)?.[0] ?? null;
    });
    if (sign && RIGHT_TO_LEFT.test(sign)) found.fill(1, begin, Math.min(i + 1, found.length));
  };
  tokens.forEach((token, i) => {
    read(between[i], i);
    read(token, i);
  });
  return found;
}

function segments(text) {
  if (globalThis.Intl?.Segmenter) {
    const cut = new Intl.Segmenter(undefined, { granularity: "word" });
    return Array.from(cut.segment(text), ({ index, segment }) => [index, index + segment.length]);
  }
  const found = [];
  let end = 0;
  const single = (from, to) => {
    for (const letter of text.slice(from, to)) {
      found.push([end, end + letter.length]);
      end += letter.length;
    }
  };
  for (const { index, 0: run } of text.matchAll(RUN)) {
    single(end, index);
    if (UNSPACED.test(run)) single(index, index + run.length);
    else found.push([index, end = index + run.length]);
  }
  single(end, text.length);
  return found;
}

/** The text of a range of tokens. */
export function textOf(tokens, between, { start, end, from_char: from, to_char: to }) {
  const part = (i) => {
    if (!(from && i === start) && !(to && i === end - 1)) return tokens[i];
    return Array.from(tokens[i]).slice(i === start ? from ?? 0 : 0, i === end - 1 ? to ?? undefined : undefined).join("");
  };
  let text = part(start);
  for (let i = start + 1; i < end; i += 1) text += between[i] + part(i);
  return text;
}

/** Put labelled text into an element, to look at only. */
export function showMarked(into, whole, gapsOf, marked, numberOf) {
  const { places, tokens, between } = cutTokens(whole, gapsOf, cutsOf(marked));
  const spans = marked.map((span) => onParts(places, span));
  const rows = rowsOf(spans);
  if (Math.max(0, ...rows.values())) {
    showStacked(into, { tokens, between, spans, rows }, numberOf);
    return;
  }
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

/** Put text with spans that overlap into an element: with their lines below it, and the name of each
 *  behind its last word. */
function showStacked(into, { tokens, between, spans, rows }, numberOf) {
  const inner = [...rows.keys()]; // as rows are made, innermost first
  into.classList.add("stacked", "shown");
  into.style.setProperty("--rows", Math.max(...rows.values()) + 1);
  const piece = (text, over, kind = "piece", last = null) => {
    const made = document.createElement("span");
    made.className = kind;
    made.textContent = text;
    drawLines(made, over.map((span) => ({ row: rows.get(span), number: numberOf(span.type), isLast: span === last })), false);
    into.append(made);
  };
  tokens.forEach((token, i) => {
    const over = inner.filter(({ start, end }) => start <= i && i < end);
    piece(between[i], over.filter(({ start }) => start < i));
    piece(token, over);
    for (const span of over.filter(({ end }) => end === i + 1)) {
      piece(span.type, over.filter((one) => one === span || one.end > i + 1 || inner.indexOf(one) > inner.indexOf(span)), `piece sample-type type-${numberOf(span.type) % 10}`, span);
    }
  });
  into.append(between.at(-1));
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
