// The widget for one label per item: a text, and labels that are chosen by a press or a single key.

import { button, handBack, LONG, make, sign } from "./panels.js";

export class ChoiceWidget {
  constructor({ work, dock, labels, say, changed, send, sendsAtOnce, spacing = () => "auto" }) {
    Object.assign(this, { labels, say, changed, send, sendsAtOnce, spacing });
    this.text = make("div", { class: "text prose", dir: "auto" });
    work.replaceChildren(this.text);
    dock.replaceChildren(this.makeChoices(), this.makeActs());
    handBack(dock, () => this.focus());
  }

  makeChoices() {
    this.radios = this.labels.map((label, i) => make("input", { type: "radio", name: "label", id: `label-${i}`, value: String(i) }));
    const choices = this.labels.map(({ name, key }, i) => make("label", { class: `choice type-${i % 10}`, for: `label-${i}` },
      this.radios[i], ...(key ? [make("kbd", { "aria-hidden": "true" }, key.toUpperCase())] : []), make("span", { dir: "auto" }, name)));
    const group = make("div", { class: "choices", role: "radiogroup", "aria-label": "Labels" }, ...choices);
    group.addEventListener("change", () => this.choose(this.radios.findIndex((radio) => radio.checked)));
    return group;
  }

  makeActs() {
    this.undoButton = button(sign("undo", "Undo"), () => this.act("undo"), { class: "quiet" });
    this.redoButton = button(sign("redo", "Redo"), () => this.act("redo"), { class: "quiet" });
    this.sendButton = button("Send", this.send, { class: "primary", id: "send" });
    return make("div", { class: "acts" }, this.undoButton, this.redoButton, make("span", { class: "fill" }), this.sendButton);
  }

  open(task, work) {
    this.text.textContent = task.text ?? task.tokens.join(" ");
    this.label = this.labels.findIndex((label) => label.name === work?.label);
    this.radios.forEach((radio, i) => {
      // Marked, and not chosen: the worker chooses.
      radio.parentElement.classList.toggle("suggested", this.labels[i].name === task.suggestion?.label);
    });
    this.past = [];
    this.future = [];
    this.draw();
    this.space();
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

  get work() {
    return { label: this.labels[this.label]?.name ?? null };
  }

  get answer() {
    return { label: this.labels[this.label].name };
  }

  get isReady() {
    return this.label >= 0;
  }

  get missing() {
    return "Choose a label first, or skip this text.";
  }

  focus() {
    this.radios[Math.max(0, this.label)].focus({ preventScroll: true });
  }

  choose(i) {
    if (i === this.label) return;
    this.past.push(this.label);
    this.future = [];
    this.become(i);
  }

  become(i) {
    this.label = i;
    this.draw();
    this.changed();
    this.say(i < 0 ? "No label is chosen" : `${this.labels[i].name} is chosen`);
  }

  draw() {
    this.radios.forEach((radio, i) => { radio.checked = i === this.label; });
    this.undoButton.setAttribute("aria-disabled", String(!this.past.length));
    this.redoButton.setAttribute("aria-disabled", String(!this.future.length));
    this.sendButton.setAttribute("aria-disabled", String(!this.isReady));
  }

  /** A label's key chooses it; pressed again, or where the worker wants it so, it sends. */
  act(name, label) {
    if (name === "label") {
      const again = label === this.label;
      this.choose(label);
      this.radios[label].focus({ preventScroll: true });
      if (again || this.sendsAtOnce()) this.send();
    } else if (name === "undo" || name === "redo") {
      const [from, to] = name === "undo" ? [this.past, this.future] : [this.future, this.past];
      if (!from.length) return true;
      to.push(this.label);
      this.become(from.pop());
    } else return false;
    return true;
  }
}
