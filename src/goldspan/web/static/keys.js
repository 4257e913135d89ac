// Keys that do something. A letter alone is a key only where the worker wants it (WCAG 2.1.4), and
// never while something is being written.

const LETTERS = { b: "back", n: "nothing", c: "clear", z: "undo", u: "undo", y: "redo", s: "skip", f: "flag", h: "help", "?": "help", o: "other" };
// Signs that stand alone move an end; the others are the same keys with Shift, on layouts of several lands.
const SIGNS = { ",": "start-out", ";": "start-in", "<": "start-in", ".": "end-out", ":": "end-in", ">": "end-in" };
const NAMED = { Enter: "send", Escape: "escape", Delete: "remove", Backspace: "remove" };

/** The command of a key press, or null: {name} or {name: "label", label: index}. */
export function commandOf(event, labels, lettersWork) {
  if (event.altKey || event.isComposing) return null;
  const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  if (event.ctrlKey || event.metaKey) {
    if (key === "z") return { name: event.shiftKey ? "redo" : "undo" };
    if (key === "y") return { name: "redo" };
    return key === "Enter" ? { name: "send" } : null;
  }
  if (NAMED[key]) return { name: NAMED[key] };
  // The digit that is printed on a key counts, whatever the keyboard's layout makes of it.
  const digit = /^(?:Digit|Numpad)(\d)$/.exec(event.code ?? "")?.[1];
  const index = labels.findIndex((label) => label.key && (label.key === key || (!event.shiftKey && label.key === digit)));
  if (index >= 0 && (lettersWork || /^\d$/.test(labels[index].key))) return { name: "label", label: index };
  if (!lettersWork) return null;
  if (key === "b" && event.shiftKey) return { name: "forward" };
  const name = LETTERS[key] ?? SIGNS[key];
  return name ? { name } : null;
}

/** Whether a key belongs to the element that has it: something is written or pressed there. */
export function ownsKey(target, key) {
  if (target.closest("textarea, select, input:not([type=radio], [type=checkbox])")) return true;
  if (key === " ") return Boolean(target.closest("button, summary, input"));
  return key === "Enter" && Boolean(target.closest("button, a, summary"));
}
