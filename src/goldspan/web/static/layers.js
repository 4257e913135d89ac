// The widget for tasks of several layers: a text whose spans are marked, or which is only read, and
// below it a question for every other layer. All have one history.

import { Question, TextWidget } from "./choice.js";
import { make } from "./panels.js";
import { SpanWidget } from "./spans.js";

export class LayersWidget {
  constructor({ work, dock, layers, say, changed, send, spacing }) {
    this.spans = layers.find(({ kind }) => kind === "spans");
    this.changed = changed;
    const [text, below] = [make("div"), make("div", { class: "questions" })];
    const lead = this.spans?.instructions ? [make("p", { class: "lead", dir: "auto" }, this.spans.instructions)] : [];
    work.replaceChildren(...lead, text, below);
    const shared = { work: text, dock, say, send, spacing, face: this, changed: () => this.keep(this.base) };
    this.base = this.spans ? new SpanWidget({ ...shared, ...this.spans }) : new TextWidget(shared);
    this.questions = layers.filter((layer) => layer !== this.spans).map((layer, i) => this.ask(below, `layer-${i}`, layer, say));
    below.hidden = !this.questions.length;
  }

  ask(below, id, layer, say) {
    const { name, kind, ordinal, required, instructions } = layer;
    const optional = kind === "labels" ? "optional" : "optional: press again to take it back";
    const title = make("p", { class: "asked", id }, make("span", { dir: "auto" }, name), required ? "" : make("span", { class: "muted" }, ` (${optional})`));
    const lead = instructions ? [make("p", { class: "lead", id: `${id}-lead`, dir: "auto" }, instructions)] : [];
    const about = { "aria-labelledby": id, ...(instructions ? { "aria-describedby": `${id}-lead` } : {}) };
    const question = new Question(id, layer, { say, changed: () => this.keep(question) }, about);
    question.group.classList.toggle("scale", ordinal);
    below.append(make("div", { class: "question" }, title, ...lead, question.group));
    return question;
  }

  /** Show a task, as `SpanWidget.open` does. */
  open(task, work, options) {
    const [given, suggested] = [work?.layers ?? {}, task.suggestion?.layers ?? {}];
    Object.assign(this, { order: [], undone: [] });
    for (const question of this.questions) question.open(given[question.name], suggested[question.name]);
    const [own, theirs] = [given, suggested].map((layers) => ({ spans: layers[this.spans?.name] }));
    this.base.open({ ...task, suggestion: theirs }, work && { ...work, ...own }, options);
  }

  // ---- what was answered ----

  get answer() {
    const spans = this.spans ? [[this.spans.name, this.base.answer.spans]] : [];
    return { layers: Object.fromEntries([...spans, ...this.questions.map((one) => [one.name, one.answer])]) };
  }

  /** What a draft keeps. */
  get work() {
    const { nothing, open } = this.base.work ?? {};
    return { ...this.answer, nothing, open };
  }

  /** The first part that an answer is still needed to: the text or a question. */
  get left() {
    if (this.spans?.required && !this.base.isReady) return this.base;
    return this.questions.find((one) => !one.isAnswered);
  }

  get isReady() {
    return !this.left;
  }

  get missing() {
    return this.left === this.base ? this.base.missing : `Answer “${this.left.name}” first, or skip this text.`;
  }

  /** Decide on suggested spans, as `SpanWidget.review` does; then go where an answer is needed. */
  review() {
    if (this.base.review?.()) return true;
    this.left?.focus();
    return false;
  }

  // ---- history ----

  /** Keep which part was changed, or has changed back. */
  keep(part) {
    const n = this.order.filter((one) => one === part).length;
    if (part.steps > n) {
      this.order.push(part);
      if (this.redoing) this.undone.pop();
      else this.undone = [];
    } else if (part.steps < n) {
      this.order.splice(this.order.lastIndexOf(part), 1);
      this.undone.push(part);
    }
    this.base.drawDock();
    this.changed();
  }

  get canUndo() {
    return this.order.length > 0;
  }

  get canRedo() {
    return this.undone.length > 0;
  }

  // ---- commands ----

  /** The question that keys are for, or null where they are for the text: by the focus. */
  get asked() {
    const here = this.questions.find(({ group }) => group.contains(document.activeElement));
    return here ?? (this.spans ? null : this.questions[0]);
  }

  /** The labels that have keys now. */
  get keys() {
    return (this.asked ?? this.spans).labels;
  }

  act(name, label) {
    const { asked } = this;
    if (name === "undo" || name === "redo") {
      this.redoing = name === "redo";
      (this.redoing ? this.undone : this.order).at(-1)?.act(name);
      this.redoing = false;
    } else if (asked && name === "label") asked.press(label);
    else if (asked && (name === "remove" || name === "clear")) asked.clear();
    else return Boolean(this.spans) && this.base.act(name, label);
    return true;
  }

  focus() {
    if (this.spans) this.base.focus();
    else (this.left ?? this.questions[0]).focus();
  }

  // ---- of the text ----

  get text() {
    return this.base.text;
  }

  get words() {
    return this.base.words;
  }

  get undoButton() {
    return this.base.undoButton;
  }

  number(type) {
    return this.base.number(type);
  }

  nameSend(word) {
    this.base.nameSend(word);
  }

  space() {
    this.base.space();
  }
}
