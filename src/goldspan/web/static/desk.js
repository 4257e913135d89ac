// What all pages of the desk share: the API, the stream of what is new, numbers, questions.

import { amount, banner, button, find, make, note, say } from "./panels.js";
import { Refused, base, wakeUp } from "./sending.js";

export { amount, base, button, find, make, note, say };
export const page = JSON.parse(find("page").textContent);

const WORDS = {
  starting: "Starting", working: "Computing", waiting: "Open", paused: "Paused", ending: "Ending",
  ended: "Ended", failed: "Trouble",
};

const TRIES = 5;

/** Ask the API; a refusal is an error with its words. Who finds no place waits, and asks again. */
export async function ask(path, options = {}) {
  for (let turn = 1; ; turn += 1) {
    try {
      return await askOnce(path, options);
    } catch (error) {
      // Only what is certain to have done nothing is asked again by itself.
      const isSafe = error.code === "busy" || (error.status === 503 && (options.method ?? "GET") === "GET");
      if (!isSafe || !error.wait || turn === TRIES) throw error;
      await wakeUp(error.wait * (1 + Math.random() / 4));
    }
  }
}

async function askOnce(path, { method = "GET", body, raw = false }) {
  let reply;
  try {
    reply = await fetch(`${base}/api/desk/${path}`, {
      method, cache: "no-store", credentials: "same-origin",
      headers: { "X-Goldspan-CSRF": page.csrf, ...(body === undefined ? {} : { "Content-Type": "application/json" }) },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
  } catch {
    throw new Refused(0, "network", "The server cannot be reached.");
  }
  if (reply.ok) return raw ? reply : reply.json();
  const said = (await reply.json().catch(() => null))?.error ?? {};
  if (reply.status === 401) tellEnd();
  const wait = 1000 * (Number(reply.headers.get("Retry-After")) || 0);
  throw new Refused(reply.status, said.code ?? "error", said.message ?? "That did not work.", wait);
}

export const post = (path, body) => ask(path, { method: "POST", body });

/** Do something, and tell what went wrong above the page. */
export async function attempt(act) {
  try {
    const given = await act();
    if (find("note").dataset.kind === "bad") note("");
    return given;
  } catch (error) {
    note(error.message || String(error), "bad");
    return undefined;
  }
}

/** Hear of every change: `heard(overview)`, at once and then once a second at most. */
export function listen(heard) {
  if (page.reviewer) return poll(heard);
  const stream = new EventSource(`${base}/api/desk/live`);
  stream.addEventListener("overview", (event) => {
    const now = JSON.parse(event.data);
    banner(now.error ? `The campaign is blocked: ${now.error}. ${now.advice}` : "");
    showState(now);
    heard(now);
  });
  stream.addEventListener("trouble", (event) => banner(JSON.parse(event.data).error));
  stream.addEventListener("ended", () => { stream.close(); tellEnd(); });
  stream.addEventListener("error", () => {
    if (stream.readyState === EventSource.CLOSED) again(heard);
    banner("The connection to the server is lost; the page tries again by itself.");
  });
  addEventListener("pagehide", () => stream.close());
}

/** Say what a page waits for, and for a moment longer: what was computed has yet to be shown. */
async function tellComputing(box, over = true) {
  let words = "";
  try {
    ({ words } = await ask("computing"));
  } catch { /* What the page itself asks for tells what went wrong. */ }
  if (words) put(box, `${words}.`);
  box.hidden = !words && over;
  setTimeout(tellComputing, 3000, box, !words);
}

if (find("computing")) tellComputing(find("computing"));

const EVERY = 20000;

/** A reviewer does not see how far the campaign is: the page only asks now and then for items. */
function poll(heard) {
  put("state", "Review");
  heard(null);
  setInterval(heard, EVERY, null);
}

/** Listen anew in a while: a browser gives up a stream that is refused once, and be it by a 503. */
function again(heard) {
  const later = () => setTimeout(listen, 5000, heard);
  ask("overview").then(later, (error) => { if (error.passes) later(); });
}

function tellEnd() {
  const box = find("banner");
  box.replaceChildren("The session has ended. ", make("a", { href: `${base}/login` }, "Log in"), " to go on.");
  box.hidden = false;
}

export function showState(now) {
  const box = find("state");
  if (box.dataset.state !== now.state || !box.textContent) box.textContent = WORDS[now.state];
  box.dataset.state = now.state;
}

export const percent = (value, digits = 0) => `${(100 * value).toFixed(digits)} %`;
export const money = (value) => amount(value, page.currency);
export const count = (n) => new Intl.NumberFormat("en").format(n);

/** "3 items", "1 item". */
export const many = (n, one, more = `${one}s`) => `${count(n)} ${n === 1 ? one : more}`;

/** Hours in words. */
export function time(hours) {
  if (hours >= 48) return `${(hours / 24).toFixed(1)} days`;
  if (hours >= 1) return `${hours.toFixed(1)} h`;
  return `${Math.max(0, Math.round(60 * hours))} min`;
}

export const day = (ms) => new Date(ms).toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "short" });

export const link = (item) => `${base}/desk/items/${encodeURIComponent(item)}`;

/** Put text into an element, if it is another. */
export function put(id, text) {
  const element = typeof id === "string" ? find(id) : id;
  if (element.textContent !== text) element.textContent = text;
}

/** Ask whether something is meant; gives true or false. */
export function sure({ title, lead, act, danger = false }) {
  const dialog = find("ask");
  const form = make("form", { method: "dialog" },
    make("h2", { id: "ask-title" }, title), make("p", {}, lead),
    make("div", { class: "acts" }, make("span", { class: "fill" }),
      button("Cancel", () => dialog.close(""), { class: "quiet" }),
      make("button", { class: danger ? "danger" : "primary", value: "go" }, act)));
  dialog.replaceChildren(form);
  dialog.returnValue = "";
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => resolve(dialog.returnValue === "go"), { once: true });
  });
}

/** Show a section with a list, where there is anything in it. */
export function showLines(section, list, lines) {
  find(section).hidden = !lines.length;
  const key = JSON.stringify(lines);
  if (find(section).dataset.shown === key) return;
  find(section).dataset.shown = key;
  find(list).replaceChildren(...lines.map((line) => make("li", {}, line)));
}

/** Show how right the labels are. */
export function showCertificate(found) {
  put("certificate", found ? found.text : "Nobody has checked them yet.");
  put("goal", found?.goal ? `${found.goal}${found.cost || ""}.` : "");
  find("goal").hidden = !found?.goal;
  put("design", found ? `${found.design}.` : "");
  showLines("audit-notes", "audit-notes", (found?.notes ?? []).map((line) => `${line[0].toUpperCase()}${line.slice(1)}.`));
}

/** Rows of a table that keep their place, focus and selection while their cells change. */
export class Rows {
  constructor(body, build, fill) {
    Object.assign(this, { body, build, fill, kept: new Map() });
  }

  show(list, keyOf) {
    const rows = list.map((one) => {
      const key = keyOf(one);
      if (!this.kept.has(key)) this.kept.set(key, this.build(one));
      const row = this.kept.get(key);
      this.fill(row, one);
      return row.element;
    });
    const there = [...this.body.children];
    if (rows.length !== there.length || rows.some((row, i) => row !== there[i])) this.body.replaceChildren(...rows);
  }
}

document.querySelector(".desk-top [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });
find("note-close").addEventListener("click", () => note(""));
