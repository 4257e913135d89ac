// The links of workers and of reviewers: created, shown once, revoked.

import { ask, attempt, button, day, find, listen, make, many, note, page, post, put, Rows, say, sure } from "./desk.js";

listen(() => {});
links({
  prefix: "", path: "links", nameOf: (one) => one.worker,
  create: (workers, days, show) => post("links", { workers, days }).then(show),
  loss: "The link no longer works, and whoever signed in with it is logged out. Their answers stay" + (page.paid ? ", and are paid." : "."),
});
links({
  prefix: "r-", path: "reviewers", nameOf: (one) => one.name, used: true,
  create: createReviewers,
  loss: "The link no longer works, and whoever signed in with it is logged out. What they decided stays.",
});

/** One after the other, each shown at once: if one is refused, the links before it are not lost. */
async function createReviewers(names, days, show) {
  const made = [];
  for (const name of names) {
    made.push(await post("reviewers", { name, days }));
    show(made);
  }
}

/** Let a form, a list of new links and a table, whose ids begin with a prefix, work on a path of the API. */
function links({ prefix, path, nameOf, create, loss, used = false }) {
  const at = (id) => find(prefix + id);
  const rows = new Rows(at("rows"), build, fill);
  let made = [];

  attempt(load);
  at("make").addEventListener("submit", (event) => { event.preventDefault(); attempt(send); });
  at("copy-all").addEventListener("click", () => attempt(() => copy(made.map((one) => `${nameOf(one)}\t${one.url}`).join("\n"), "All links are copied")));

  async function load() {
    const list = await ask(path);
    rows.show(list.reverse(), (one) => one.id);
    put(`${prefix}sum`, list.length ? `${many(list.filter((one) => state(one)[1] === "good").length, "link")} valid` : "");
    at("empty").hidden = list.length > 0;
  }

  async function send() {
    const names = at("names").value.split("\n").map((name) => name.trim()).filter(Boolean);
    let n = 0;
    try {
      await create(names, Number(at("days").value), (list) => { n = list.length; show(list); });
    } finally {
      at("names").value = names.slice(n).join("\n");  // what was refused can be mended and sent again
      if (n) await load();
    }
    at("t-made").focus();
  }

  function show(list) {
    made = list;
    at("new").replaceChildren(...made.map((one) => make("li", {}, make("strong", { dir: "auto" }, nameOf(one)), make("code", {}, one.url),
      button("Copy", () => attempt(() => copy(one.url, `The link of ${nameOf(one)} is copied`)), { "aria-label": `Copy the link of ${nameOf(one)}` }))));
    at("made").hidden = false;
  }

  function build(one) {
    const [status, last] = [make("span", { class: "pill" }), make("td", { "data-name": "Last used" })];
    const act = button("Revoke…", () => attempt(() => revoke(one)), { "aria-haspopup": "dialog", "aria-label": `Revoke the link of ${nameOf(one)}` });
    const cell = (name, ...parts) => make("td", { "data-name": name }, ...parts);
    const element = make("tr", {}, make("th", { scope: "row", dir: "auto" }, nameOf(one)), cell("Created", day(one.issued)), ...(used ? [last] : []), cell("Valid until", day(one.expires)), cell("State", status), make("td", { class: "acts-cell" }, act));
    return { element, status, last, act };
  }

  function fill(row, one) {
    const [words, kind] = state(one);
    put(row.status, words);
    if (used) put(row.last, one.used === null ? "never" : day(one.used));
    row.status.dataset.kind = kind;
    row.act.hidden = kind !== "good";
  }

  async function revoke(one) {
    if (!await sure({ title: `Revoke the link of ${nameOf(one)}?`, lead: loss, act: "Revoke", danger: true })) return;
    await ask(`${path}/${encodeURIComponent(one.id)}`, { method: "DELETE" });
    say("The link was revoked");
    await load();
  }
}

async function copy(text, words) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    throw new Error("The browser does not let this page copy: select the link and copy it.");
  }
  note(words, "good");
}

function state(one) {
  if (one.revoked) return ["revoked", "bad"];
  return one.holds ? ["valid", "good"] : ["expired", "rest"];
}
