// Uncertain items, one after the other.

import { ask, attempt, button, find, link, listen, make, many, page, percent, put } from "./desk.js";
import { labelsOf, Review } from "./review.js";
import { handBack } from "./panels.js";

let queue = [];
let at = null;
let last = null; // that was decided
let done = 0;
let stale = true;
const passed = new Set();
const review = new Review({ decided: next, later: () => leave(), attempt });

find("open").hidden = Boolean(page.reviewer);
find("later").addEventListener("click", () => leave());
handBack(find("queue"), () => review.widget.focus());
listen(() => { stale = true; if (!at) attempt(load); });

async function load() {
  stale = false;
  const by = new URLSearchParams(location.search).get("by") ?? "confidence";
  const found = await ask(`uncertain?limit=20&by=${by}`);
  queue = [...found.filter((one) => !passed.has(one.item)), ...found.filter((one) => passed.has(one.item))];
  show(queue[0] ?? null);
}

function show(one) {
  at = one;
  find("empty").hidden = Boolean(one);
  drawQueue();
  if (!one) return review.hide();
  put("card-title", `${percent(one.found.confidence)} certain, ${many(one.answers, "answer")}`);
  find("open").href = link(one.item);
  return review.open(one, one.mine ?? labelsOf(one.found));
}

function drawQueue() {
  put("sum", done ? `${many(done, "item")} reviewed` : "");
  find("queue").replaceChildren(...queue.slice(0, 12).map((one) => {
    const chosen = one === at ? { "aria-current": "true" } : {};
    return make("li", {}, button([make("span", { class: "p" }, percent(one.found.confidence)), make("span", { class: "line", dir: "auto" }, one.text)], () => show(one), chosen));
  }));
}

async function next(item, gold, was) {
  done += gold === null ? -1 : 1;
  if (gold === null) queue.unshift({ ...last, mine: was }); // taken back
  else [last, queue] = [at, queue.filter((one) => one.item !== item)];
  if (stale && !queue.length) return attempt(load);
  show(queue[0] ?? null);
  return review.widget.focus();
}

function leave() {
  if (!at) return;
  passed.add(at.item);
  queue = [...queue.filter((one) => one !== at), at];
  show(queue[0]);
  review.widget.focus();
}
