// The workers' links: created, shown once, revoked.

import { ask, attempt, button, day, find, listen, make, many, note, page, post, put, Rows, say, sure } from "./desk.js";

const rows = new Rows(find("rows"), build, fill);
let made = [];

attempt(load);
listen(() => {});
find("make").addEventListener("submit", (event) => { event.preventDefault(); attempt(create); });
find("copy-all").addEventListener("click", () => attempt(() => copy(made.map((one) => `${one.worker}\t${one.url}`).join("\n"), "All links are copied")));

async function load() {
  const list = await ask("links");
  rows.show(list.reverse(), (one) => one.id);
  put("sum", list.length ? `${many(list.filter((one) => state(one)[1] === "good").length, "link")} valid` : "");
  find("empty").hidden = list.length > 0;
}

async function create() {
  const workers = find("names").value.split("\n").map((name) => name.trim()).filter(Boolean);
  made = await post("links", { workers, days: Number(find("days").value) });
  find("names").value = "";
  find("new").replaceChildren(...made.map((one) => make("li", {}, make("strong", { dir: "auto" }, one.worker), make("code", {}, one.url),
    button("Copy", () => attempt(() => copy(one.url, `The link of ${one.worker} is copied`)), { "aria-label": `Copy the link of ${one.worker}` }))));
  find("made").hidden = false;
  find("t-made").focus();
  await load();
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

function build(one) {
  const [status, act] = [make("span", { class: "pill" }), button("Revoke…", () => attempt(() => revoke(one)), { "aria-haspopup": "dialog", "aria-label": `Revoke the link of ${one.worker}` })];
  const cell = (name, ...parts) => make("td", { "data-name": name }, ...parts);
  const element = make("tr", {}, make("th", { scope: "row", dir: "auto" }, one.worker), cell("Created", day(one.issued)), cell("Valid until", day(one.expires)), cell("State", status), make("td", { class: "acts-cell" }, act));
  return { element, status, act };
}

function fill(row, one) {
  const [words, kind] = state(one);
  put(row.status, words);
  row.status.dataset.kind = kind;
  row.act.hidden = kind !== "good";
}

async function revoke(one) {
  const lead = "The link no longer works, and whoever signed in with it is logged out. Their answers stay" + (page.paid ? ", and are paid." : ".");
  if (!await sure({ title: `Revoke the link of ${one.worker}?`, lead, act: "Revoke", danger: true })) return;
  await ask(`links/${encodeURIComponent(one.id)}`, { method: "DELETE" });
  say("The link was revoked");
  await load();
}
