// Tokens of programs: created, shown once, revoked.

import { ask, attempt, button, day, find, listen, make, many, note, post, put, Rows, say, sure } from "./desk.js";

const rows = new Rows(find("rows"), build, fill);

attempt(load);
listen(() => {});
find("make").addEventListener("submit", (event) => { event.preventDefault(); attempt(create); });
find("copy").addEventListener("click", () => attempt(copy));

async function load() {
  const list = await ask("tokens");
  rows.show(list.reverse(), (one) => one.id);
  put("sum", list.length ? `${many(list.filter((one) => one.holds).length, "token")} valid` : "");
  find("empty").hidden = list.length > 0;
}

async function create() {
  const scopes = [...document.querySelectorAll("[name=scope]:checked")].map((box) => box.value);
  if (!scopes.length) throw new Error("Choose at least one scope.");
  const made = await post("tokens", { name: find("name").value.trim(), scopes, days: Number(find("days").value) });
  find("make").reset();
  find("new").textContent = made.token;
  find("made").hidden = false;
  find("t-made").focus();
  await load();
}

async function copy() {
  try {
    await navigator.clipboard.writeText(find("new").textContent);
  } catch {
    throw new Error("The browser does not let this page copy: select the token and copy it.");
  }
  note("The token is copied", "good");
}

function state(one) {
  if (one.revoked) return ["revoked", "bad"];
  return one.holds ? ["valid", "good"] : ["expired", "rest"];
}

function build(one) {
  const [status, used] = [make("span", { class: "pill" }), make("td", { "data-name": "Last used" })];
  const act = button("Revoke…", () => attempt(() => revoke(one)), { "aria-haspopup": "dialog", "aria-label": `Revoke the token ${one.name}` });
  const cell = (name, ...parts) => make("td", { "data-name": name }, ...parts);
  const element = make("tr", {}, make("th", { scope: "row", dir: "auto" }, one.name), cell("Scopes", one.scopes.join(", ")), used, cell("Valid until", day(one.expires)), cell("State", status), make("td", { class: "acts-cell" }, act));
  return { element, status, used, act };
}

function fill(row, one) {
  const [words, kind] = state(one);
  put(row.status, words);
  put(row.used, one.used === null ? "never" : day(one.used));
  row.status.dataset.kind = kind;
  row.act.hidden = kind !== "good";
}

async function revoke(one) {
  const lead = "The program that has it can no longer use the API.";
  if (!await sure({ title: `Revoke the token ${one.name}?`, lead, act: "Revoke", danger: true })) return;
  await ask(`tokens/${encodeURIComponent(one.id)}`, { method: "DELETE" });
  say("The token was revoked");
  await load();
}
