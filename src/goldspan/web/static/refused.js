// Answers that the server did not take: the worker sees each of them, with why, and can send it again.

import { button, make } from "./panels.js";

const ACTS = { skip: "You skipped this text.", flag: "You reported this text.", change: "You changed this answer." };

export class RefusedList {
  /** `show(about, body)` gives a text with labels on it, `send(entry)` sends once more. */
  constructor({ after, outbox, show, send }) {
    Object.assign(this, { outbox, show, send });
    this.box = make("details", { id: "refused", hidden: "" });
    after.after(this.box);
  }

  /** Show all but the answer of the text on the page, whose marks are there. */
  draw(openKey) {
    const entries = this.outbox.refused.filter((entry) => entry.body.key !== openKey);
    this.box.hidden = !entries.length;
    const title = `${entries.length === 1 ? "One answer was" : `${entries.length} answers were`} not taken`;
    const lead = "What you marked is kept in this browser: send it again later, or tell the requester what it says here.";
    this.box.replaceChildren(make("summary", {}, title), make("p", { class: "muted" }, lead), ...entries.map((entry) => this.row(entry, openKey)));
  }

  row(entry, openKey) {
    const { path, body, about, why } = entry;
    const remove = () => {
      this.outbox.forget(entry);
      this.draw(openKey);
      this.box.querySelector("summary").focus();
    };
    return make("blockquote", { class: "refused" },
      ...(about ? [this.show(about, body)] : []),
      make("p", { class: "muted" }, [ACTS[path], why].filter(Boolean).join(" ")),
      make("div", { class: "acts" }, button("Send again", () => this.send(entry)), button("Discard", remove, { class: "quiet" })));
  }
}
