// The audit: items are drawn, and what those say that were checked.

import { ask, attempt, count, find, listen, many, page, post, put, say, showCertificate } from "./desk.js";

find("draw")?.addEventListener("submit", (event) => { event.preventDefault(); attempt(draw); });
listen(() => attempt(load));

async function load() {
  show(await ask("audit"));
}

async function draw() {
  show(await post("audit/draw", { n: Number(find("n").value) }));
  say("The items are drawn");
  find("check").focus();
}

function show({ drawn, open, certificate }) {
  put("sum", drawn ? `${count(drawn - open)} of ${many(drawn, "drawn item")} done` : "No items are drawn yet.");
  find("check").hidden = !open;
  if (!page.reviewer) showCertificate(certificate);
}
