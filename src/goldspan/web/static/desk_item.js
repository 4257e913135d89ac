// One item: its labels, how certain they are, every answer, what was said of it.

import { ask, attempt, find, listen, make, page, percent, put } from "./desk.js";
import { labelled, labelsOf, posterior, Review } from "./review.js";

let shown = "";
const review = new Review({ decided: () => attempt(load), attempt, quick: false });
listen(() => attempt(load));

async function load() {
  const number = Number(new URLSearchParams(location.search).get("page")) || 1;
  const item = await ask(`items/${encodeURIComponent(page.item)}?page=${number}`);
  const key = JSON.stringify(item);
  if (key === shown) return;
  const first = !shown;
  shown = key;
  showAbout(item);
  if (first) review.open(item, item.gold ?? item.known ?? labelsOf(item.found));
  else review.load();
}

function showAbout(item) {
  const words = item.gold ? "Reviewed by you" : item.control ? "A gold question: its labels are in the plan's file" : item.found ? `${percent(item.found.confidence, 1)} certain` : "No answers yet";
  put("card-title", words);
  const pills = [item.gold && ["gold", "gold"], item.control && ["control", "soon"], item.n_flags && [`reports: ${item.n_flags}`, "bad"]];
  find("chips").replaceChildren(...pills.filter(Boolean).map(([text, kind]) => make("span", { class: "pill", "data-kind": kind }, text)));
  const bars = posterior(item);
  const likely = bars.length ? [make("h2", {}, "Probabilities"), ...bars] : [];
  find("posterior").replaceChildren(...likely, ...(item.found ? [make("h2", {}, "Consensus"), labelled(item, labelsOf(item.found))] : []));
  find("said").replaceChildren(...people("Skipped by", item.skipped), ...people("Reported by", item.flags), ...pager(item));
}

/** Links to the pages before and after, where there are more answers than one shows. */
function pager(item) {
  if (item.pages === 1) return [];
  const to = (number, words) => number < 1 || number > item.pages ? [] : [" ", make("a", { href: `?page=${number}` }, words)];
  return [make("p", { class: "sub" }, `Answers, skips and reports: page ${item.page} of ${item.pages}`, ...to(item.page - 1, "Back"), ...to(item.page + 1, "More"))];
}

function people(title, list) {
  if (!list.length) return [];
  const rows = list.map((one) => make("li", {}, make("strong", { dir: "auto" }, one.worker), `: ${one.reason}`, ...(one.note ? [make("q", { dir: "auto" }, one.note)] : [])));
  return [make("h2", {}, title), make("ul", { class: "said" }, ...rows)];
}
