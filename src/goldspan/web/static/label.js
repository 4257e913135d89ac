// The labelling page: asks for a task, shows it, sends the answer, asks for the next.

import { ChoiceWidget } from "./choice.js";
import { askNext, memory, page, server } from "./early.js";
import { commandOf, ownsKey } from "./keys.js";
import { LayersWidget } from "./layers.js";
import { newKey } from "./memory.js";
import { amount, askReason, banner, button, find, make, note, say } from "./panels.js";
import { RefusedList } from "./refused.js";
import { base, insist, Outbox, Refused, wakeUp } from "./sending.js";
import { SpanWidget } from "./spans.js";
import { gaps, showMarked, textOf } from "./text.js";

const STATUS = {
  late: "Your answer came late, but it was still needed: it counts.",
  draft: "Your answer is kept, but it does not count: this text needs no more answers.",
  duplicate: "You have answered this text before; the first answer counts.",
};
const CONFLICT = "Another answer to this text was sent before, perhaps from another window. That one counts.";
const SLOW = 2000; // milliseconds after which a page says what it waits for
const SHOWN = 5; // labels of an answer that are named
const outbox = new Outbox(server, memory, tellTrouble);
const refused = new RefusedList({ after: find("note"), outbox, show: copy, send: sendAgain });
let widget = null;
let task = null; // {id, tokens, …} and its `key`
let phase = "loading"; // then "task", "sending", "feedback", "message", "turning" or "past"
let late = 0;
let done = 0;
let waitsFor = ""; // in place of what the button sends
let waits = 0; // so that of several waits only the last one goes on by itself
let past = null; // of an answer that was sent: {answers, at, open, sent}, else null

start();

async function start() {
  widget = new { spans: SpanWidget, single: ChoiceWidget, layers: LayersWidget }[page.kind]({
    work: find("work"), dock: find("dock"), labels: page.labels, layers: page.layers, say, changed: keepDraft, send,
    sendsAtOnce: () => memory.setting("send-at-once", false),
    spacing: () => memory.setting("spacing", "auto"),
  });
  setUpHelp();
  setUpSettings();
  document.addEventListener("keydown", onKey);
  find("skip").addEventListener("click", skip);
  find("flag").addEventListener("click", flag);
  find("back").addEventListener("click", back);
  find("forward").addEventListener("click", forward);
  find("look-back").addEventListener("click", back);
  find("note-close").addEventListener("click", () => { note(""); focusTask(); });
  addEventListener("offline", () => tellTrouble(new Refused(0, "network", "")));
  addEventListener("online", () => { if (phase !== "sending") tellWell(); });
  addEventListener("storage", (event) => { if (phase === "task" && memory.isDropped(event, task)) tellOther(); });
  addEventListener("beforeunload", (event) => { if (!memory.lasts && outbox.size) event.preventDefault(); });
  await attempt(async () => {
    for (const reply of await outbox.sendRest()) tellFate(reply);
    await next();
  });
}

// ---- the way of a task ----

async function next() {
  phase = "loading";
  past = null;
  const slow = setTimeout(() => {
    if (find("message").hidden) showMessage("One moment", "The next text is on its way. What you have sent is safe.");
    phase = "loading";
  }, SLOW);
  const reply = await insist(askNext, tellTrouble).finally(() => clearTimeout(slow));
  tellWell();
  showMe(reply.me);
  if (reply.state === "task") openTask(reply.task);
  else showState(reply);
}

function openTask(given) {
  const draft = memory.draft(given);
  task = { ...given, key: draft?.key ?? newKey() };
  showPast();
  // The key is kept at once: another window, or this one after a crash, sends under the same.
  if (!draft?.key) memory.keepDraft(task, task.key, draft?.work ?? null);
  refused.draw(task.key);
  show("task");
  find("card-title").textContent = task.training ? "Practice" : `Text ${done + 1}`;
  showSuggestion(task.suggestion);
  widget.open(task, draft?.work);
  phase = "task";
  const restored = hasWork(draft?.work);
  // What was wrong with an answer stays said when its draft comes back.
  if (restored && find("note").hidden) note("Your draft is back.");
  else if (!restored) {
    const size = widget.words ? ` of ${widget.words.size} words` : "";
    say([`A new text${size}`, find("suggestion").textContent].filter(Boolean).join(". "));
  }
  clearTimeout(late);
  late = setTimeout(tellLate, Math.min(2 ** 31 - 1, Math.max(0, task.expires - server.now())));
  if (!narrowHelp()) { scrollTo(0, 0); widget.focus(); }
}

function hasWork(work) {
  return Boolean(work && (work.spans?.length || work.nothing || work.label || Object.values(work.layers ?? {}).some((one) => one?.length)));
}

function keepDraft() {
  memory.keepDraft(draftOf(task), task.key, widget.work);
}

/** Under what the marks of a task are kept: a change apart from an answer to the same words. */
function draftOf(given) {
  return past ? { ...given, kind: `sent-${given.kind}` } : given;
}

/** Say that labels were suggested, and what; where there is nothing, nobody knows. */
function showSuggestion(suggestion) {
  const words = suggestion?.layers ? "What is dashed or called “suggested” may be wrong: accept (Enter or ✓), change or delete each label in the text, and choose below what you find right. Others may be missing."
    : suggestion?.label ? `Suggested: ${suggestion.label}. It may be wrong.`
    : suggestion?.spans?.length ? "Dashed labels are suggested and may be wrong: accept (Enter or ✓), change or delete each. Others may be missing."
      : "Suggested: nothing here. It may be wrong.";
  find("suggestion").textContent = suggestion ? words : "";
  find("suggestion").hidden = !suggestion;
}

async function send() {
  if (phase !== "task" && phase !== "past") return;
  if (past && !past.open) { await forward(); return; }
  if (widget.review?.()) return;
  if (!widget.isReady) { note(widget.missing, "bad"); return; }
  if (!past) { await hand("answers", widget.answer); return; }
  if (JSON.stringify(widget.answer) !== past.sent) { await hand("change", widget.answer); return; }
  say("Nothing was changed");
  await forward();
}

// ---- the answers of this session ----

/** Go to the answer that was sent before the one on the page. */
async function back() {
  if (page.api || !["task", "past", "message"].includes(phase)) return; // who checks goes on
  const from = phase;
  const answers = past?.answers;
  const at = past ? past.at + 1 : 0;
  phase = "turning";
  await attempt(async () => {
    const known = answers ?? (await insist(() => server.post("given", {}), tellTrouble)).answers;
    if (at < known.length) return openPast(known, at);
    phase = from;
    return note(at ? "This is the first answer since you opened your link." : "There is no answer to go back to: you have sent none since you opened your link.");
  });
}

/** Go to the answer that was sent after the one on the page, and in the end to the text to do. */
async function forward() {
  if (phase !== "past") return;
  const { answers, at } = past;
  phase = "turning";
  note("");
  await attempt(() => (at > 0 ? openPast(answers, at - 1) : next()));
}

async function openPast(answers, at) {
  const found = await insist(() => server.post("recall", { task: answers[at].task }), tellTrouble);
  tellWell();
  note("");
  clearTimeout(late);
  past = { answers, at, open: found.open, why: found.why };
  const draft = found.open ? memory.draft(draftOf(found.task)) : null;
  task = { ...found.task, key: draft?.key ?? newKey() };
  if (found.open) memory.keepDraft(draftOf(task), task.key, draft?.work ?? null);
  refused.draw(task.key);
  show("task");
  find("card-title").textContent = `Your answer ${answers.length - at} of ${answers.length}`;
  showSuggestion(null);
  widget.open(task, { ...found, nothing: true, open: [] });
  past.sent = JSON.stringify(widget.answer);
  if (draft?.work) widget.open(task, draft.work);
  showPast(found);
  phase = "past";
  say(`${find("card-title").textContent}. ${find("past-note").textContent}`);
  scrollTo(0, 0);
  if (found.open) widget.focus();
  else find("forward").focus();
}

/** Show what belongs to an answer that was sent, or to a text to do. */
function showPast(sent) {
  const closed = Boolean(past && !past.open);
  find("skip").hidden = Boolean(past);
  find("flag").hidden = Boolean(past || page.api);
  find("forward").hidden = find("past-note").hidden = !past;
  find("back").disabled = Boolean(past && past.at + 1 >= past.answers.length);
  find("work").hidden = closed;
  if (closed) find("dock").hidden = true;
  find("past-view").hidden = !closed;
  find("past-view").replaceChildren(...(closed ? [copy(task, sent)] : []));
  find("past-note").textContent = closed ? `${past.why} Your answer stays as it is.` : "You have sent this answer. What you change counts when you save it.";
  nameSend();
}

async function skip() {
  if (phase !== "task") return;
  const said = await askReason({
    title: "Skip this text?", lead: "You get another text. Skipping does not count against you.",
    reasons: page.skip_reasons, withNote: false, act: "Skip",
  });
  if (said) await hand("skip", { reason: said.reason });
  else focusTask();
}

async function flag() {
  if (phase !== "task") return;
  const said = await askReason({
    title: "Report a problem", lead: "The requester is informed, and you get another text.",
    reasons: page.flag_reasons, withNote: true, act: "Report",
  });
  if (said) await hand("flag", said);
  else focusTask();
}

/** Send something about the task, and go on to the next one. */
async function hand(path, content) {
  phase = "sending";
  clearTimeout(late);
  note("");
  setBusy(true);
  await attempt(async () => {
    const { kind, tokens, text, starts } = task;
    const reply = await outbox.send(path, { task: task.id, key: task.key, ...content }, { kind, tokens, text, starts });
    memory.dropDraft(draftOf(task));
    setBusy(false);
    tellWell();
    tellFate(reply, reply.status === "duplicate" ? await counting(task.id) : "");
    if (reply.feedback) showFeedback(reply.feedback, widget.work);
    else await next();
  });
}

/** Send what was refused once more, beside the text on the page. */
async function sendAgain(entry) {
  try {
    const reply = await outbox.deliver(entry);
    tellWell();
    note("The answer has arrived.", "good");
    tellFate(reply);
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    note(error.isConflict ? CONFLICT + (await counting(entry.body.task)) : notTaken(error), "bad");
  }
  refused.draw(phase === "task" ? task.key : undefined);
  focusTask(); // the button that was pressed is gone
}

/** Do something that speaks with the server; what it refuses is told in words. */
async function attempt(act) {
  try {
    await act();
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    setBusy(false);
    await tellRefusal(error);
  }
}

async function tellRefusal(error) {
  if (error.status === 401) {
    return showMessage("Your session has ended", "Please open your personal link again. What you have marked is kept in this browser, and answers that were not yet sent are sent then.");
  }
  if (error.code === "csrf") {
    return showMessage("Please load this page again", "It is out of date. What you have marked is kept in this browser.", [reload()]);
  }
  if (error.isConflict) {
    memory.dropDraft(draftOf(task));
    note(CONFLICT + (await counting(task.id)), "bad");
  } else if (phase === "turning") note(error.message || "This answer cannot be shown.", "bad");
  else if (phase === "sending") note(notTaken(error), "bad");
  // After a refusal for good, the server says what is to be done now; a mended draft can be sent.
  if (phase !== "loading") return attempt(next);
  return showMessage("Something went wrong", error.message || "Please load this page again.", [reload()]);
}

function notTaken(error) {
  return `${error.message || "The server did not take this answer."} What you have marked is kept in this browser.`;
}

function reload() {
  return button("Load again", () => location.reload(), { class: "primary" });
}

// ---- what the worker is told ----

function tellTrouble(error) {
  const waiting = outbox.size ? " Your answer is kept in this browser and is sent as soon as possible." : " What you mark is kept in this browser.";
  if (error.code === "daily") banner(`${error.message}${waiting}`);
  else if (error.status === 429 || error.code === "busy") banner(`The server is busy for a moment.${waiting}`);
  else if (error.status >= 500) banner(`The server has a problem; the page tries again.${waiting}`);
  else banner(`No connection.${waiting}`);
  waitsFor = error.status ? "Waiting for the server" : "Waiting for the connection";
  nameSend();
}

function tellWell() {
  banner("");
  waitsFor = "";
  nameSend();
}

function nameSend() {
  widget.nameSend(waitsFor || (past ? "Save" : "Send"));
}

/** Say which answer to a text counts, "" where the server knows none. */
async function counting(id) {
  const one = await server.post("recall", { task: id }).catch(() => null);
  if (!one) return "";
  const layers = one.layers && page.layers.map(({ name, kind }) => `${name}: ${inWords(one.task, one.layers[name], kind)}`);
  return ` It says: ${layers?.join("; ") ?? inWords(one.task, one.label ?? one.spans)}. “Back” shows it.`;
}

/** A label, labels or spans, of which the first are named. */
function inWords({ tokens, text, starts }, given, kind = "spans") {
  const words = [given ?? []].flat().map((one) => (one.type ? `${one.type} “${textOf(tokens, gaps(tokens, text, starts), one)}”` : one));
  if (words.length > SHOWN) words.push(`${words.splice(SHOWN).length} more`);
  return words.join(", ") || (kind === "spans" ? "nothing here" : "no label");
}

/** Another window has sent or left the text that this one shows. */
async function tellOther() {
  const id = task.id;
  const words = await counting(id);
  if (phase !== "task" || task.id !== id) return;
  if (words) note(`You have sent this text in another window. That answer counts.${words}`);
  else attempt(next);
}

function tellFate(reply, more = "") {
  if (reply.status === "refused") return note(notTaken(reply), "bad");
  const words = reply.message || STATUS[reply.status];
  if (words) note(words + more, { accepted: "info", changed: "good" }[reply.status] ?? "bad");
}

function tellLate() {
  if (phase === "task") note("The time for this text is over. Send it anyway: it counts if it is still needed.");
}

function showMe(me) {
  if (!me) return;
  done = me.done;
  const count = me.total ? ` of ${Math.max(me.total, me.done)}` : " done";
  const parts = [make("strong", {}, String(me.done)), count];
  // Unpaid work does not speak of money.
  if (me.earned !== null) parts.push(make("span", { class: "dot", "aria-hidden": "true" }, "·"), make("strong", {}, amount(me.earned, me.currency)), " earned");
  find("me").replaceChildren(...parts);
  find("me").title = me.total ? "Texts done, of those that you may get" : "Texts done";
}

function show(what) {
  find("task").hidden = find("dock").hidden = what !== "task";
  find("message").hidden = what !== "message";
  document.body.classList.toggle("tasking", what === "task");
}

function setBusy(busy) {
  find("task").inert = find("dock").inert = busy;
  document.body.classList.toggle("busy", busy);
}

function showMessage(title, text, more = []) {
  phase = "message";
  past = null;
  refused.draw();
  // A wait that goes on is not told again.
  const same = !find("message").hidden && find("message-title").textContent === title && find("message-text").textContent === text;
  if (same && !more.some((part) => part.matches?.("button"))) return;
  show("message");
  delete find("message").dataset.right;
  find("look-back").hidden = true;
  find("message-title").textContent = title;
  find("message-text").textContent = text;
  find("message-more").replaceChildren(...more);
  find("message-title").focus();
}

function showState(reply) {
  const titles = { wait: reply.me?.done ? "Thank you, that is all for now" : "One moment", paused: "A break", done: "Thank you, you are done" };
  if (page.api) titles.done = "Thank you";
  const words = {
    wait: "There is no text for you right now. New ones may come soon.",
    paused: "The campaign is paused. What you have sent is safe.",
    done: "There is nothing left to label.",
  };
  const again = reply.state === "done" ? [] : [make("p", { class: "muted" }, "This page goes on by itself.")];
  const back = page.api ? [make("p", {}, make("a", { class: "primary", href: `${base}/desk/audit` }, "To the audit"))] : [];
  if (reply.me?.done && narrowHelp()) showHelp(false); // the instructions were read before
  showMessage(titles[reply.state], reply.message || words[reply.state], [...again, ...back, ...completion(reply.completion)]);
  find("look-back").hidden = Boolean(page.api) || !done;
  waits += 1;
  const wait = waits;
  const goOn = () => { if (wait === waits && phase === "message") attempt(next); };
  if (reply.state !== "done" || reply.seconds) wakeUp(1000 * Math.max(1, reply.seconds ?? 30)).then(goOn);
}

function completion(end) {
  const parts = [];
  if (end?.code) parts.push(make("p", {}, "Your completion code: ", make("code", { class: "code" }, end.code)));
  // Only an address of the web becomes a link.
  if (end?.url && /^https?:\/\//i.test(end.url)) parts.push(make("p", {}, make("a", { class: "primary", href: end.url, rel: "noreferrer" }, "Finish")));
  return parts;
}

function showFeedback(feedback, work) {
  const title = feedback.right ? "That is right" : "Not quite";
  const more = [make("p", { class: "muted" }, "This was practice. Your answer:"), sample(task, work), ...expected(feedback)];
  const go = button("Continue", () => attempt(next), { class: "primary" });
  showMessage(title, "", [...more, go]);
  find("message").dataset.right = String(feedback.right);
  phase = "feedback";
  go.focus();
}

function expected(feedback) {
  return feedback.right ? [] : [make("p", { class: "muted" }, "Expected:"), sample(task, feedback)];
}

/** A text with labels on it, to look at. */
function sample(about, { spans, label, layers }) {
  const { kind, tokens, text, starts } = about;
  if (kind === "layers") return make("div", {}, ...page.layers.map((layer) => sampleLayer(about, layer, layers[layer.name])));
  const box = make("div", { class: "text sampled", dir: "auto" });
  if (kind === "single") box.append(label ?? "no label");
  else showMarked(box, tokens, gaps(tokens, text, starts), spans ?? [], (type) => widget.number(type));
  return box;
}

function sampleLayer(about, { name, kind }, given) {
  if (kind === "spans") return sample({ ...about, kind }, { spans: given });
  const labels = [given ?? []].flat().map((one) => make("bdi", { class: "answered" }, one));
  return make("p", {}, make("bdi", { class: "muted" }, name), " ", ...(labels.length ? labels : ["no label"]));
}

/** What was refused, to look at. */
function copy(about, body) {
  const text = about.text ?? about.tokens.join(" ");
  if (about.kind === "single") return make("p", { dir: "auto" }, [text, body.label].filter(Boolean).join(" → "));
  // A skip or a report has no labels.
  if (about.kind === "layers" && !(body.layers && widget.spans)) return make("div", {}, make("p", { dir: "auto" }, text), ...(body.layers ? [sample(about, body)] : []));
  return sample(about, body);
}

function focusTask() {
  if (phase === "task" || (phase === "past" && past.open)) widget.focus();
}

// ---- keys, help, settings ----

function onKey(event) {
  if (find("ask").open || event.defaultPrevented || ownsKey(event.target, event.key)) return;
  const command = commandOf(event, widget.keys, memory.setting("single-keys", true));
  if (!command) return;
  if (command.name === "help") toggleHelp();
  else if (command.name === "back") back();
  else if (command.name === "forward") forward();
  else if (phase === "past" && !past.open && command.name === "send") forward();
  else if (phase !== "task" && !(phase === "past" && past.open)) return;
  else if (command.name === "send") send();
  else if (command.name === "skip" && !past) skip();
  else if (command.name === "flag" && !past && !page.api) flag();
  else if (!widget.act(command.name, command.label)) return;
  event.preventDefault();
}

function narrowHelp() {
  return !find("side").hidden && matchMedia("(max-width: 63.99rem)").matches;
}

function setUpHelp() {
  showHelp(memory.setting("help", true));
  find("show-help").addEventListener("click", (event) => {
    toggleHelp();
    if (event.detail > 0 && !narrowHelp()) focusTask();
  });
  find("hide-help").addEventListener("click", () => { toggleHelp(); find("show-help").focus(); });
  find("start").addEventListener("click", () => { toggleHelp(); focusTask(); });
}

function toggleHelp() {
  showHelp(find("side").hidden);
  memory.set("help", !find("side").hidden);
}

function showHelp(open) {
  find("side").hidden = !open;
  document.body.classList.toggle("with-help", open);
  find("show-help").setAttribute("aria-expanded", String(open));
}

function setUpSettings() {
  for (const [name, otherwise] of [["single-keys", true], ["send-at-once", false]]) {
    const box = find(name);
    if (!box) continue;
    box.checked = memory.setting(name, otherwise);
    box.addEventListener("change", () => memory.set(name, box.checked));
  }
  const spacing = find("spacing");
  spacing.value = memory.setting("spacing", "auto");
  spacing.addEventListener("change", () => {
    memory.set("spacing", spacing.value);
    if (task) widget.space();
  });
}
