// The files to take away.

import { ask, attempt, base, button, find, listen, make, note, say } from "./desk.js";

const named = () => (find("names").checked ? "?names=true" : "");

listen(() => {});
find("names").addEventListener("change", () => {
  for (const look of document.querySelectorAll("a.look")) look.href = `${base}/api/desk/report.html${named()}`;
});
attempt(async () => {
  const files = await ask("exports");
  find("files").replaceChildren(...files.filter(({ layer }) => !layer).map(row));
  const layers = [...new Set(files.map(({ layer }) => layer))].filter(Boolean);
  find("files").after(...layers.flatMap((name) => [make("h2", { dir: "auto" }, name), make("ul", { class: "files card" }, ...files.filter(({ layer }) => layer === name).map(row))]));
});

function row({ name, what }) {
  const more = name === "report.html" ? [make("a", { class: "button look", href: `${base}/api/desk/report.html`, target: "_blank", rel: "noopener" }, "View")] : [];
  const get = button("Download", () => attempt(() => download(name, get)), { "aria-label": `Download ${name}` });
  return make("li", {}, make("div", {}, make("code", {}, name), make("p", { class: "sub" }, what)), make("div", { class: "tools" }, ...more, get));
}

async function download(name, press) {
  press.setAttribute("aria-disabled", "true");
  say(`${name} is being created`);
  try {
    const reply = await ask(`exports/${encodeURIComponent(name)}${named()}`, { raw: true });
    const url = URL.createObjectURL(await reply.blob());
    make("a", { href: url, download: name }).click();
    setTimeout(() => URL.revokeObjectURL(url), 60000);
    // What the format has no place for, found by reading the file again.
    const lost = JSON.parse(reply.headers.get("X-Not-Held") || "[]");
    const done = named() ? `${name} is downloaded; it names the workers.` : `${name} is downloaded.`;
    note([done, ...lost.map((what) => `The format cannot hold: ${what}.`)].join(" "), "good");
  } finally {
    press.removeAttribute("aria-disabled");
  }
}
