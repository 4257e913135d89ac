// The items that were asked about: searched, filtered, a page at a time.

import { ask, attempt, count, find, link, listen, make, percent, put } from "./desk.js";

const begins = [""];
const given = new URLSearchParams(location.search);
const SURE = 0.95; // confidence below which the least certain layer is named
let [wait, shown, last] = [0, "", ""];

find("which").value = given.get("state") ?? "all";
find("find").value = given.get("find") ?? "";
find("filters").addEventListener("submit", (event) => { event.preventDefault(); anew(); });
find("find").addEventListener("input", () => { clearTimeout(wait); wait = setTimeout(anew, 250); });
find("which").addEventListener("change", anew);
find("more").addEventListener("click", () => { begins.push(last); attempt(load); });
find("back").addEventListener("click", () => { begins.pop(); attempt(load); });
listen(() => attempt(load));

function anew() {
  begins.length = 1;
  const query = new URLSearchParams({ find: find("find").value, state: find("which").value });
  history.replaceState(null, "", `?${query}`);
  attempt(load);
}

async function load() {
  const query = new URLSearchParams({ after: begins.at(-1), find: find("find").value, state: find("which").value });
  const found = await ask(`items?${query}`);
  put("sum", `${count(found.total)} asked about`);
  find("back").disabled = begins.length === 1;
  find("more").disabled = !found.more;
  find("empty").hidden = found.items.length > 0;
  last = found.items.at(-1)?.item ?? "";
  const key = JSON.stringify(found.items);
  if (key === shown) return;
  shown = key;
  const focus = document.activeElement?.dataset?.item;
  find("rows").replaceChildren(...found.items.map(row));
  if (focus) find("rows").querySelector(`[data-item="${CSS.escape(focus)}"]`)?.focus();
}

function row(one) {
  const name = make("a", { href: link(one.item), "data-item": one.item, dir: "auto" }, one.item);
  const pills = [one.gold && ["gold", "gold"], one.control && ["control", "soon"], one.flags > 0 && [`reports: ${one.flags}`, "bad"], !one.control && (one.state === "done" ? ["complete", "good"] : ["open", "rest"])];
  return make("tr", {}, make("th", { scope: "row" }, name), make("td", { class: "line-cell", dir: "auto" }, one.text),
    make("td", { class: "n", "data-name": "Answers" }, one.control ? count(one.answers) : `${one.answers} of ${one.wanted}`),
    make("td", { "data-name": "Confidence", class: "n" }, one.confidence === null ? "–" : percent(one.confidence), one.unsure && one.confidence < SURE ? make("span", { class: "sub", dir: "auto" }, one.unsure) : ""),
    make("td", { class: "pills" }, ...pills.filter(Boolean).map(([words, kind]) => make("span", { class: "pill", "data-kind": kind }, words))));
}
