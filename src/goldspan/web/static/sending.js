// Speaking with the server. An answer is written down before it is sent, and crossed out when the
// server has taken it, or another one under its key; until then it is sent again. What the server
// finds faulty is sent again only when the worker says so, and stays where the worker sees it.

/** Where the campaign is among several on one server. */
export const base = document.documentElement.dataset.base ?? "";
const PATIENCE = 15000;
const PASSING = [0, 408, 425, 429];
const PAUSES = [1000, 2000, 4000, 8000, 15000, 30000];

/** A reply that is not good: `code` as in the API, "network" when there was none. */
export class Refused extends Error {
  constructor(status, code, message, wait = 0) {
    super(message);
    Object.assign(this, { status, code, wait });
  }

  /** Whether the same request may be answered later. */
  get passes() {
    return PASSING.includes(this.status) || this.status >= 500;
  }

  /** Whether nothing can be sent before the worker has come in anew. */
  get shutsOut() {
    return this.status === 401 || this.code === "csrf";
  }

  /** Whether another answer has been taken under the key of this one. */
  get isConflict() {
    return this.status === 409 && this.code === "conflict";
  }

  /** Whether the server has found the answer itself faulty. */
  get isFault() {
    return this.status === 422 && this.code === "invalid";
  }
}

export class Server {
  constructor(csrf, api = "/api/work") {
    Object.assign(this, { csrf, api });
    this.skew = 0;
  }

  /** The server's time, as the browser's clock may be wrong. */
  now() {
    return Date.now() + this.skew;
  }

  async post(path, body) {
    const stop = new AbortController();
    const timer = setTimeout(() => stop.abort(), PATIENCE);
    try {
      return await this.ask(path, body, stop.signal);
    } catch (error) {
      if (error instanceof Refused) throw error;
      throw new Refused(0, "network", "The server cannot be reached.");
    } finally {
      clearTimeout(timer);
    }
  }

  async ask(path, body, signal) {
    const reply = await fetch(`${base}${this.api}/${path}`, {
      method: "POST",
      headers: { "Content-Type": "application/json", "X-Goldspan-CSRF": this.csrf },
      body: JSON.stringify(body),
      cache: "no-store",
      credentials: "same-origin",
      signal,
    });
    const date = Date.parse(reply.headers.get("Date") ?? "");
    if (date) this.skew = date - Date.now();
    if (reply.ok) return reply.json();
    // A proxy's error page is no JSON, and says nothing to a worker.
    const said = (await reply.json().catch(() => null))?.error ?? {};
    const wait = 1000 * (Number(reply.headers.get("Retry-After")) || 0);
    throw new Refused(reply.status, said.code ?? "error", said.message ?? "", wait);
  }
}

/** Call `act` until it succeeds or is refused for good; `told(error)` hears of every wait. */
export async function insist(act, told, wake = wakeUp) {
  for (let turn = 0; ; turn += 1) {
    try {
      return await act();
    } catch (error) {
      if (!(error instanceof Refused) || !error.passes) throw error;
      told(error);
      const pause = PAUSES[Math.min(turn, PAUSES.length - 1)];
      // Not all who were told the same come back at the same moment.
      await wake(Math.max(error.wait * (1 + Math.random() / 4), pause * (0.75 + Math.random() / 2)));
    }
  }
}

/** Wait so many milliseconds, or less if the network comes back before. */
export function wakeUp(milliseconds) {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      removeEventListener("online", done);
      resolve();
    };
    const timer = setTimeout(done, milliseconds);
    addEventListener("online", done);
  });
}

export class Outbox {
  constructor(server, memory, told) {
    Object.assign(this, { server, memory, told });
  }

  /** How many will be sent without being asked for. */
  get size() {
    return this.memory.unsent().filter((entry) => !entry.faulty).length;
  }

  /** What the server did not take, with `why`, oldest first. */
  get refused() {
    return this.memory.unsent().filter((entry) => "why" in entry);
  }

  /** Send an answer, a skip or a report about a text; gives the server's reply. */
  async send(path, body, about) {
    const entry = { path, body, about, at: Date.now() };
    this.memory.keepUnsent(entry);
    return this.deliver(entry);
  }

  /** Send what an earlier visit has left; gives the replies, of whatever kind. */
  async sendRest() {
    const replies = [];
    for (const entry of this.memory.unsent().filter((one) => !one.faulty)) {
      replies.push(await this.deliver(entry).catch((error) => {
        if (!(error instanceof Refused) || error.shutsOut) throw error;
        return { status: "refused", message: error.message };
      }));
    }
    return replies;
  }

  forget(entry) {
    this.memory.dropUnsent(entry);
  }

  async deliver(entry) {
    try {
      const reply = await insist(() => this.server.post(entry.path, entry.body), this.told);
      this.memory.dropUnsent(entry);
      return reply;
    } catch (error) {
      if (error instanceof Refused && !error.shutsOut) this.settle(entry, error);
      throw error;
    }
  }

  /** Keep what was refused, for whatever reason: only a faulty skip or report is of no use. */
  settle(entry, error) {
    if (error.isConflict || (error.isFault && entry.path !== "answers")) this.memory.dropUnsent(entry);
    else this.memory.keepUnsent({ ...entry, why: error.message, faulty: error.isFault });
  }
}
