// The overview: how far it is, what it has cost, where it leads.

import { ask, attempt, base, count, find, listen, make, many, money, page, percent, post, put, say, showCertificate, showLines, sure, time } from "./desk.js";
import { bar, learningCurve } from "./desk_charts.js";

let now = null;
let agreed = -1;

listen(show);
find("pause").addEventListener("click", () => attempt(pause));
find("stop").addEventListener("click", () => attempt(stop));
new ResizeObserver(() => now && showCurve(now.learning)).observe(find("curve"));

function show(given) {
  now = given;
  showActs();
  showTiles();
  showCurve(now.learning);
  showForecast(now.learning);
  showLabels();
  showRounds(now.rounds);
  showPlan(now.plan);
  showLines("warnings", "warning-lines", now.warnings.map((line) => `${line[0].toUpperCase()}${line.slice(1)}.`));
  if (agreed !== now.answers.counting) attempt(showAgreement);
}

// ---- the state ----

function showActs() {
  const over = ["ended", "ending"].includes(now.state);
  find("pause").hidden = find("stop").hidden = over;
  put("pause", now.state === "paused" ? "Resume" : "Pause");
  const why = over ? `Why it ended: ${now.why}.` : "";
  find("why").hidden = !why;
  put("why", why);
}

async function pause() {
  const resumes = now.state === "paused";
  await post(resumes ? "resume" : "pause");
  say(resumes ? "The campaign continues" : "The campaign is paused");
}

async function stop() {
  const lead = "No new tasks are assigned and no new round begins. The labels are computed from the answers so far. This cannot be undone; to stop for a while, pause instead.";
  if (await sure({ title: "Stop the campaign?", lead, act: "Stop for good", danger: true })) await post("stop");
}

// ---- the tiles ----

function showTiles() {
  showItems();
  showMoney();
  showTime();
}

/** How right the labels are: by the audit, else what they say of themselves. */
function showLabels() {
  const { certificate, confidence } = now;
  showCertificate(certificate);
  if (!now.answers.counting && !certificate) put("certificate", "There are no labels yet.");
  if (confidence === null || (certificate && certificate.value !== null)) return;
  put("certificate", `Mean confidence ${percent(confidence, 1)}`);
  put("design", `This is what the answers say. ${certificate ? `${certificate.text}. ${certificate.design}.` : page.kind === "layers" ? "" : "Nobody has checked the labels yet: an audit tells how many are right."}`);
}

function showItems() {
  const { items, answers, waiting } = now;
  put("items-big", `${count(items.answered)} of ${count(items.pool)}`);
  bar(find("items-bar"), [{ share: items.answered / items.pool, kind: "good" }], `${percent(items.answered / items.pool)} of the pool has answers`);
  const awaited = waiting?.answers ? many(waiting.answers, "answer") : many(waiting?.items, "check");
  const waits = waiting && now.state !== "ended" ? `; ${awaited} awaited` : "";
  const control = answers.control ? `, ${count(answers.control)} of them to gold questions` : "";
  put("items-sub", `${many(answers.counting, "answer")}${control}${waits}`);
}

function showMoney() {
  if (!now.money) return;
  const { cap, reserved, spent, left, labels, control } = now.money;
  put("money-big", `${money(spent)} of ${money(cap)}`);
  const share = (value) => Number(value) / Number(cap) || 0;
  bar(find("money-bar"), [{ share: share(spent), kind: "good" }, { share: share(reserved), kind: "soon" }], `${percent(share(spent))} spent, ${percent(share(reserved))} reserved`);
  put("money-sub", control === undefined ? "" : `labels ${money(labels)}, gold questions ${money(control)}`);
  const rows = [["spent", "good", spent], ["reserved", "soon", reserved], ["left", "rest", left]];
  find("money-legend").replaceChildren(...rows.map(([name, kind, value]) =>
    make("li", {}, make("span", { class: `swatch ${kind}`, "aria-hidden": "true" }), `${name} ${money(value)}`)));
}

function showTime() {
  const { used, left } = now.hours;
  put("time-big", left === null ? `${time(used)} so far` : `${time(left)} left`);
  const share = left === null ? 0 : used / (used + left || 1);
  find("time-bar").hidden = left === null;
  bar(find("time-bar"), [{ share, kind: "good" }], `${percent(share)} of the time is over`);
  const pace = used > 0.05 ? `${count(Math.round(now.answers.counting / used))} answers an hour` : "";
  put("time-sub", [left === null ? "no limit in the plan" : `${time(used)} so far`, pace].filter(Boolean).join("; "));
}

async function showAgreement() {
  agreed = now.answers.counting;
  const { measures, layers } = await ask("agreement");
  const known = Object.entries(layers ?? { "": measures }).filter(([, one]) => typeof one?.alpha === "number");
  const alpha = known.length ? Math.min(...known.map(([, one]) => one.alpha)) : null; // of layers the lowest
  put("people-big", alpha === null ? "–" : `α ${alpha.toFixed(2)}`);
  bar(find("people-bar"), alpha === null ? [] : [{ share: Math.max(0, alpha), kind: "good" }], alpha === null ? "Not known yet" : `Krippendorff's alpha ${alpha.toFixed(2)}`);
  const by = make("a", { href: `${base}/desk/workers` }, many(now.answers.workers, "worker"));
  const flags = now.flags ? [", ", make("a", { href: `${base}/desk/items?state=flagged` }, many(now.flags, "report"))] : [];
  const each = layers ? `${known.map(([name, one]) => `${name} ${one.alpha.toFixed(2)}`).join(", ")}; ` : "";
  find("people-sub").replaceChildren(each, by, ...flags);
}

// ---- the curve ----

let drawn = "";

function showCurve(learning) {
  const box = find("curve");
  const wide = Math.round(box.clientWidth);
  const key = JSON.stringify([learning.points, learning.curve, wide]);
  if (!wide || key === drawn) return;
  drawn = key;
  const svg = learningCurve(learning, wide);
  find("curve-key").hidden = !svg;
  box.replaceChildren(svg ?? make("p", { class: "empty" }, "The curve begins when two rounds with randomly drawn items are over."));
}

function showForecast({ points, target, forecast }) {
  const facts = [];
  const last = points.at(-1);
  const range = ({ low, high }) => `${percent(low, 1)} to ${percent(high, 1)}`;
  if (last) facts.push([`${scoreName()} now`, percent(last.value, 1), range(last)]);
  const next = forecast?.next;
  if (next) facts.push([`With ${count(next.items)} more items`, percent(next.score, 1), `${range(next)}; ${takes(next)}`]);
  const end = forecast?.end;
  if (target && end) facts.push([`Until the target, ${percent(target, 1)}`, end.text, ""]);
  const again = forecast?.ask_again;
  if (again?.answers) facts.push([`${many(again.answers, "more answer")} to uncertain items`, now.money ? money(again.cost) : "", setRight(again.right_tokens)]);
  find("forecast").replaceChildren(...facts.map(([name, value, more]) => make("div", {}, make("dt", {}, name), make("dd", {}, make("strong", {}, value), ` ${more}`))));
}

/** What the model's score is: beside the labels', it must not be taken for theirs. */
const scoreName = () => page.single ? "Model's accuracy" : "Tagger's F1";

/** How many labels more answers are expected to set right. */
const setRight = (share) => `expected to set right ${share < 0.0005 ? "less than 0.1 %" : `about ${percent(share, 1)}`} of the ${page.single ? "labels" : "tokens"}`;

/** What something takes: money, or answers where nobody is paid. */
const takes = ({ cost, answers }) => now.money ? money(cost) : many(answers, "answer");

function showRounds(rounds) {
  const paid = Boolean(now.money);
  const head = ["Round", "Items", "Answers", ...(paid ? ["Spent"] : []), scoreName(), "Model"];
  const box = find("rounds");
  if (Number(box.dataset.n) === rounds.length && box.firstChild) return;
  box.dataset.n = rounds.length;
  if (!rounds.length) return box.replaceChildren(make("p", { class: "empty" }, "The first round is open."));
  const rows = rounds.map((one) => make("tr", {},
    ...[one.round, count(one.items), count(one.answers), ...(paid ? [money(one.spent)] : []), score(one.control ?? one.score)].map((cell) => make("td", { class: "n" }, String(cell))),
    make("td", {}, one.model ?? "–")));
  const table = make("table", {}, make("thead", {}, make("tr", {}, ...head.map((name, i) => make("th", { scope: "col", class: i < head.length - 1 ? "n" : "" }, name)))), make("tbody", {}, ...rows.reverse()));
  return box.replaceChildren(table);
}

// ---- the plan ----

function showPlan({ changes, pending }) {
  const lines = [...changes.map((line) => `Changed: ${line}.`), ...pending.map((line) => `Not in force until goldspan serve starts again: ${line}.`)];
  showLines("plan", "plan-lines", lines);
}

const score = (found) => found ? `${percent(found.value, 1)} (${percent(found.low, 0)}–${percent(found.high, 0)})` : "–";
