// Speaking with the server. An answer is written down before it is sent, and crossed out when the
// server has said what became of it; until then it is sent again, under the same key.

const PATIENCE = 15000;
const PAUSES = [1000, 2000, 4000, 8000, 15000, 30000];

/** A reply that is not good: `code` as in the API, "network" when there was none. */
export class Refused extends Error {
  constructor(status, code, message, wait = 0) {
    super(message);
    Object.assign(this, { status, code, wait });
  }

  /** Whether the same request may be answered later. */
  get passes() {
    return this.status === 0 || this.status === 429 || this.status >= 500;
  }
}

export class Server {
  constructor(csrf) {
    this.csrf = csrf;
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
    const reply = await fetch(`/api/work/${path}`, {
      method: "POST",
      headers: { "Content-Type": "application/json", "X-Karat-CSRF": this.csrf },
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
      await wake(Math.max(error.wait, pause * (0.75 + Math.random() / 2)));
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

  get size() {
    return this.memory.unsent().length;
  }

  /** Send an answer, a skip or a report; gives the server's reply. */
  async send(path, body) {
    const entry = { path, body, at: Date.now() };
    this.memory.keepUnsent(entry);
    return this.deliver(entry);
  }

  /** Send what an earlier visit has left; gives the replies, of whatever kind. */
  async sendRest() {
    const replies = [];
    for (const entry of this.memory.unsent()) {
      replies.push(await this.deliver(entry).catch((error) => {
        if (keeps(error)) throw error;
        return { status: "refused", message: error.message };
      }));
    }
    return replies;
  }

  async deliver(entry) {
    try {
      const reply = await insist(() => this.server.post(entry.path, entry.body), this.told);
      this.memory.dropUnsent(entry);
      return reply;
    } catch (error) {
      if (!keeps(error)) this.memory.dropUnsent(entry);
      throw error;
    }
  }
}

// Without a session nothing can be said about an answer: it waits for the next one.
function keeps(error) {
  return !(error instanceof Refused) || error.status === 401 || error.code === "csrf";
}
