// An item under review: its labels in the widget of the workers, what else they may be, the answers.

import { ask, button, find, make, page, percent, post, say } from "./desk.js";
import { bar } from "./desk_charts.js";
import { ChoiceWidget } from "./choice.js";
import { commandOf, ownsKey } from "./keys.js";
import { handBack } from "./panels.js";
import { SpanWidget } from "./spans.js";
import * as marks from "./state.js";
import { gaps, showMarked, textOf } from "./text.js";

const single = page.kind === "single";

export class Review {
  /** `decided(item)` hears of a decision, `later()` of the wish to leave it; `quick`: what else
   *  it may be is offered to be pressed. */
  constructor({ decided, later = () => {}, attempt, quick = true }) {
    Object.assign(this, { decided, later, attempt, quick, item: null });
    this.widget = new (single ? ChoiceWidget : SpanWidget)({
      work: find("work"), dock: find("dock"), labels: page.labels, say, changed: () => this.mark(),
      send: () => this.send(), sendsAtOnce: () => false,
    });
    this.widget.sendButton.textContent = "Make it gold";
    handBack(find("either"), () => this.widget.focus());
    document.addEventListener("keydown", (event) => this.onKey(event));
  }

  /** Show an item; `labels` are those that the widget begins with. */
  open(item, labels) {
    this.item = item;
    find("task").hidden = false;
    find("dock").hidden = Boolean(item.control);
    this.widget.open(item, single ? { label: labels } : { spans: labels ?? [], nothing: labels !== null && !labels?.length });
    this.showAlternatives();
    this.mark();
    this.load();
  }

  hide() {
    this.item = null;
    for (const id of ["task", "dock", "given"]) find(id).hidden = true;
  }

  // ---- what else it may be ----

  showAlternatives() {
    const list = this.item.control || !this.quick ? [] : this.item.found?.alternatives ?? [];
    this.chips = list.filter((one) => one.confidence >= 0.005).map((one) => {
      const shown = single ? one.label : `${this.words(one)}`;
      const chip = button([single ? "" : make("span", { class: "tag" }, one.type), make("span", { dir: "auto" }, shown), make("span", { class: "p" }, percent(one.confidence))],
        () => this.take(one), { class: `alt type-${this.number(one) % 10}`, "aria-pressed": "false" });
      return [one, chip];
    });
    const box = find("either");
    box.hidden = !this.chips.length;
    box.replaceChildren(make("p", {}, single ? "How likely each label is" : "How likely each span is; press one to mark it, press it again to remove it"), make("div", { class: "alts" }, ...this.chips.map(([, chip]) => chip)));
  }

  words(span) {
    return textOf(this.item.tokens, gaps(this.item.tokens, this.item.text, this.item.starts), span);
  }

  number(one) {
    return Math.max(0, page.labels.findIndex(({ name }) => name === (single ? one.label : one.type)));
  }

  take(one) {
    const { widget } = this;
    if (single) return widget.choose(page.labels.findIndex(({ name }) => name === one.label));
    const picked = marks.select(widget.state, one.start, one.end - 1);
    return widget.become(this.has(one) ? marks.remove(picked) : marks.put(picked, one.type));
  }

  has(one) {
    if (single) return this.widget.work.label === one.label;
    return this.widget.state.spans.some((s) => s.start === one.start && s.end === one.end && s.type === one.type);
  }

  mark() {
    for (const [one, chip] of this.chips ?? []) chip.setAttribute("aria-pressed", String(this.has(one)));
  }

  // ---- the answers ----

  async load() {
    const id = this.item.item;
    const whole = await this.attempt(() => ask(`items/${encodeURIComponent(id)}`));
    if (!whole || this.item?.item !== id) return;
    find("given").hidden = false;
    const rows = whole.answers.map((one) => this.answer(one, whole));
    find("answers").replaceChildren(...(rows.length ? rows : [make("p", { class: "empty" }, "Nobody has answered yet.")]));
  }

  answer(one, item) {
    const about = [one.seconds === null ? "" : `${one.seconds.toFixed(1)} s`, one.counts ? "" : `${one.status}, does not count`].filter(Boolean).join(", ");
    return make("div", { class: `answer${one.counts ? "" : " idle"}` }, make("p", { class: "by" }, make("strong", { dir: "auto" }, one.worker), make("span", { class: "sub" }, about)), labelled(item, one.labels));
  }

  // ---- deciding ----

  async send() {
    const { widget } = this;
    if (!this.item || this.busy || this.item.control) return;
    if (!widget.isReady) { say(widget.missing); return; }
    this.busy = true;
    const id = this.item.item;
    const done = await this.attempt(() => post(`items/${encodeURIComponent(id)}/gold`, widget.answer));
    this.busy = false;
    if (done) { say("Gold"); this.decided(id, done); }
  }

  onKey(event) {
    if (event.defaultPrevented || !this.item || find("ask").open || ownsKey(event.target, event.key)) return;
    const command = commandOf(event, page.labels, true);
    if (!command) return;
    if (command.name === "send") this.send();
    else if (command.name === "skip") this.later();
    else if (this.item.control || !this.widget.act(command.name, command.label)) return;
    event.preventDefault();
  }
}

/** Labels as text to look at. */
export function labelled(item, labels) {
  const number = (name) => Math.max(0, page.labels.findIndex((label) => label.name === name));
  if (labels === null) return make("p", { class: "sub" }, "nothing yet");
  if (single) return make("p", {}, make("span", { class: `sample type-${number(labels) % 10}`, dir: "auto" }, labels));
  const box = make("p", { class: "sampled", dir: "auto" });
  showMarked(box, item.tokens, gaps(item.tokens, item.text, item.starts), labels, number);
  return box;
}

/** How likely every alternative is, as bars. */
export function posterior(item) {
  const list = item.found?.alternatives ?? [];
  const between = single ? null : gaps(item.tokens, item.text, item.starts);
  return make("dl", { class: "posterior" }, ...list.map((one) => {
    const box = make("div", { class: "bar" });
    bar(box, [{ share: one.confidence, kind: "good" }], percent(one.confidence, 1));
    const name = single ? one.label : `${one.type}: ${textOf(item.tokens, between, one)}`;
    return make("div", {}, make("dt", { dir: "auto" }, name), make("dd", {}, box, percent(one.confidence, 1)));
  }));
}
