// Programs: their tokens, created, shown once, revoked; and what webhooks have told them.

import { ask, attempt, button, day, find, listen, make, many, note, post, put, Rows, say, sure } from "./desk.js";

const rows = new Rows(find("rows"), build, fill);

const messages = new Rows(find("messages"), buildMessage, fillMessage);

attempt(load);
listen(() => attempt(loadMessages));
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

// ---- webhooks ----

async function loadMessages() {
  const told = await ask("webhooks");
  find("told").hidden = !told.hooks.length && !told.messages.length;
  find("hooks").replaceChildren(...told.hooks.map((one) => make("li", {}, `${one.name} (${one.host}): ${one.events.join(", ")}. ${one.sent} sent, ${one.waiting} waiting, ${one.failed} given up.`)));
  messages.show(told.messages, (one) => String(one.number));
}

function buildMessage(one) {
  const [status, tries] = [make("span", { class: "pill" }), make("td", { "data-name": "Tries" })];
  const act = button("Send again", () => attempt(() => sendAgain(one)), { "aria-label": `Send message ${one.number} again` });
  const cell = (name, ...parts) => make("td", { "data-name": name }, ...parts);
  const why = make("p", { class: "sub" });
  const element = make("tr", {}, make("th", { scope: "row" }, one.event), cell("To", one.hook), cell("Made", day(one.made)), tries, cell("State", status, why), make("td", { class: "acts-cell" }, act));
  return { element, status, tries, why, act };
}

function fillMessage(row, one) {
  put(row.status, one.state === "failed" ? "given up" : one.state);
  row.status.dataset.kind = { sent: "good", failed: "bad", waiting: "rest" }[one.state];
  put(row.tries, String(one.tries));
  put(row.why, one.why);
  row.act.hidden = one.state === "sent" || !one.tries;
}

async function sendAgain(one) {
  await post(`webhooks/${one.number}/retry`);
  say("The message is sent again");
  await loadMessages();
}
