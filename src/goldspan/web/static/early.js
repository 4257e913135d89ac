// The first question, asked as soon as this file is here: what shows the reply is still on its way.

import { Memory } from "./memory.js";
import { Server } from "./sending.js";

export const page = JSON.parse(document.getElementById("page").textContent);
export const memory = new Memory(page.scope);
export const server = new Server(page.csrf, page.api);

// What an earlier visit has left goes first: it may be the answer to the task that would be given.
let asked = memory.unsent().length ? null : server.post("next", {});
asked?.catch(() => {}); // heard of where the reply is taken

/** What is to be done next; the first time it is asked already. */
export function askNext() {
  const reply = asked ?? server.post("next", {});
  asked = null;
  return reply;
}
