// Labels that are chosen by a press or a single key: questions, and the widget for one label per item.

import { drawActs, handBack, LONG, make, makeActs } from "./panels.js";

/** A question, with radio buttons, or checkboxes where `kind` is "labels": several may be chosen. */
export class Question {
  /** `facts` are {name, kind, labels, required}, `id` begins the ids of its inputs. */
  constructor(id, { name, kind, labels, required }, { say, changed }, attributes) {
    Object.assign(this, { name, labels, required, say, changed, several: kind === "labels" });
    const type = this.several ? "checkbox" : "radio";
    this.boxes = labels.map((label, i) => make("input", { type, name: id, id: `${id}-${i}`, value: String(i) }));
    const choices = labels.map(({ name: label, key }, i) => make("label", { class: `choice type-${i % 10}`, for: `${id}-${i}` },
      this.boxes[i], ...(key ? [make("kbd", { "aria-hidden": "true" }, key.toUpperCase())] : []), make("span", { dir: "auto" }, label)));
    this.group = make("div", { class: "choices", role: this.several ? "group" : "radiogroup", ...attributes }, ...choices);
    this.group.addEventListener("change", () => this.choose(this.boxes.flatMap((box, i) => (box.checked ? [i] : []))));
    this.group.addEventListener("click", ({ target }) => { if (!this.several && this.chosen.includes(this.boxes.indexOf(target))) this.clear(); });
  }

  /** Show what was chosen; what is suggested is marked, and not chosen: the worker chooses. */
  open(given, suggested) {
    const numbers = (names) => this.labels.flatMap(({ name }, i) => ([names ?? []].flat().includes(name) ? [i] : []));
    const marked = numbers(suggested);
    this.boxes.forEach((box, i) => box.parentElement.classList.toggle("suggested", marked.includes(i)));
    Object.assign(this, { chosen: numbers(given), past: [], future: [] });
    this.draw();
  }

  get answer() {
    const names = this.chosen.map((i) => this.labels[i].name);
    return this.several ? names : names[0] ?? null;
  }

  get isAnswered() {
    return !this.required || this.chosen.length > 0;
  }

  get steps() {
    return this.past.length;
  }

  /** Choose labels, by their numbers, in place of what was chosen. */
  choose(chosen) {
    if (String(chosen) === String(this.chosen)) return;
    this.past.push(this.chosen);
    this.future = [];
    this.become(chosen);
  }

  /** A key of a label: chooses it, or takes it back where it is one of several or none is needed. */
  press(i) {
    const others = this.several ? this.chosen.filter((one) => one !== i) : [];
    if (!this.chosen.includes(i)) this.choose([...others, i].sort((a, b) => a - b));
    else if (this.several) this.choose(others);
    else this.clear();
    this.boxes[i].focus({ preventScroll: true });
  }

  clear() {
    if (!this.required) this.choose([]);
  }

  become(chosen) {
    this.chosen = chosen;
    this.draw();
    this.changed();
    const [names, about] = [[this.answer ?? []].flat(), this.name ? `${this.name}: ` : ""];
    this.say(`${about}${names.length ? `${names.join(", ")} ${names.length > 1 ? "are" : "is"} chosen` : "No label is chosen"}`);
  }

  /** Undo or redo. */
  act(way) {
    const [from, to] = way === "undo" ? [this.past, this.future] : [this.future, this.past];
    if (!from.length) return;
    to.push(this.chosen);
    this.become(from.pop());
  }

  draw() {
    this.boxes.forEach((box, i) => { box.checked = this.chosen.includes(i); });
  }

  focus(options) {
    this.boxes[this.chosen[0] ?? 0].focus(options);
  }
}

/** A text to read, and the buttons below it; `face` is the widget that it is part of, or itself. */
export class TextWidget {
  constructor({ work, dock, send, spacing = () => "auto", face }) {
    Object.assign(this, { spacing, face: face ?? this });
    this.text = make("div", { class: "text prose", dir: "auto" });
    work.replaceChildren(this.text);
    dock.replaceChildren(makeActs(this, send));
    handBack(dock, () => this.face.focus());
  }

  open(task) {
    this.text.textContent = task.text ?? task.tokens.join(" ");
    this.drawDock();
    this.space();
  }

  drawDock() {
    drawActs(this);
  }

  /** Say what the button sends, or what it waits for. */
  nameSend(word) {
    this.sendButton.textContent = word;
  }

  /** Set how the lines stand. */
  space() {
    const spacing = this.spacing();
    this.text.classList.toggle("close", spacing === "close" || (spacing === "auto" && this.text.textContent.length > LONG));
  }
}

export class ChoiceWidget extends TextWidget {
  constructor({ labels, say, changed, sendsAtOnce, ...frame }) {
    super(frame);
    Object.assign(this, { keys: labels, send: frame.send, sendsAtOnce });
    const heard = () => {
      this.drawDock();
      changed();
    };
    this.question = new Question("label", { labels, required: true }, { say, changed: heard }, { "aria-label": "Labels" });
    frame.dock.prepend(this.question.group);
  }

  open(task, work) {
    this.question.open(work?.label, task.suggestion?.label);
    super.open(task);
  }

  get work() {
    return { label: this.question.answer };
  }

  get answer() {
    return this.work;
  }

  get isReady() {
    return this.question.isAnswered;
  }

  get canUndo() {
    return this.question.past.length > 0;
  }

  get canRedo() {
    return this.question.future.length > 0;
  }

  get missing() {
    return "Choose a label first, or skip this text.";
  }

  focus() {
    this.question.focus({ preventScroll: true });
  }

  choose(i) {
    this.question.choose([i]);
  }

  /** A label's key chooses it; pressed again, or where the worker wants it so, it sends. */
  act(name, label) {
    if (name === "label") {
      const again = this.question.chosen.includes(label);
      this.question.press(label);
      if (again || this.sendsAtOnce()) this.send();
    } else if (name === "undo" || name === "redo") this.question.act(name);
    else return false;
    return true;
  }
}
