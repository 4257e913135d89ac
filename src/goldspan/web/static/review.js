// An item under review: its labels in the widget of the workers, what else they may be, the answers.

import { ask, button, find, make, note, page, percent, post, say } from "./desk.js";
import { bar } from "./desk_charts.js";
import { ChoiceWidget } from "./choice.js";
import { commandOf, ownsKey } from "./keys.js";
import { LayersWidget } from "./layers.js";
import { SpanWidget } from "./spans.js";
import * as marks from "./state.js";
import { cutsOf, gaps, onParts, showMarked, textOf } from "./text.js";

const single = page.kind === "single";
const layered = page.kind === "layers";
// The questions: the only one has no name.
const asked = layered ? page.layers : [{ name: "", kind: single ? "label" : "spans", labels: page.labels }];
const marked = asked.find(({ kind }) => kind === "spans");
const PARTS = 500; // of a text, each of which was on the screen or not
const LEAST = 0.005; // probability from which on an alternative is shown

export class Review {
  /** `decided(item, gold, was)` hears of a decision, with `gold` null where it was taken back, `later()` of the wish to leave it; `quick`: what else
   *  it may be is offered to be pressed. */
  constructor({ decided, later = () => {}, attempt, quick = true }) {
    Object.assign(this, { decided, later, attempt, quick, item: null });
    this.widget = new { single: ChoiceWidget, spans: SpanWidget, layers: LayersWidget }[page.kind]({
      work: find("work"), dock: find("dock"), labels: page.labels, layers: page.layers, say, changed: () => this.mark(),
      send: () => this.send(), sendsAtOnce: () => false,
    });
    find("dock").prepend(find("either")); // in sight however long the text is
    document.addEventListener("keydown", (event) => this.onKey(event));
    find("work").addEventListener("focusin", () => this.follow());
    for (const name of ["scroll", "resize"]) addEventListener(name, () => this.see(), { passive: true });
  }

  /** Show an item; `labels` are those that the widget begins with. */
  open(item, labels) {
    this.item = item;
    this.seen = new Uint8Array(PARTS);
    find("task").hidden = false;
    find("given").hidden = true; // until its own answers are there
    find("dock").hidden = Boolean(item.control);
    this.findAlternatives();
    const unsure = new Set(this.places.flatMap(({ start, end }) => Array.from({ length: end - start }, (_, n) => start + n)));
    const spans = layered ? labels?.[marked?.name] : labels;
    const work = single ? { label: labels } : { layers: labels ?? {}, spans: spans ?? [], nothing: labels !== null && !spans?.length };
    this.widget.open(item, work, { hint: "Nothing is marked here.", unsure });
    this.showChances();
    this.showPlace(this.places.reduce((least, one) => (one.confidence < least.confidence ? one : least), this.places[0]));
    scrollTo(0, 0);
    if (this.place?.end) this.goTo(this.place);
    this.see();
    this.load();
  }

  // ---- reading: a decision is about all of the text ----

  /** Where the text can be seen, as [top, bottom] of the window. */
  get sight() {
    const top = Math.max(0, find("note").getBoundingClientRect().bottom);
    return [top, Math.max(find("dock").getBoundingClientRect().top, top + innerHeight / 4)];
  }

  /** What is read: the text, and the questions below it. */
  get read() {
    return layered ? find("work") : this.widget.text;
  }

  /** Keep which parts of the text were on the screen. */
  see() {
    if (!this.item) return;
    const [box, [top, foot]] = [this.read.getBoundingClientRect(), this.sight];
    const part = (y) => Math.round(((y - box.top) / box.height) * PARTS);
    this.seen.fill(1, Math.max(0, part(top)), Math.max(0, part(foot)));
    this.widget.nameSend(this.seen.includes(0) ? "Read on" : "Make it gold");
  }

  /** Scroll to what was not on the screen yet; gives whether there was anything. */
  readOn() {
    const [box, [top, foot]] = [this.read.getBoundingClientRect(), this.sight];
    const here = Math.max(0, Math.round(((foot - box.top) / box.height) * PARTS));
    const below = this.seen.indexOf(0, here);
    const part = below < 0 ? this.seen.indexOf(0) : below;
    if (part < 0) return false;
    scrollBy(0, box.top + (part / PARTS) * box.height - top - 40);
    this.seen[part] = 1; // nothing is asked for twice, however small the window is
    this.see();
    say(this.seen.includes(0) ? "The text goes on" : "This was the rest of the text");
    return true;
  }

  /** Go to an uncertain place, and show it. */
  goTo(place) {
    const widget = this.spans;
    const at = onParts(widget.places, place).start;
    widget.become(marks.move(widget.state, at));
    this.showPlace(place);
    const [{ top: y, bottom }, [top, foot]] = [widget.cells[at].getBoundingClientRect(), this.sight];
    if (y < top || bottom > foot) scrollBy(0, y - top - (foot - top) / 3);
  }

  hide() {
    this.item = null;
    for (const id of ["task", "dock", "given"]) find(id).hidden = true;
  }

  // ---- what else it may be ----

  /** The widget in which spans are marked. */
  get spans() {
    return this.widget.base ?? this.widget;
  }

  /** Show how likely each label is beside the choices of the questions below the text. */
  showChances() {
    const found = this.quick && !this.item.control ? this.item.found?.layers ?? {} : {};
    for (const { name, boxes, labels } of this.widget.questions ?? []) {
      boxes.forEach(({ parentElement: choice }, i) => {
        choice.querySelector(".p")?.remove();
        const one = found[name]?.alternatives.find(({ label }) => label === labels[i].name);
        if (one) choice.append(make("span", { class: "p" }, percent(one.confidence)));
      });
    }
  }

  /** Find the places that are uncertain: where alternatives overlap, else the least certain token. */
  findAlternatives() {
    const { control } = this.item;
    const found = layered ? this.item.found?.layers[marked?.name] : this.item.found;
    const list = control || !this.quick ? [] : found?.alternatives ?? [];
    this.chips = list.filter((one) => one.confidence >= LEAST).map((one) => {
      const shown = single ? one.label : `${this.words(one)}`;
      const chip = button([single ? "" : make("span", { class: "tag" }, one.type), make("span", { dir: "auto" }, shown), make("span", { class: "p" }, percent(one.confidence))],
        () => this.take(one), { class: `alt type-${this.number(one) % 10}`, "aria-pressed": "false" });
      return [one, chip];
    });
    this.places = [];
    if (single) this.places.push({ chips: this.chips });
    if (single || control || !this.quick || !found) return;
    for (const [one, chip] of [...this.chips].sort(([a], [b]) => a.start - b.start)) {
      const last = this.places.at(-1);
      if (last && one.start < last.end) last.end = Math.max(last.end, one.end);
      else this.places.push({ start: one.start, end: one.end, chips: [] });
      this.places.at(-1).chips.push([one, chip]);
    }
    this.places = this.places.filter(({ chips }) => chips.some(([one]) => one.confidence <= 1 - LEAST));
    const least = found.tokens.indexOf(Math.min(...found.tokens));
    const isIn = ({ start, end }) => start <= least && least < end;
    if (found.tokens[least] < 1 - LEAST && !this.places.some(isIn)) this.places.push({ start: least, end: least + 1, chips: [] });
    for (const place of this.places) place.confidence = Math.min(...found.tokens.slice(place.start, place.end));
    this.places.sort((a, b) => a.start - b.start);
  }

  /** Show what else an uncertain place may be. */
  showPlace(place) {
    this.place = place;
    const [box, n, at] = [find("either"), this.places.length, this.places.indexOf(place)];
    box.hidden = !place || (n === 1 && !place.chips.length);
    if (box.hidden) return;
    const step = (sign, name, way) => button(sign, ({ detail }) => {
      this.goTo(this.places[(at + way + n) % n]);
      if (!detail) box.querySelector(`[aria-label="${name}"]`).focus(); // who presses with keys stays
    }, { class: "small", "aria-label": name });
    const many = n > 1 ? [step("‹", "The uncertain place before", -1), make("span", {}, `Uncertain place ${at + 1} of ${n}`), step("›", "The next uncertain place", 1)] : [];
    const lead = single ? "How likely each label is" : place.chips.length ? "How likely each span is: press to mark or remove it" : "No other span is likely here";
    box.replaceChildren(make("p", {}, ...many, make("span", n > 1 ? { class: "lead-in" } : {}, lead)), make("div", { class: "alts" }, ...place.chips.map(([, chip]) => chip)));
    this.mark();
  }

  /** Show the alternatives of the place that the cursor has come to. */
  follow() {
    const [cursor] = this.spans.places?.[this.spans.state?.cursor] ?? [];
    const here = this.places?.find(({ start, end }) => start <= cursor && cursor < end);
    if (here && here !== this.place) this.showPlace(here);
  }

  words(span) {
    return textOf(this.item.tokens, gaps(this.item.tokens, this.item.text, this.item.starts), span);
  }

  number(one) {
    return Math.max(0, page.labels.findIndex(({ name }) => name === (single ? one.label : one.type)));
  }

  take(one) {
    if (single) return this.widget.choose(page.labels.findIndex(({ name }) => name === one.label));
    const widget = this.spans;
    if (cutsOf([one]).length) widget.recut([...widget.places.filter(([, char]) => char), ...cutsOf([one])]);
    const { start, end } = onParts(widget.places, one);
    const own = widget.state.spans.find((s) => marks.nameOf(s) === marks.nameOf({ start, end, type: one.type }));
    return widget.become(own ? marks.remove(marks.move(widget.state, end - 1, own)) : marks.put(marks.select(widget.state, start, end - 1), one.type));
  }

  has(one) {
    if (single) return this.widget.work.label === one.label;
    const same = (a, b) => (a ?? 0) === (b ?? 0);
    return this.spans.answer.spans.some((s) => s.start === one.start && s.end === one.end && s.type === one.type && same(s.from_char, one.from_char) && same(s.to_char, one.to_char));
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
    if (this.readOn()) return;
    this.busy = true;
    const id = this.item.item;
    const done = await this.attempt(() => post(`items/${encodeURIComponent(id)}/gold`, widget.answer));
    this.busy = false;
    if (!done) return;
    this.undo = () => this.attempt(async () => {
      await ask(`items/${encodeURIComponent(id)}/gold`, { method: "DELETE" });
      this.undo = null;
      note("");
      this.decided(id, null, done.gold);
    });
    note("These labels are gold now.", "good");
    find("note-text").append(" ", button("Undo", () => this.undo?.(), { class: "small" }));
    this.decided(id, done.gold);
  }

  onKey(event) {
    if (event.defaultPrevented || !this.item || find("ask").open || ownsKey(event.target, event.key)) return;
    const command = commandOf(event, this.widget.keys, true);
    if (!command) return;
    if (command.name === "send") { if (!event.repeat) this.send(); }
    else if (command.name === "undo" && this.undo && this.widget.undoButton.getAttribute("aria-disabled") === "true") this.undo();
    else if (command.name === "skip") this.later();
    else if (this.item.control || !this.widget.act(command.name, command.label)) return;
    event.preventDefault();
  }
}

/** The labels of a consensus, as an answer has them. */
export function labelsOf(found) {
  if (!found?.layers) return found?.label ?? found?.labels ?? found?.spans ?? null;
  return Object.fromEntries(Object.entries(found.layers).map(([name, one]) => [name, labelsOf(one)]));
}

/** Labels as text to look at. */
export function labelled(item, labels) {
  if (labels === null) return make("p", { class: "sub" }, "nothing yet");
  if (!layered) return shown(item, labels, asked[0]);
  return make("dl", { class: "by-layer" }, ...asked.map((layer) => make("div", {}, make("dt", { dir: "auto" }, layer.name), make("dd", {}, shown(item, labels[layer.name], layer)))));
}

/** What was answered to a question. */
function shown(item, labels, { kind, labels: choices }) {
  const number = (name) => Math.max(0, choices.findIndex((label) => label.name === name));
  if (kind === "spans") {
    const box = make("p", { class: "sampled", dir: "auto" });
    showMarked(box, item.tokens, gaps(item.tokens, item.text, item.starts), labels ?? [], number);
    return box;
  }
  const names = [labels ?? []].flat().flatMap((name) => [" ", make("span", { class: `sample type-${number(name) % 10}`, dir: "auto" }, name)]);
  return make("p", {}, ...(names.length ? names.slice(1) : [make("span", { class: "sub" }, "no label")]));
}

/** How likely every alternative is, as bars, question by question. */
export function posterior(item) {
  const between = marked ? gaps(item.tokens, item.text, item.starts) : null;
  const each = Object.entries(item.found?.layers ?? { "": item.found }).filter(([, found]) => found?.alternatives.length);
  return each.flatMap(([layer, { alternatives }]) => [layer ? make("h3", { dir: "auto" }, layer) : "", make("dl", { class: "posterior" }, ...alternatives.map((one) => {
    const box = make("div", { class: "bar" });
    bar(box, [{ share: one.confidence, kind: "good" }], percent(one.confidence, 1));
    const name = one.label ?? `${one.type}: ${textOf(item.tokens, between, one)}`;
    return make("div", {}, make("dt", { dir: "auto" }, name), make("dd", {}, box, percent(one.confidence, 1)));
  }))]);
}
