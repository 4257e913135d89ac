// The workers: what each did, how often each is right, and what is decided about them.

import { ask, attempt, button, count, find, listen, make, many, money, note, page, post, put, Rows } from "./desk.js";
import { interval } from "./desk_charts.js";

const CHOICES = [["keep", "Keep"], ["drop", "Drop"], ["test", "Test more"]];
const rows = new Rows(find("rows"), build, fill);
let busy = false;

listen(() => attempt(load));

async function load() {
  if (busy) return;
  busy = true;
  try {
    const list = await ask("workers");
    rows.show(list, (one) => one.worker);
    const gone = list.filter((one) => one.barred).length;
    put("sum", list.length ? `${many(list.length, "worker")}${gone ? `, ${count(gone)} asked no more` : ""}` : "");
    find("empty").hidden = list.length > 0;
  } finally {
    busy = false;
  }
}

function build(one) {
  const cell = (name, kind = "n") => make("td", { class: kind, "data-name": name });
  const cells = { answers: cell("Answers"), ...(page.paid ? { earned: cell("Earned") } : {}), control: cell("Gold questions"), seconds: cell("Seconds"), right: cell("Accuracy or agreement", "right"), acts: cell("Decision", "acts-cell") };
  const status = make("span", { class: "pill" });
  const choices = CHOICES.filter(([name]) => name !== "test" || page.control).map(([name, words]) => [name, button(words, () => attempt(() => decide(one.worker, name)), { "aria-pressed": "false", class: `choose ${name}`, "aria-label": `${words}: ${one.worker}` })]);
  cells.acts.append(make("div", { class: "group", role: "group", "aria-label": one.worker }, ...choices.map(([, made]) => made)));
  const head = make("th", { scope: "row" }, make("span", { class: "who", dir: "auto" }, one.worker), status);
  return { element: make("tr", {}, head, ...Object.values(cells)), cells, status, choices, shown: "" };
}

function fill(row, one) {
  const key = JSON.stringify(one);
  if (row.shown === key) return;
  row.shown = key;
  const { cells } = row;
  put(cells.answers, one.drafts ? `${count(one.answers)} + ${many(one.drafts, "draft")}` : count(one.answers));
  if (cells.earned) put(cells.earned, one.earned === null ? "–" : money(one.earned));
  put(cells.control, one.control.answered ? `${count(one.control.right)} of ${count(one.control.total)} ${one.control.unit}` : "–");
  put(cells.seconds, one.seconds === null ? "–" : one.seconds.toFixed(1));
  cells.right.replaceChildren(...reliability(one));
  row.element.classList.toggle("gone", one.barred);
  put(row.status, one.standing);
  row.status.dataset.kind = KINDS[one.standing] ?? "soon";
  row.choices.forEach(([name, made]) => made.setAttribute("aria-pressed", String(one.decided === name)));
}

// How often right by known labels, else how the worker agrees with the others: `why` says which.
function reliability({ verdict }) {
  if (!verdict || !verdict.by) return [make("span", { class: "sub" }, "nothing to compare with yet")];
  const pc = (value) => Math.round(100 * value);
  const range = `${pc(verdict.low)}–${pc(verdict.high)} %`;
  const sure = verdict.by === "gold";
  const words = sure ? `${pc(verdict.mean)} %` : verdict.measure === "agrees" ? `agrees ${pc(verdict.mean)} %` : "by agreement";
  const svg = interval(verdict, `${words}, between ${range}`);
  return [make("span", { class: "gauge" }, svg, make("span", {}, make("strong", {}, words), make("span", { class: "sub" }, range))), make("span", { class: "sub reason" }, verdict.why)];
}

const KINDS = {
  kept: "good", reliable: "good", "agrees with the others": "good",
  dropped: "bad", "asked no more": "bad", doubtful: "bad", "differs from the others": "bad",
};

async function decide(worker, verdict) {
  const said = { keep: "is kept, whatever the rules decide", drop: "gets no more tasks", test: "gets five more gold questions" };
  await post(`workers/${encodeURIComponent(worker)}/verdict`, { verdict });
  note(`${worker} ${said[verdict]}.`, "good");
  await load();
}
