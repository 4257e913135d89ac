// The span widget: a text whose tokens are marked by mouse, touch or keys, and its commands.

import { beyond, followDrag, tokenNear, tokenOf } from "./drag.js";
import { button, handBack, make, sign } from "./panels.js";
import * as marks from "./state.js";
import { cutNames } from "./tags.js";
import { gaps, textOf, wordAt } from "./text.js";

const HINT = {
  mouse: "Drag over words, or click one; then choose what they are.",
  touch: "Tap the first and the last word; then choose what they are.",
};

export class SpanWidget {
  /** `say(text)` speaks to screen readers, `changed()` hears of every change, `send()` sends. */
  constructor({ work, dock, labels, say, changed, send }) {
    Object.assign(this, { labels, say, changed });
    this.brush = labels.length === 1 ? 0 : null;
    this.pointer = matchMedia("(pointer: coarse)").matches ? "touch" : "mouse";
    this.drag = null;
    this.firstTap = null;
    this.text = make("div", {
      class: "text", role: "listbox", "aria-multiselectable": "true", "aria-label": "Text", dir: "auto",
      "aria-describedby": "held-hint",
    });
    work.replaceChildren(this.text);
    this.dock = dock;
    dock.replaceChildren(this.makeHeld(), this.makeTypes(), this.makeActs(send));
    handBack(dock, () => this.focus());
    this.listen();
  }

  makeHeld() {
    this.quote = make("span", { class: "quote", dir: "auto" });
    const end = (side, step, sign, name) => button(sign, () => this.edge(side, step), { class: "small", "aria-label": name });
    this.edges = make("span", { class: "edges" },
      make("span", { class: "side", "aria-hidden": "true" }, "Start"), end("start", -1, "−", "One word less at the start"), end("start", 1, "+", "One word more at the start"),
      make("span", { class: "side", "aria-hidden": "true" }, "End"), end("end", -1, "−", "One word less at the end"), end("end", 1, "+", "One word more at the end"),
      (this.away = button("✕", () => this.putAway(), { class: "small" })));
    this.hint = make("span", { class: "hint", id: "held-hint" });
    return make("div", { class: "held" }, this.hint, this.quote, this.edges);
  }

  makeTypes() {
    this.types = this.labels.map(({ name, key }, i) => button(
      [key ? make("kbd", {}, key.toUpperCase()) : "", make("span", { dir: "auto" }, name)],
      () => this.choose(i), { class: `type type-${i % 10}`, "aria-pressed": "false" }));
    return make("div", { class: "types", role: "group", "aria-label": "Kinds" }, ...this.types);
  }

  makeActs(send) {
    this.undoButton = button(sign("undo", "Undo"), () => this.act("undo"), { class: "quiet" });
    this.redoButton = button(sign("redo", "Redo"), () => this.act("redo"), { class: "quiet" });
    this.clearButton = button("Clear", () => this.act("clear"), { class: "quiet" });
    this.nothingButton = button("Nothing here", () => this.act("nothing"), { class: "toggle", "aria-pressed": "false" });
    this.sendButton = button("Send", send, { class: "primary", id: "send" });
    return make("div", { class: "acts" }, this.undoButton, this.redoButton, this.clearButton, make("span", { class: "fill" }), this.nothingButton, this.sendButton);
  }

  /** Show a task; `work` is what a draft has kept. */
  open(task, work) {
    this.tokens = task.tokens;
    this.between = gaps(task.tokens, task.text, task.starts);
    this.state = marks.begin(task.tokens.length, this.known(work?.spans ?? []), work?.nothing);
    this.firstTap = this.drag = null;
    this.build();
    this.draw();
    this.rtl = getComputedStyle(this.text).direction === "rtl";
  }

  known(spans) {
    return spans.filter((span) => this.labels.some((label) => label.name === span.type));
  }

  /** What a draft keeps. */
  get work() {
    return { spans: this.state.spans, nothing: this.state.nothing };
  }

  get answer() {
    return { spans: this.state.spans.map(({ start, end, type }) => ({ start, end, type })) };
  }

  get isReady() {
    return marks.isReady(this.state);
  }

  get missing() {
    return "Mark something first, or say “Nothing here”.";
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
      const seam = make("span", { class: "gap", role: "presentation" }, this.between[i]);
      const cell = make("span", { class: "token", role: "option", tabindex: "-1", "aria-selected": "false" }, token);
      cell.dataset.i = i;
      this.seams.push(seam);
      this.cells.push(cell);
      all.append(seam, cell);
    });
    all.append(this.between.at(-1));
    this.text.replaceChildren(all);
    this.drawn = { cells: this.tokens.map(() => "token"), seams: this.tokens.map(() => "gap"), cursor: null };
  }

  draw() {
    this.drawTokens();
    this.drawCursor();
    this.drawDock();
  }

  drawTokens() {
    const owners = marks.owners(this.state);
    const held = marks.selected(this.state);
    const active = held ? null : marks.spanAt(this.state, this.state.cursor);
    for (let i = 0; i < this.cells.length; i += 1) {
      const span = this.state.spans[owners[i]];
      const chosen = held && held.start <= i && i < held.end;
      const ends = span ? `${span.start === i ? " first" : ""}${span.end === i + 1 ? " last" : ""}` : "";
      const edges = chosen ? `${held.start === i ? " from" : ""}${held.end === i + 1 ? " to" : ""}` : "";
      const look = `${span ? ` marked type-${this.number(span.type) % 10}` : ""}${span && span === active ? " active" : ""}`;
      this.paint(this.cells[i], "cells", i, `token${look}${ends}${chosen ? " selected" : ""}${edges}`, span);
      const within = `${span && span.start < i ? look : ""}${chosen && held.start < i ? " selected" : ""}`;
      this.paintSeam(i, `gap${within}`);
    }
    cancelAnimationFrame(this.cutting);
    this.cutting = requestAnimationFrame(() => this.cut());
  }

  cut() {
    cutNames(this.text, this.state.spans.map((span) => this.cells[span.start]), this.rtl);
  }

  // Only what has changed is touched: a text may have thousands of tokens.
  paint(cell, kind, i, look, span) {
    const shown = `${look}|${span?.type ?? ""}`;
    if (this.drawn[kind][i] === shown) return;
    this.drawn[kind][i] = shown;
    cell.className = look;
    cell.setAttribute("aria-selected", String(look.includes(" selected")));
    if (span) {
      cell.setAttribute("aria-label", `${this.tokens[i]}, ${span.type}`);
      cell.dataset.type = span.type;
    } else {
      cell.removeAttribute("aria-label");
      delete cell.dataset.type;
    }
  }

  paintSeam(i, look) {
    if (this.drawn.seams[i] === look) return;
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
    if (range) this.quote.textContent = textOf(this.tokens, this.between, range);
    this.away.setAttribute("aria-label", held ? "Put the selection down" : "Remove this label");
    const type = held ? null : range?.type;
    this.types.forEach((chip, i) => {
      chip.setAttribute("aria-pressed", String(type ? this.labels[i].name === type : !range && this.brush === i));
    });
    this.nothingButton.setAttribute("aria-pressed", String(this.state.nothing));
    this.undoButton.setAttribute("aria-disabled", String(!this.state.past.length));
    this.redoButton.setAttribute("aria-disabled", String(!this.state.future.length));
    this.clearButton.setAttribute("aria-disabled", String(!this.state.spans.length && !this.state.nothing));
    this.sendButton.setAttribute("aria-disabled", String(!this.isReady));
  }

  hintText() {
    if (this.state.nothing) return "You say that there is nothing to mark here.";
    const verb = this.pointer === "touch" ? "Tap the first and the last word" : "Drag over words, or click one";
    if (this.brush !== null) return `${verb}: they become ${this.labels[this.brush].name}.`;
    return HINT[this.pointer];
  }

  // ---- commands ----

  number(type) {
    return this.labels.findIndex((label) => label.name === type);
  }

  become(state, said) {
    const before = this.state;
    this.state = state;
    this.draw();
    const moved = before.cursor !== state.cursor;
    if (moved && this.text.contains(document.activeElement)) this.cells[state.cursor].focus();
    if (before.spans !== state.spans || before.nothing !== state.nothing) this.changed();
    if (said) this.say(said);
  }

  put(i) {
    const state = marks.put(this.state, this.labels[i].name);
    this.firstTap = null;
    this.become(state, `${this.words(marks.current(state))}: ${this.labels[i].name}`);
  }

  words(range) {
    return range ? `“${textOf(this.tokens, this.between, range)}”` : "";
  }

  /** A press on a kind labels what is held, and is otherwise kept for what is marked next. */
  choose(i) {
    if (marks.current(this.state)) return this.put(i);
    this.brush = this.brush === i ? null : i;
    this.say(this.brush === null ? "No kind is chosen" : `${this.labels[i].name} is chosen for what you mark next`);
    return this.drawDock();
  }

  edge(side, step) {
    const state = marks.edge(this.state, side, step);
    this.become(state, this.words(marks.current(state)));
  }

  putAway() {
    if (this.state.selection) this.become(marks.deselect(this.state));
    else this.become(marks.remove(this.state), "Label removed");
    this.firstTap = null;
    this.focus();
  }

  /** Do a command of the keyboard or a button; gives whether it was one of this widget's. */
  act(name, label) {
    const said = { undo: "Undone", redo: "Done again", clear: "All labels removed", remove: "Label removed" };
    const does = { undo: marks.undo, redo: marks.redo, clear: marks.clear, remove: marks.remove };
    if (name === "label") {
      if (marks.current(this.state) || this.text.contains(document.activeElement)) this.put(label);
      else this.choose(label);
    } else if (name === "nothing") {
      const state = marks.toggleNothing(this.state);
      this.become(state, state.nothing ? "Nothing here" : "Taken back");
    } else if (name === "escape") {
      this.firstTap = null;
      if (this.labels.length > 1) this.brush = null;
      this.become(marks.deselect(this.state));
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
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const to = this.target(event.key);
    if (to !== null) {
      const state = event.shiftKey ? marks.stretch(this.state, to) : marks.move(this.state, to);
      this.become(state, event.shiftKey ? this.words(marks.current(state)) : "");
    } else if (event.key === " ") {
      const { selection, cursor } = this.state;
      this.become(selection ? marks.deselect(this.state) : marks.select(this.state, cursor));
    } else return;
    this.firstTap = null;
    event.preventDefault();
    event.stopPropagation();
  }

  /** The token that a key leads to, or null. */
  target(key) {
    const { cursor, size } = this.state;
    const ahead = this.rtl ? "ArrowLeft" : "ArrowRight";
    if (key === "ArrowLeft" || key === "ArrowRight") return cursor + (key === ahead ? 1 : -1);
    if (key === "ArrowUp" || key === "ArrowDown") return this.otherLine(key === "ArrowDown" ? 1 : -1);
    return key === "Home" ? 0 : key === "End" ? size - 1 : null;
  }

  /** The nearest token on the line above (-1) or below (1). */
  otherLine(step) {
    const box = (i) => this.cells[i].getClientRects()[0] ?? this.cells[i].getBoundingClientRect();
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
    if (this.pointer !== "mouse" || event.button !== 0) return;
    const i = tokenOf(event.target);
    if (i === null) return this.become(marks.deselect(this.state));
    const anchor = event.shiftKey ? this.state.selection?.anchor ?? this.state.cursor : i;
    this.drag = { anchor, moved: event.shiftKey };
    const fresh = !event.shiftKey && marks.spanAt(this.state, i);
    this.become(fresh ? marks.move(this.state, i) : marks.select(this.state, anchor, i));
    followDrag(event, {
      move: (x, y) => this.onDrag(x, y), end: (finished) => this.onDragEnd(finished),
      bounds: () => beyond(this.text, this.dock),
    });
  }

  onDragEnd(finished) {
    const was = this.drag;
    this.drag = null;
    if (finished && was && this.state.selection && this.brush !== null) this.put(this.brush);
  }

  onDrag(x, y) {
    const i = tokenNear(x, y);
    if (i === null || !this.drag || (i === this.drag.anchor && !this.drag.moved)) return;
    this.drag.moved = true;
    if (this.state.selection?.focus !== i || this.state.selection.anchor !== this.drag.anchor) {
      this.become(marks.select(this.state, this.drag.anchor, i));
    }
  }

  onClick(event) {
    // What a screen reader presses has no pointer, and is like a tap.
    if (this.pointer === "mouse" && event.detail > 0) return;
    const i = tokenOf(event.target);
    if (i === null) {
      this.firstTap = null;
      return this.become(marks.deselect(this.state));
    }
    return this.tap(i);
  }

  /** The first tap begins a selection, the second ends it, also on the same token. */
  tap(i) {
    if (this.firstTap !== null) {
      this.become(marks.select(this.state, this.firstTap, i));
      this.firstTap = null;
      if (this.brush !== null) this.put(this.brush);
    } else if (marks.spanAt(this.state, i)) {
      this.become(marks.move(this.state, i));
    } else {
      this.firstTap = i;
      this.become(marks.select(this.state, i));
    }
  }

  onDouble(event) {
    const i = tokenOf(event.target);
    if (i === null || this.pointer !== "mouse") return;
    const word = wordAt(this.tokens, this.between, i);
    this.become(marks.select(this.state, word.start, word.end - 1));
    if (this.brush !== null) this.put(this.brush);
  }
}
