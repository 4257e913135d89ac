// Small pieces of the page: elements, notes, the banner, dialogs with reasons.

/** Characters from which the lines of a text stand closer, unless a worker wants it otherwise. */
export const LONG = 2500;

/** An element with attributes and children; text stays text. */
export function make(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

/** A button; what has `aria-disabled` can be reached, and does nothing. */
export function button(content, press, attributes = {}) {
  const made = make("button", { type: "button", ...attributes }, ...[content].flat());
  made.addEventListener("click", (event) => {
    if (made.getAttribute("aria-disabled") !== "true" || made.id === "send") press(event);
  });
  return made;
}

/** After a press with mouse or finger on a button in `box`, the keys belong to the work again: Enter
 *  then sends, and does not press once more. Who presses with keys stays on the button. */
export function handBack(box, focus) {
  box.addEventListener("click", (event) => {
    if (event.detail > 0 && event.target.closest("button")) focus();
  });
}

const SIGNS = { undo: "M9 5 4 10l5 5M4 10h10a5 5 0 0 1 0 10h-3", redo: "m15 5 5 5-5 5m5-5H10a5 5 0 0 0 0 10h3" };

/** The sign and the word of a button; a phone has room for the sign only. */
export function sign(name, word) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  for (const [key, value] of [["viewBox", "0 0 24 24"], ["class", "sign"], ["aria-hidden", "true"]]) svg.setAttribute(key, value);
  const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
  path.setAttribute("d", SIGNS[name]);
  svg.append(path);
  return [svg, make("span", { class: "word" }, word)];
}

/** The row of buttons below a task, which are of a widget or of its `face`, the one that it is part
 *  of; `first` and `last` stand among them. */
export function makeActs(widget, send, first = [], last = []) {
  const press = (name, word) => button(sign(name, word), () => widget.face.act(name), { class: "quiet" });
  widget.undoButton = press("undo", "Undo");
  widget.redoButton = press("redo", "Redo");
  widget.sendButton = button("Send", send, { class: "primary", id: "send" });
  return make("div", { class: "acts" }, widget.undoButton, widget.redoButton, ...first, make("span", { class: "fill" }), ...last, widget.sendButton);
}

/** Show which of the buttons do something. */
export function drawActs({ face, undoButton, redoButton, sendButton }) {
  undoButton.setAttribute("aria-disabled", String(!face.canUndo));
  redoButton.setAttribute("aria-disabled", String(!face.canRedo));
  sendButton.setAttribute("aria-disabled", String(!face.isReady));
}

export const find = (id) => document.getElementById(id);

/** Tell screen readers; the same words twice are heard twice. */
export function say(text) {
  const live = find("live");
  live.textContent = live.textContent === text ? `${text}\u00a0` : text;
}

/** A message above the task that stays until it is closed; kind is "info", "good" or "bad". */
export function note(text, kind = "info") {
  const box = find("note");
  box.hidden = !text;
  box.dataset.kind = kind;
  find("note-text").textContent = text;
  if (text) say(text);
}

export function banner(text) {
  const box = find("banner");
  if (box.textContent !== text) box.textContent = text;
  box.hidden = !text;
}

/** A money amount as the API writes it: "1.2" and "EUR". */
export function amount(value, currency) {
  const number = Number(value);
  try {
    const style = { style: "currency", currency, minimumFractionDigits: 2, maximumFractionDigits: 6 };
    return new Intl.NumberFormat("en", style).format(number);
  } catch {
    return `${value} ${currency}`.trim();
  }
}

/** Ask for a reason: gives {reason, note}, or null when the worker thinks better of it. */
export function askReason({ title, lead, reasons, withNote, act }) {
  const dialog = find("ask");
  const choices = reasons.map((reason, i) => {
    const radio = make("input", { type: "radio", name: "reason", value: String(i), id: `reason-${i}` });
    return make("label", { class: "check", for: `reason-${i}` }, radio, make("span", { dir: "auto" }, reason));
  });
  const words = make("textarea", { id: "reason-note", rows: "3", maxlength: "1000" });
  const form = make("form", { method: "dialog" },
    make("h2", { id: "ask-title" }, title), make("p", {}, lead),
    make("div", { class: "reasons", role: "radiogroup", "aria-label": "Reasons" }, ...choices),
    ...(withNote ? [make("label", { for: "reason-note", class: "field" }, "In your own words (optional)"), words] : []),
    make("div", { class: "acts" }, make("span", { class: "fill" }),
      button("Cancel", () => dialog.close(""), { class: "quiet" }),
      make("button", { class: "primary", value: "go" }, act)));
  dialog.replaceChildren(form);
  const radios = [...dialog.querySelectorAll("[type=radio]")];
  if (radios.length) radios[0].checked = true;
  form.addEventListener("keydown", (event) => digitChooses(event, radios));
  dialog.returnValue = "";
  dialog.showModal();
  (radios[0] ?? words).focus();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => {
      const chosen = radios.find((radio) => radio.checked);
      const reason = chosen ? reasons[Number(chosen.value)] : "";
      resolve(dialog.returnValue === "go" ? { reason, note: words.value.trim() } : null);
    }, { once: true });
  });
}

function digitChooses(event, radios) {
  if (event.target.tagName === "TEXTAREA") return;
  const radio = radios[Number(event.key) - 1];
  if (!radio) return;
  radio.checked = true;
  radio.focus();
  event.preventDefault();
}
