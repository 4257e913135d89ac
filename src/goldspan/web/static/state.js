// What a worker has marked, as plain values: every function takes a state and gives a new one.
// Tokens are counted from 0; a span is {start, end, type}, its end exclusive; spans stand in order
// and never overlap, unless the state is `overlapping`: then `chosen` names the one that commands
// are about. `cursor` is the token that the keyboard is at. `selection` is {anchor, focus}, two
// tokens in any order, or null. `grip` is the end that stays while a span is stretched. `open`
// names the spans that were suggested and are not decided: accepted, changed or taken away.

/** A state without history. */
export function begin(size, spans = [], nothing = false, open = [], overlapping = false) {
  const kept = sorted(spans.filter((s) => s.start >= 0 && s.start < s.end && s.end <= size), overlapping);
  return {
    size, spans: kept, nothing: nothing && kept.length === 0, open: still(open, kept), overlapping,
    cursor: 0, selection: null, grip: null, chosen: null, past: [], future: [],
  };
}

/** The spans over a token, innermost first. */
export function spansAt(state, token) {
  return state.spans.filter((span) => span.start <= token && token < span.end).sort(byLength);
}

/** The span over a token, of several the chosen one, else the innermost; or null. */
export function spanAt(state, token) {
  const over = spansAt(state, token);
  return over.find((span) => nameOf(span) === state.chosen) ?? over[0] ?? null;
}

/** [start, end) of the selection, or null. */
export function selected(state) {
  if (!state.selection) return null;
  const { anchor, focus } = state.selection;
  return { start: Math.min(anchor, focus), end: Math.max(anchor, focus) + 1 };
}

/** What commands act on: the selection, else the span under the cursor, else nothing. */
export function current(state) {
  return selected(state) ?? spanAt(state, state.cursor);
}

/** Go to a token, and choose the span over it, or the innermost; the selection is put down. */
export function move(state, token, span = null) {
  return { ...state, cursor: inside(state, token), selection: null, grip: null, chosen: span && nameOf(span) };
}

/** Choose the next span over the cursor's token: after the outermost comes the innermost. */
export function other(state) {
  const over = spansAt(state, state.cursor);
  return move(state, state.cursor, over[(over.indexOf(spanAt(state, state.cursor)) + 1) % over.length]);
}

/** Select the tokens from `anchor` to `focus`. */
export function select(state, anchor, focus = anchor) {
  const ends = { anchor: inside(state, anchor), focus: inside(state, focus) };
  return { ...state, cursor: ends.focus, selection: ends, grip: null };
}

/** Put the selection down. */
export function deselect(state) {
  return { ...state, selection: null, grip: null };
}

/** Go to a token and take along what is held: the selection, or one end of the span under the
 *  cursor. A span gives way to its neighbours. */
export function stretch(state, token) {
  const to = inside(state, token);
  if (state.selection) return select(state, state.selection.anchor, to);
  const span = spanAt(state, state.cursor);
  if (!span) return select(state, state.cursor, to);
  const grip = state.grip ?? farEnd(span, state.cursor, to);
  const [low, high] = room(state, span);
  const end = Math.max(low, Math.min(high, to));
  const changed = { start: Math.min(grip, end), end: Math.max(grip, end) + 1, type: span.type };
  return { ...replace(state, span, changed), cursor: end, grip, chosen: nameOf(changed) };
}

/** Move one edge ("start" or "end") of the selection or of the span under the cursor outwards
 *  (step 1) or inwards (step -1); the last token stays. */
export function edge(state, side, step) {
  const range = current(state);
  if (!range) return state;
  const span = state.selection ? null : range;
  const [low, high] = span ? room(state, span) : [0, state.size - 1];
  let { start, end } = range;
  if (side === "start") start = Math.max(low, Math.min(end - 1, start - step));
  else end = Math.min(high + 1, Math.max(start + 1, end + step));
  if (!span) return select(state, ...(side === "start" ? [end - 1, start] : [start, end - 1]));
  const cursor = Math.max(start, Math.min(end - 1, state.cursor));
  const changed = { start, end, type: span.type };
  return { ...replace(state, span, changed), cursor, grip: null, chosen: nameOf(changed) };
}

/** Label the selection, else the span under the cursor, else the cursor's token. Spans that the
 *  selection touches make room, unless they may overlap. */
export function put(state, type) {
  const range = current(state) ?? { start: state.cursor, end: state.cursor + 1 };
  const span = { start: range.start, end: range.end, type };
  const others = state.spans.filter((s) => (state.overlapping ? s !== range : s.end <= span.start || s.start >= span.end));
  const cursor = Math.max(span.start, Math.min(span.end - 1, state.cursor));
  let changed = change(state, [...others, span], false);
  const isThere = state.spans.some((one) => nameOf(one) === nameOf(span)) && !isOpen(state, span);
  if (state.overlapping && isThere && changed.spans.length === state.spans.length) changed = state;
  return { ...decided(changed, span), cursor, selection: null, grip: null, chosen: nameOf(span) };
}

/** Count other tokens: `to` gives for every place between two tokens, 0 to size, the new one. What
 *  was before keeps its tokens: they are the state's `places`. */
export function recount(state, to) {
  const spans = state.spans.map(({ start, end, type }) => ({ start: to(start), end: to(end), type }));
  const open = spans.filter((_, i) => isOpen(state, state.spans[i])).map(nameOf);
  const chosen = spans.filter((_, i) => nameOf(state.spans[i]) === state.chosen).map(nameOf)[0] ?? null;
  const [held, size] = [selected(state), to(state.size)];
  let selection = null;
  if (held) {
    const ends = [to(held.start), to(held.end) - 1];
    const [anchor, focus] = state.selection.anchor <= state.selection.focus ? ends : ends.reverse();
    selection = { anchor, focus };
  }
  const cursor = selection ? selection.focus : Math.min(size - 1, to(state.cursor));
  return { ...state, spans, open, chosen, size, cursor, selection, grip: null };
}

/** The name of a span in `open`. */
export function nameOf({ start, end, type }) {
  return `${start} ${end} ${type}`;
}

/** Whether a span was suggested and is not decided. */
export function isOpen(state, span) {
  return state.open.includes(nameOf(span));
}

/** The next span that is not decided, from the cursor on and then from the beginning, or null. */
export function nextOpen(state) {
  const left = state.spans.filter((span) => isOpen(state, span));
  return left.find((span) => span.end > state.cursor) ?? left[0] ?? null;
}

/** Accept what was suggested under the cursor. */
export function accept(state) {
  const span = spanAt(state, state.cursor);
  if (!span || !isOpen(state, span)) return state;
  return { ...decided(change(state, state.spans, false), span), selection: null, grip: null };
}

/** Take away the spans that the selection touches, of overlapping ones those that lie in it; else
 *  the one under the cursor. */
export function remove(state) {
  const range = current(state);
  if (!range) return state;
  const isIn = (s) => (state.selection ? range.start <= s.start && s.end <= range.end : s === range);
  const others = state.spans.filter((s) => (state.overlapping ? !isIn(s) : s.end <= range.start || s.start >= range.end));
  if (others.length === state.spans.length) return state;
  return { ...change(state, others, false), selection: null, grip: null };
}

/** Take all spans away. */
export function clear(state) {
  if (!state.spans.length && !state.nothing) return deselect(state);
  return { ...change(state, [], false), selection: null, grip: null };
}

/** Say that there is nothing to mark, or take that back. */
export function toggleNothing(state) {
  return { ...change(state, [], !state.nothing), selection: null, grip: null };
}

/** Take the last change back. */
export function undo(state) {
  return travel(state, "past", "future");
}

/** Do again what was taken back. */
export function redo(state) {
  return travel(state, "future", "past");
}

/** Whether there is an answer to send: a span, or that there is none. */
export function isReady(state) {
  return state.spans.length > 0 || state.nothing;
}

/** For every token the spans over it, innermost first. */
export function covers({ size, spans }) {
  const found = Array.from({ length: size }, () => []);
  for (const span of [...spans].sort(byLength)) for (let i = span.start; i < span.end; i += 1) found[i].push(span);
  return found;
}

/** For every span its row below the words, a map: the innermost spans are nearest to the words, and
 *  no two of a row overlap. */
export function rowsOf(spans) {
  const [rows, found] = [[], new Map()];
  for (const span of [...spans].sort(byLength)) {
    const isFree = (row) => row.every(({ start, end }) => end <= span.start || span.end <= start);
    const free = rows.findIndex(isFree);
    const row = free < 0 ? rows.push([]) - 1 : free;
    rows[row].push(span);
    found.set(span, row);
  }
  return found;
}

function inside(state, token) {
  return Math.max(0, Math.min(state.size - 1, token));
}

function byLength(a, b) {
  return a.end - a.start - (b.end - b.start);
}

// Of flat spans those that begin first are kept; of overlapping ones the longest stand first.
function sorted(spans, overlapping) {
  const kept = [];
  const order = (a, b) => a.start - b.start || (overlapping ? byLength(b, a) || (a.type > b.type) - (a.type < b.type) : 0);
  for (const { start, end, type } of [...spans].sort(order)) {
    const last = kept.at(-1);
    const isFree = overlapping ? last && nameOf(last) !== nameOf({ start, end, type }) : last?.end <= start;
    if (!last || isFree) kept.push({ start, end, type });
  }
  return kept;
}

function change(state, spans, nothing) {
  const past = [...state.past, now(state)];
  return { ...state, spans: sorted(spans, state.overlapping), nothing, open: still(state.open, spans), past, future: [] };
}

function still(open, spans) {
  const there = spans.map(nameOf);
  return open.filter((name) => there.includes(name));
}

function decided(state, span) {
  return { ...state, open: state.open.filter((name) => name !== nameOf(span)) };
}

function replace(state, span, changed) {
  if (span.start === changed.start && span.end === changed.end) return state;
  return change(state, [...state.spans.filter((s) => s !== span), changed], false);
}

// At its first token a span is held by its last, and so on; a single token is held by itself.
function farEnd(span, cursor, to) {
  if (span.end - span.start === 1) return span.start;
  if (cursor === span.start) return span.end - 1;
  if (cursor === span.end - 1) return span.start;
  return to < cursor ? span.end - 1 : span.start;
}

// The first and the last token that a span may reach.
function room(state, span) {
  if (state.overlapping) return [0, state.size - 1];
  const index = state.spans.indexOf(span);
  const low = index > 0 ? state.spans[index - 1].end : 0;
  const high = index + 1 < state.spans.length ? state.spans[index + 1].start - 1 : state.size - 1;
  return [low, high];
}

function now({ spans, nothing, open, places, chosen }) {
  return { spans, nothing, open, places, chosen };
}

function travel(state, from, to) {
  const then = state[from].at(-1);
  if (!then) return state;
  return {
    ...state, ...then, selection: null, grip: null,
    [from]: state[from].slice(0, -1), [to]: [...state[to], now(state)],
  };
}
