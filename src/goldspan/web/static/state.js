// What a worker has marked, as plain values: every function takes a state and gives a new one.
// Tokens are counted from 0; a span is {start, end, type}, its end exclusive; spans stand in order
// and never overlap. `cursor` is the token that the keyboard is at. `selection` is {anchor, focus},
// two tokens in any order, or null. `grip` is the end that stays while a span is stretched. `open`
// names the spans that were suggested and are not decided: accepted, changed or taken away.

/** A state without history. */
export function begin(size, spans = [], nothing = false, open = []) {
  const kept = sorted(spans.filter((s) => s.start >= 0 && s.start < s.end && s.end <= size));
  return {
    size, spans: kept, nothing: nothing && kept.length === 0, open: still(open, kept),
    cursor: 0, selection: null, grip: null, past: [], future: [],
  };
}

/** The span over a token, or null. */
export function spanAt(state, token) {
  return state.spans.find((span) => span.start <= token && token < span.end) ?? null;
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

/** Go to a token; the selection is put down. */
export function move(state, token) {
  return { ...state, cursor: inside(state, token), selection: null, grip: null };
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
  return { ...replace(state, span, changed), cursor: end, grip };
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
  return { ...replace(state, span, { start, end, type: span.type }), cursor, grip: null };
}

/** Label the selection, else the span under the cursor, else the cursor's token. Spans that the
 *  selection touches make room. */
export function put(state, type) {
  const range = current(state) ?? { start: state.cursor, end: state.cursor + 1 };
  const span = { start: range.start, end: range.end, type };
  const others = state.spans.filter((s) => s.end <= span.start || s.start >= span.end);
  const cursor = Math.max(span.start, Math.min(span.end - 1, state.cursor));
  const changed = change(state, [...others, span], false);
  return { ...decided(changed, span), cursor, selection: null, grip: null };
}

/** Count other tokens: `to` gives for every place between two tokens, 0 to size, the new one. What
 *  was before keeps its tokens: they are the state's `places`. */
export function recount(state, to) {
  const spans = state.spans.map(({ start, end, type }) => ({ start: to(start), end: to(end), type }));
  const open = spans.filter((_, i) => isOpen(state, state.spans[i])).map(nameOf);
  const [held, size] = [selected(state), to(state.size)];
  let selection = null;
  if (held) {
    const ends = [to(held.start), to(held.end) - 1];
    const [anchor, focus] = state.selection.anchor <= state.selection.focus ? ends : ends.reverse();
    selection = { anchor, focus };
  }
  const cursor = selection ? selection.focus : Math.min(size - 1, to(state.cursor));
  return { ...state, spans, open, size, cursor, selection, grip: null };
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

/** Take away the spans that the selection touches, else the one under the cursor. */
export function remove(state) {
  const range = current(state);
  if (!range) return state;
  const others = state.spans.filter((s) => s.end <= range.start || s.start >= range.end);
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

/** For every token the number of its span, -1 without one. */
export function owners(state) {
  const found = new Int32Array(state.size).fill(-1);
  state.spans.forEach((span, number) => found.fill(number, span.start, span.end));
  return found;
}

function inside(state, token) {
  return Math.max(0, Math.min(state.size - 1, token));
}

function sorted(spans) {
  const kept = [];
  for (const { start, end, type } of [...spans].sort((a, b) => a.start - b.start)) {
    if (!kept.length || kept.at(-1).end <= start) kept.push({ start, end, type });
  }
  return kept;
}

function change(state, spans, nothing) {
  const past = [...state.past, now(state)];
  return { ...state, spans: sorted(spans), nothing, open: still(state.open, spans), past, future: [] };
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
  const index = state.spans.indexOf(span);
  const low = index > 0 ? state.spans[index - 1].end : 0;
  const high = index + 1 < state.spans.length ? state.spans[index + 1].start - 1 : state.size - 1;
  return [low, high];
}

function now({ spans, nothing, open, places }) {
  return { spans, nothing, open, places };
}

function travel(state, from, to) {
  const then = state[from].at(-1);
  if (!then) return state;
  return {
    ...state, ...then, selection: null, grip: null,
    [from]: state[from].slice(0, -1), [to]: [...state[to], now(state)],
  };
}
