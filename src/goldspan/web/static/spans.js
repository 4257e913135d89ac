// The span widget: a text whose tokens are marked by mouse, touch or keys, and its commands.

import { beyond, followDrag, gapAt, tokenNear, tokenOf } from "./drag.js";
import { button, drawActs, handBack, LONG, make, makeActs } from "./panels.js";
import * as marks from "./state.js";
import { cutNames, drawLines } from "./tags.js";
import { charactersOf, cutsOf, cutTokens, directions, gaps, onParts, onTokens, textOf, Words } from "./text.js";

const HINT = {
  mouse: "Drag over words, or double-click one; then choose what they are.",
  touch: "Tap the first and the last word; then choose what they are.",
};
const MAC = /^Mac|^iP/.test(navigator.platform); // where Option goes from word to word
const STILL = 3; // pixels that a hand moves though it means to press
const QUOTED = 120; // characters of what is held that are shown
const EDGES = { "start-out": ["start", 1], "start-in": ["start", -1], "end-out": ["end", 1], "end-in": ["end", -1] };
const LEAST_ROWS = 2; // of overlapping spans, for which there is room from the beginning
const NAMED = 3; // labels that a notice names
const NOTHING = "You marked that there is nothing here.";

export class SpanWidget {
  /** `say(text)` speaks to screen readers, `changed()` hears of every change, `send()` sends,
   *  `spacing()` is how the lines stand: "wide", "close", or "auto" for close in long texts;
   *  `overlapping`: spans may overlap; `face` is the widget that this one is part of, or itself. */
  constructor({ work, dock, labels, say, changed, send, spacing = () => "auto", overlapping = false, face }) {
    Object.assign(this, { labels, keys: labels, say, changed, spacing, overlapping, face: face ?? this });
    this.brush = labels.length === 1 ? 0 : null;
    this.pointer = matchMedia("(pointer: coarse)").matches ? "touch" : "mouse";
    this.drag = null;
    this.firstTap = null;
    this.word = "Send";
    this.text = make("div", {
      class: overlapping ? "text stacked" : "text", role: "listbox", "aria-multiselectable": "true", "aria-label": "Text", dir: "auto",
      "aria-describedby": "held-hint",
    });
    work.replaceChildren(this.text);
    this.dock = dock;
    dock.replaceChildren(this.makeHeld(), this.makeTypes(), this.makeActs(send));
    handBack(dock, () => this.focus());
    this.listen();
  }

  makeNotice() {
    this.noticeText = make("span", { dir: "auto" });
    const undo = () => {
      this.act("undo");
      this.focus();
    };
    this.notice = make("span", { class: "notice", hidden: "" }, this.noticeText, button("Undo", undo, { class: "small" }));
    return this.notice;
  }

  makeHeld() {
    this.quote = make("span", { class: "quote", dir: "auto" });
    const end = (side, step, sign, name) => button(sign, () => this.edge(side, step), { class: "small", "aria-label": name });
    this.edges = make("span", { class: "edges" },
      make("span", { class: "side", "aria-hidden": "true" }, "Start"), end("start", -1, "−", "One word less at the start"), end("start", 1, "+", "One word more at the start"),
      make("span", { class: "side", "aria-hidden": "true" }, "End"), end("end", -1, "−", "One word less at the end"), end("end", 1, "+", "One word more at the end"),
      (this.characters = button("a|b", () => this.setByCharacter(!this.byCharacter), { class: "small within", "aria-label": "Move the ends by characters", "aria-pressed": "false" })),
      (this.accept = button("✓", () => this.acceptHere(), { class: "small accept", "aria-label": "Accept this label" })),
      (this.away = button("✕", () => this.putAway(), { class: "small" })));
    this.hint = make("span", { class: "hint", id: "held-hint" });
    return make("div", { class: "held" }, this.hint, this.quote, this.edges, this.makeNotice());
  }

  makeTypes() {
    this.types = this.labels.map(({ name, key }, i) => button(
      [key ? make("kbd", {}, key.toUpperCase()) : "", make("span", { dir: "auto" }, name)],
      () => this.choose(i), { class: `type type-${i % 10}`, "aria-pressed": "false" }));
    return make("div", { class: "types", role: "group", "aria-label": "Kinds" }, ...this.types);
  }

  makeActs(send) {
    this.clearButton = button("Clear", () => this.act("clear"), { class: "quiet" });
    this.nothingButton = button("Nothing here", () => this.act("nothing"), { class: "toggle", "aria-pressed": "false" });
    return makeActs(this, send, [this.clearButton], [this.nothingButton]);
  }

  /** Show a task; `work` is what a draft has kept, and goes before what is suggested; `hint` is
   *  what is said where it has nothing, and `unsure` are the tokens to look at. */
  open(task, work, { hint = NOTHING, unsure = new Set() } = {}) {
    Object.assign(this, { unsure, nothingHint: hint });
    const suggested = work ? [] : this.known(task.suggestion?.spans ?? []);
    const spans = this.known(work?.spans ?? suggested);
    this.whole = { tokens: task.tokens, between: gaps(task.tokens, task.text, task.starts) };
    this.isCuttable = Boolean(task.starts); // places in a text that nobody has cannot be said
    this.count(cutsOf(spans));
    const own = spans.map((span) => onParts(this.places, span));
    const left = (work?.open ?? suggested).map((one) => (one.type ? marks.nameOf(onParts(this.places, one)) : one));
    this.state = { ...marks.begin(this.tokens.length, own, work?.nothing, left, this.overlapping), places: this.places };
    this.firstTap = this.drag = this.clicked = null;
    this.setByCharacter(false);
    this.characters.hidden = !this.isCuttable;
    this.notice.hidden = true;
    this.build();
    this.draw();
    this.drawUnsure();
    this.space();
  }

  drawUnsure() {
    const { held, active } = this.drawn;
    this.places.forEach(([n], i) => { if (this.unsure.has(n)) this.drawToken(i, held, active); });
  }

  // ---- tokens that are cut ----

  /** Cut the tokens of the task; the parts are the tokens from now on. */
  count(cuts) {
    Object.assign(this, cutTokens(this.whole.tokens, this.whole.between, cuts));
    this.rtl = directions(this.tokens, this.between);
    this.cutWords = null;
  }

  /** Cut elsewhere than now; what was marked stays where it is. */
  recut(cuts) {
    const to = this.recount(cuts);
    this.redraw({ ...marks.recount(this.state, (i) => to[i]), places: this.places });
  }

  /** Count the parts of other cuts; gives of every part there was, and the end, its new number. */
  recount(cuts) {
    const before = this.places;
    this.count(cuts);
    let at = -1;
    const isUpTo = ([m, c], [n, char]) => m < n || (m === n && c <= char);
    const to = before.map((place) => {
      while (at + 1 < this.places.length && isUpTo(this.places[at + 1], place)) at += 1;
      return at;
    });
    return [...to, this.places.length];
  }

  redraw(state) {
    const hadFocus = this.text.contains(document.activeElement);
    this.state = state;
    this.build();
    this.draw();
    this.drawUnsure();
    if (hadFocus && !this.drag) this.focus();
  }

  /** Cut a token into its characters. */
  cutUp(i) {
    const cuts = this.places.filter(([, char]) => char);
    const [n] = this.places[i] ?? [];
    if (n === undefined || !this.isCuttable) return false;
    const inner = charactersOf(this.whole.tokens[n]).slice(1).map((char) => [n, char]);
    if (inner.length > cuts.filter(([m]) => m === n).length) this.recut([...cuts, ...inner]);
    return true;
  }

  /** Put parts together again that nothing begins or ends between. */
  tidy() {
    const held = marks.selected(this.state);
    const used = new Set([...this.state.spans, ...(held ? [held] : [])].flatMap(({ start, end }) => [start, end]));
    const cuts = this.places.filter(([, char], i) => char && used.has(i));
    if (cuts.length < this.places.filter(([, char]) => char).length) this.recut(cuts);
  }

  /** Whether the ends of what is held go by characters. */
  setByCharacter(on) {
    this.byCharacter = on && this.isCuttable;
    this.characters.setAttribute("aria-pressed", String(this.byCharacter));
  }

  /** Move an end by one character. */
  edgeWithin(side, step) {
    const range = marks.current(this.state);
    if (!range) return this.say("Nothing to change");
    const before = this.placeOf(range);
    // The token that the end goes into, or is in.
    const into = side === "end" ? range.end - (step > 0 ? 0 : 1) : range.start - (step > 0 ? 1 : 0);
    this.cutUp(into);
    this.become(marks.edge(this.state, side, step));
    this.tidy();
    this.drawDock();
    const now = marks.current(this.state);
    return this.say(this.placeOf(now) === before ? "Nothing to change" : this.spoken(now));
  }

  /** A range as a name of where it is. */
  placeOf({ start, end }) {
    return JSON.stringify(onTokens(this.places, { start, end }));
  }

  /** The part at a place of the page; its token is cut into characters first. */
  partNear(x, y) {
    const i = tokenNear(this.cells, x, y);
    if (i === null || !this.cutUp(i)) return i;
    return tokenNear(this.cells, x, y);
  }

  /** Set how the lines stand. */
  space() {
    const spacing = this.spacing();
    const length = this.tokens.reduce((sum, token, i) => sum + token.length + this.between[i].length, 0);
    this.text.classList.toggle("close", spacing === "close" || (spacing === "auto" && length > LONG));
    this.cut();
  }

  /** The words of the text, made when they are first asked for. */
  get words() {
    this.cutWords ??= new Words(this.tokens, this.between);
    return this.cutWords;
  }

  known(spans) {
    return spans.filter((span) => this.labels.some((label) => label.name === span.type));
  }

  /** What a draft keeps. */
  get work() {
    const { spans, nothing } = this.state;
    const open = spans.filter((span) => marks.isOpen(this.state, span)).map((span) => onTokens(this.places, span));
    return { ...this.answer, nothing, open };
  }

  get answer() {
    return { spans: this.state.spans.map((span) => onTokens(this.places, span)) };
  }

  get isReady() {
    return marks.isReady(this.state);
  }

  get steps() {
    return this.state.past.length;
  }

  get canUndo() {
    return this.state.past.length > 0;
  }

  get canRedo() {
    return this.state.future.length > 0;
  }

  get missing() {
    return "Mark something first, or say “Nothing here”.";
  }

  /** Decide on what was suggested, one label after the other; gives whether there was any left. */
  review() {
    if (!this.state.open.length) return false;
    const here = marks.spanAt(this.state, this.state.cursor);
    if (here && !this.state.selection && marks.isOpen(this.state, here)) this.acceptHere();
    const next = marks.nextOpen(this.state);
    if (next) this.become(marks.move(this.state, next.start, next), `${this.spoken(next)}: ${next.type}, suggested. Press Enter to accept.`);
    this.focus();
    return true;
  }

  acceptHere() {
    const span = marks.spanAt(this.state, this.state.cursor);
    this.become(marks.accept(this.state), `${this.spoken(span)}: ${span.type} accepted`);
    this.focus();
  }

  focus() {
    this.cells[this.state.cursor]?.focus({ preventScroll: true });
  }

  // ---- drawing ----

  build() {
    const all = document.createDocumentFragment();
    this.cells = [];
    this.seams = [];
    this.tokens.forEach((token, i) => {
      // What stands between two tokens is an element of its own, so that a span is coloured through.
      const seam = this.between[i] ? make("span", { class: "gap", role: "presentation" }, this.between[i]) : null;
      const cell = make("span", { class: "token", role: "option", tabindex: "-1", "aria-selected": "false" }, token);
      cell.dataset.i = i;
      this.seams.push(seam);
      this.cells.push(cell);
      all.append(seam ?? "", cell);
    });
    all.append(this.between.at(-1));
    this.text.replaceChildren(all);
    const looks = { cells: this.tokens.map(() => "token|"), seams: this.tokens.map(() => "gap") };
    this.drawn = { ...looks, cursor: null, spans: [], open: [], held: null, active: null };
  }

  draw() {
    this.drawTokens();
    this.drawCursor();
    this.drawDock();
  }

  drawTokens() {
    const { spans, open } = this.state;
    const held = marks.selected(this.state);
    const active = held ? null : marks.spanAt(this.state, this.state.cursor);
    const was = this.drawn;
    if (was.spans !== spans) {
      this.covers = marks.covers(this.state);
      this.rows = this.overlapping ? marks.rowsOf(spans) : null;
      if (this.rows) this.text.style.setProperty("--rows", Math.max(LEAST_ROWS - 1, ...this.rows.values()) + 1);
    }
    for (const [from, to] of this.touched(was, { spans, open, held, active })) {
      for (let i = from; i < Math.min(to, this.cells.length); i += 1) this.drawToken(i, held, active);
    }
    if (was.spans !== spans || (this.rows && was.active !== active)) {
      cancelAnimationFrame(this.cutting);
      this.cutting = requestAnimationFrame(() => this.cut());
    }
    Object.assign(was, { spans, open, held, active });
  }

  /** The tokens that may look another way than they do, as ranges: a text may have thousands. */
  touched(was, now) {
    const found = [];
    const add = (...ranges) => ranges.forEach((one) => one && found.push([one.start, one.end]));
    if (was.spans !== now.spans || was.open !== now.open) add(...was.spans, ...now.spans);
    if (was.active !== now.active) add(was.active, now.active);
    if (!was.held || !now.held) add(was.held, now.held);
    else {
      for (const [a, b] of [[was.held.start, now.held.start], [was.held.end, now.held.end]]) {
        // With the token on either side, whose ends show.
        if (a !== b) found.push([Math.max(0, Math.min(a, b) - 1), Math.max(a, b) + 1]);
      }
    }
    return found;
  }

  drawToken(i, held, active) {
    const over = this.covers[i];
    // Of overlapping spans all have lines, and the chosen one has its colour behind the words.
    const span = this.rows ? over.find((one) => one === active) : over[0];
    const chosen = held && held.start <= i && i < held.end;
    const ends = `${over.some(({ start }) => start === i) ? " first" : ""}${over.some(({ end }) => end === i + 1) ? " last" : ""}`;
    const edges = chosen ? `${held.start === i ? " from" : ""}${held.end === i + 1 ? " to" : ""}` : "";
    const open = over.filter((one) => marks.isOpen(this.state, one));
    const kind = span ? ` type-${this.number(span.type) % 10}${!this.rows && open.length ? " suggested" : ""}` : "";
    const look = `${over.length ? " marked" : ""}${kind}${span && span === active ? " active" : ""}${this.unsure.has(this.places[i][0]) ? " unsure" : ""}`;
    const heard = over.map((one) => `${one.type}${open.includes(one) ? ", suggested" : ""}${one === span && over.length > 1 ? " (chosen)" : ""}`);
    this.paint(i, `token${look}${ends}${chosen ? " selected" : ""}${edges}`, heard.join(", "), over[0]);
    const within = `${span && span.start < i ? look : ""}${chosen && held.start < i ? " selected" : ""}`;
    this.paintSeam(i, `gap${within}`);
    if (this.rows) this.drawStack(i, over, open, active);
  }

  /** Draw the lines of the spans over a token, and the names of those that begin there. */
  drawStack(i, over, open, active) {
    const lines = over.map((one) => ({
      one, row: this.rows.get(one), number: this.number(one.type), isOpen: open.includes(one), isLast: one.end === i + 1,
    }));
    drawLines(this.cells[i], lines, this.rtl[i]);
    if (this.seams[i]) drawLines(this.seams[i], lines.filter(({ one }) => one.start < i).map((line) => ({ ...line, isLast: false })), this.rtl[i]);
    this.cells[i].replaceChildren(this.tokens[i], ...lines.filter(({ one }) => one.start === i).map(({ one, row, number, isOpen }) => {
      const name = make("span", { class: `name type-${number % 10}${one === active ? " active" : ""}`, "data-type": `${one.type}${isOpen ? " ?" : ""}`, "aria-hidden": "true" });
      name.style.setProperty("--at", row);
      return Object.assign(name, { one, row });
    }));
  }

  cut() {
    const { spans } = this.state;
    if (!this.rows) return cutNames(this.text, spans.map((span) => this.cells[span.start]), spans.map((span) => this.rtl[span.start]));
    const names = [...this.text.querySelectorAll(".name")].sort((a, b) => a.row - b.row);
    return cutNames(this.text, names, names.map(({ one }) => this.rtl[one.start]));
  }

  paint(i, look, heard, span) {
    const shown = `${look}|${heard}`;
    if (this.drawn.cells[i] === shown) return;
    const cell = this.cells[i];
    this.drawn.cells[i] = shown;
    cell.className = look;
    cell.setAttribute("aria-selected", String(look.includes(" selected")));
    if (span) {
      cell.setAttribute("aria-label", `${this.tokens[i]}, ${heard}`);
      cell.dataset.type = span.type;
    } else {
      cell.removeAttribute("aria-label");
      delete cell.dataset.type;
    }
  }

  paintSeam(i, look) {
    if (!this.seams[i] || this.drawn.seams[i] === look) return;
    this.drawn.seams[i] = look;
    this.seams[i].className = look;
  }

  drawCursor() {
    const { cursor } = this.state;
    if (this.drawn.cursor === cursor) return;
    if (this.drawn.cursor !== null) this.cells[this.drawn.cursor].tabIndex = -1;
    this.cells[cursor].tabIndex = 0;
    this.drawn.cursor = cursor;
  }

  drawDock() {
    const held = marks.selected(this.state);
    const range = marks.current(this.state);
    this.hint.hidden = Boolean(range);
    this.quote.hidden = this.edges.hidden = !range;
    this.hint.textContent = this.hintText();
    if (range) this.quote.textContent = this.quoted(range);
    this.away.setAttribute("aria-label", held ? "Clear the selection" : "Remove this label");
    const type = held ? null : range?.type;
    this.accept.hidden = !type || !marks.isOpen(this.state, range);
    this.types.forEach((chip, i) => {
      chip.setAttribute("aria-pressed", String(type ? this.labels[i].name === type : !range && this.brush === i));
    });
    this.nothingButton.setAttribute("aria-pressed", String(this.state.nothing));
    drawActs(this);
    this.clearButton.setAttribute("aria-disabled", String(!this.state.spans.length && !this.state.nothing));
    const left = this.state.open.length;
    this.sendButton.textContent = !left ? this.word : this.accept.hidden ? `Check ${left}` : "Accept";
  }

  /** Say what the button sends, or what it waits for. */
  nameSend(word) {
    const same = this.word === word;
    this.word = word;
    if (this.state && !same) this.drawDock();
  }

  hintText() {
    if (this.state.nothing) return this.state.past.length ? NOTHING : this.nothingHint;
    const verb = this.pointer === "touch" ? "Tap the first and the last word" : "Drag over words, or double-click one";
    if (this.brush !== null) return `${verb}: they become ${this.labels[this.brush].name}.`;
    return HINT[this.pointer];
  }

  // ---- commands ----

  number(type) {
    return this.labels.findIndex((label) => label.name === type);
  }

  become(state, said) {
    const before = this.state;
    if (state.places !== before.places) { // what was undone had other parts
      const to = this.recount(state.places.filter(([, char]) => char));
      this.redraw({ ...state, places: this.places, size: this.places.length, cursor: to[state.cursor] });
      this.tidy();
      state = this.state;
    } else {
      this.state = state;
      this.draw();
    }
    const moved = before.cursor !== state.cursor;
    // While the mouse goes over a long text, the focus waits for its end.
    if (moved && !this.drag && this.text.contains(document.activeElement)) this.cells[state.cursor].focus();
    if (before.spans !== state.spans || before.nothing !== state.nothing || before.open !== state.open) {
      this.notice.hidden = true;
      this.changed();
    }
    if (said) this.say(said);
  }

  put(i) {
    const before = this.state;
    const state = marks.put(before, this.labels[i].name);
    const { start, end } = marks.current(state);
    this.firstTap = null;
    // A label over the same words is changed; over others, it takes the place of what they had.
    const lost = before.spans.filter((s) => !this.overlapping && s.start < end && s.end > start && !(s.start === start && s.end === end));
    this.become(state, `${this.spoken({ start, end })}: ${this.labels[i].name}`);
    this.tellLost("Replaced", lost);
  }

  /** Tell of labels that went though nobody asked for that, with a button that brings them back. */
  tellLost(what, lost) {
    if (!lost.length) return;
    const named = lost.slice(0, NAMED).map((span) => `${span.type} ${this.spoken(span)}`);
    if (lost.length > NAMED) named.push(`${lost.length - NAMED} more`);
    this.noticeText.textContent = `${what}: ${named.join(", ")}`;
    this.noticeText.title = this.noticeText.textContent;
    this.notice.hidden = false;
    this.say(`${this.noticeText.textContent}. Press U to undo.`);
  }

  spoken(range) {
    return range ? `“${this.quoted(range)}”` : "";
  }

  /** The text of a range; of a long one its beginning and its end. */
  quoted({ start, end }) {
    if (end - start <= QUOTED) {
      const text = textOf(this.tokens, this.between, { start, end });
      if (text.length <= QUOTED) return text;
      return `${text.slice(0, QUOTED / 2).trimEnd()} … ${text.slice(-QUOTED / 3).trimStart()}`;
    }
    const part = (from, to) => this.quoted({ start: from, end: to });
    return `${part(start, start + QUOTED / 6)} … ${part(end - QUOTED / 12, end)}`;
  }

  /** A press on a kind labels what is held, and is otherwise kept for what is marked next. */
  choose(i) {
    if (marks.current(this.state)) return this.put(i);
    this.brush = this.brush === i ? null : i;
    this.say(this.brush === null ? "No label is chosen" : `${this.labels[i].name} is chosen for what you mark next`);
    return this.drawDock();
  }

  edge(side, step) {
    if (this.byCharacter) return this.edgeWithin(side, step);
    const state = marks.edge(this.state, side, step);
    if (state === this.state) return this.say("Nothing to change");
    return this.become(state, this.spoken(marks.current(state)));
  }

  /** Say which of the spans over a token is chosen. */
  sayChosen() {
    const over = marks.spansAt(this.state, this.state.cursor);
    const span = marks.current(this.state);
    if (over.length > 1) this.say(`${this.spoken(span)}: ${span.type}, ${over.indexOf(span) + 1} of ${over.length}`);
  }

  /** After a press on a token with spans: its innermost is chosen, then the next, or the one whose
   *  name was pressed. */
  pick(i, target, was = this.state.cursor) {
    const { one } = target.closest(".name") ?? {};
    const again = this.overlapping && !one && i === was && !this.state.selection;
    this.become(again ? marks.other(this.state) : marks.move(this.state, i, one));
    this.sayChosen();
  }

  putAway() {
    if (this.state.selection) this.become(marks.deselect(this.state));
    else this.become(marks.remove(this.state), "Label removed");
    this.firstTap = null;
    this.focus();
  }

  /** Do a command of the keyboard or a button; gives whether it was one of this widget's. */
  act(name, label) {
    const said = { undo: "Reverted", redo: "Applied again", clear: "All labels removed", remove: "Label removed" };
    const does = { undo: marks.undo, redo: marks.redo, clear: marks.clear, remove: marks.remove };
    if (name === "label") {
      if (marks.current(this.state) || this.text.contains(document.activeElement)) this.put(label);
      else this.choose(label);
    } else if (name === "nothing") {
      const [state, lost] = [marks.toggleNothing(this.state), this.state.spans];
      this.become(state, state.nothing ? "Nothing here" : "Reverted");
      this.tellLost("Removed", lost);
    } else if (name === "other" && this.overlapping) {
      this.become(marks.other(this.state));
      this.sayChosen();
    } else if (EDGES[name]) {
      this.edge(...EDGES[name]);
    } else if (name === "escape") {
      this.firstTap = null;
      if (this.labels.length > 1) this.brush = null;
      this.become(marks.deselect(this.state));
      this.tidy();
    } else if (does[name]) {
      const state = does[name](this.state);
      this.become(state, state === this.state ? "Nothing to change" : said[name]);
    } else return false;
    return true;
  }

  // ---- keys in the text ----

  listen() {
    this.text.addEventListener("keydown", (event) => this.onKey(event));
    this.text.addEventListener("pointerdown", (event) => this.onDown(event));
    this.text.addEventListener("click", (event) => this.onClick(event));
    this.text.addEventListener("dblclick", (event) => this.onDouble(event));
    this.text.addEventListener("focusin", (event) => this.onFocus(event));
    new ResizeObserver(() => this.state && this.cut()).observe(this.text);
  }

  onKey(event) {
    const byWord = MAC ? event.altKey : event.ctrlKey;
    const within = MAC ? event.ctrlKey : event.altKey;
    if (within && event.shiftKey && /^Arrow(Left|Right)$/.test(event.key) && this.isCuttable) {
      this.edgeWithin("end", event.key === (this.rtl[this.state.cursor] ? "ArrowLeft" : "ArrowRight") ? 1 : -1);
      event.preventDefault();
      event.stopPropagation();
      return;
    }
    if (event.metaKey || (event.altKey && !MAC) || (event.ctrlKey && MAC)) return;
    const to = this.target(event.key, byWord, event.shiftKey);
    if (to !== null) {
      const state = event.shiftKey ? marks.stretch(this.state, to) : marks.move(this.state, to);
      this.become(state, event.shiftKey ? this.spoken(marks.current(state)) : "");
    } else if (event.key === " " && !byWord) {
      this.pickHere();
    } else return;
    this.firstTap = null;
    event.preventDefault();
    event.stopPropagation();
  }

  /** Select the token under the cursor; then the word that it is part of; then nothing. */
  pickHere() {
    const { selection, cursor } = this.state;
    const word = this.words.at(cursor);
    const held = marks.selected(this.state);
    const isToken = held && held.start === cursor && held.end === cursor + 1;
    if (!selection) this.become(marks.select(this.state, cursor), this.spoken({ start: cursor, end: cursor + 1 }));
    else if (isToken && word.end - word.start > 1) this.become(marks.select(this.state, word.start, word.end - 1), this.spoken(word));
    else this.become(marks.deselect(this.state));
  }

  /** The token that a key leads to, or null. */
  target(key, byWord, far) {
    const { cursor, size } = this.state;
    const ahead = this.rtl[cursor] ? "ArrowLeft" : "ArrowRight";
    if (key === "ArrowLeft" || key === "ArrowRight") {
      const way = key === ahead ? 1 : -1;
      return byWord ? this.words.step(cursor, way, far) : cursor + way;
    }
    if (key === "Home" || key === "End") {
      if (byWord) return key === "Home" ? 0 : size - 1;
      return this.lineEnd(key === "Home" ? -1 : 1);
    }
    if (byWord) return null;
    return key === "ArrowUp" || key === "ArrowDown" ? this.otherLine(key === "ArrowDown" ? 1 : -1) : null;
  }

  box(i) {
    return this.cells[i].getClientRects()[0] ?? this.cells[i].getBoundingClientRect();
  }

  /** The first (-1) or the last (1) token of the line that the cursor is on. */
  lineEnd(way) {
    const here = this.box(this.state.cursor);
    let i = this.state.cursor;
    while (this.cells[i + way] && Math.abs(this.box(i + way).top - here.top) < here.height / 2) i += way;
    return i;
  }

  /** The nearest token on the line above (-1) or below (1). */
  otherLine(step) {
    const box = (i) => this.box(i);
    const middle = (b) => b.left + b.width / 2;
    const here = box(this.state.cursor);
    let [best, line, far] = [this.state.cursor, null, Infinity];
    for (let i = this.state.cursor + step; i >= 0 && i < this.cells.length; i += step) {
      const there = box(i);
      if (Math.abs(there.top - here.top) < here.height / 2) continue;
      line ??= there.top;
      if (Math.abs(there.top - line) > there.height / 2) break;
      const distance = Math.abs(middle(there) - middle(here));
      if (distance < far) [best, far] = [i, distance];
    }
    return best;
  }

  onFocus(event) {
    const i = tokenOf(event.target);
    if (i !== null && i !== this.state.cursor && !this.drag) this.become(marks.move(this.state, i));
  }

  // ---- mouse and touch ----

  onDown(event) {
    this.pointer = event.pointerType === "mouse" ? "mouse" : "touch";
    this.pressedAt = this.state.cursor; // a touch moves the focus, and the cursor with it, before it is a click
    if (this.pointer !== "mouse" || event.button !== 0) return;
    const [x, y] = [event.clientX, event.clientY];
    const within = event.altKey && this.isCuttable;
    if (!within && !event.shiftKey && this.tokens.length > this.whole.tokens.length) {
      this.become(marks.deselect(this.state));
      this.tidy();
    }
    const target = event.target.isConnected ? event.target : document.elementFromPoint(x, y);
    const i = within ? this.partNear(x, y) : tokenOf(target);
    if (within && i !== null) {
      this.drag = { anchor: i, x, y, moved: false, within };
      this.become(marks.select(this.state, i));
    } else if (i === null && !event.shiftKey) {
      // Between two tokens a drag takes the one that it goes to; without a drag nothing is meant.
      this.drag = { gap: gapAt(this.cells, x, y, this.rtl), x, y, moved: false };
      this.become(marks.deselect(this.state));
    } else {
      const focus = i ?? tokenNear(this.cells, x, y);
      const anchor = event.shiftKey ? this.state.selection?.anchor ?? this.state.cursor : focus;
      this.drag = { anchor, x, y, moved: event.shiftKey };
      if (!event.shiftKey && marks.spanAt(this.state, focus)) this.pick(focus, target);
      else this.become(marks.select(this.state, anchor, focus));
    }
    return followDrag(event, {
      move: (to, at) => this.onDrag(to, at), end: (finished) => this.onDragEnd(finished),
      bounds: () => beyond(this.text, this.dock),
    });
  }

  onDragEnd(finished) {
    const was = this.drag;
    this.drag = null;
    if (was?.within) {
      this.tidy();
      this.drawDock();
    }
    if (finished && was && this.state.selection && this.brush !== null) {
      this.put(this.brush);
      this.clicked = was.moved ? null : this.state.past.length;
    }
    // Where a press in a gap was no drag, the keys go on where they were.
    if (was?.anchor !== undefined || this.text.contains(document.activeElement)) this.focus();
  }

  onDrag(x, y) {
    const { drag } = this;
    if (!drag || (!drag.moved && Math.hypot(x - drag.x, y - drag.y) < STILL)) return;
    const size = this.places.length;
    const i = drag.within ? this.partNear(x, y) : tokenNear(this.cells, x, y);
    if (this.places.length !== size) drag.anchor = this.state.selection.anchor;
    if (drag.anchor === undefined && i !== null) drag.anchor = Math.max(0, i >= drag.gap ? drag.gap : drag.gap - 1);
    if (i === null || (i === drag.anchor && !drag.moved && drag.gap === undefined)) return;
    drag.moved = true;
    if (this.state.selection?.focus !== i || this.state.selection.anchor !== drag.anchor) {
      this.become(marks.select(this.state, drag.anchor, i));
    }
  }

  onClick(event) {
    // What a screen reader presses has no pointer, and is like a tap.
    const was = event.detail > 0 ? this.pressedAt : this.state.cursor;
    if (this.pointer === "mouse" && event.detail > 0) return;
    const i = tokenOf(event.target);
    if (i === null) {
      this.firstTap = null;
      return this.become(marks.deselect(this.state));
    }
    return this.tap(i, event.target, was);
  }

  /** The first tap begins a selection, the second ends it; on the same token, it takes the word. On
   *  a token with spans taps choose one after the other, and then, where others may lie in them,
   *  begin a selection. */
  tap(i, target, was) {
    if (this.firstTap === i) this.pickWord(i);
    else if (this.firstTap !== null) {
      this.become(marks.select(this.state, this.firstTap, i));
      if (this.brush !== null) this.put(this.brush);
    } else if (marks.spanAt(this.state, i) && !this.isThrough(i, target, was)) {
      this.pick(i, target, was);
      return;
    } else {
      this.become(marks.select(this.state, i));
      this.firstTap = i;
      return;
    }
    this.firstTap = null;
  }

  /** Whether taps on a token have chosen all spans that may overlap. */
  isThrough(i, target, was) {
    return this.overlapping && !target.closest(".name") && i === was && !this.state.selection && marks.spansAt(this.state, i).at(-1) === marks.current(this.state);
  }

  onDouble(event) {
    const i = tokenOf(event.target);
    if (i === null || this.pointer !== "mouse") return;
    // With a kind chosen, the first of the two clicks has labelled the token alone.
    if (this.clicked === this.state.past.length) this.become(marks.undo(this.state));
    this.clicked = null;
    this.pickWord(i);
  }

  pickWord(i) {
    const word = this.words.at(i);
    this.become(marks.select(this.state, word.start, word.end - 1), this.spoken(word));
    if (this.brush !== null) this.put(this.brush);
  }
}
