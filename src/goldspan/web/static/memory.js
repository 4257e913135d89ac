// What this browser keeps for a worker: drafts, answers that are not yet received, settings.
// Where the browser allows no storage, all lives as long as the page.

const MOST_DRAFTS = 40;

export class Memory {
  /** `scope` names the worker and the campaign. */
  constructor(scope, storage = findStorage()) {
    this.prefix = `goldspan:${scope}:`;
    this.storage = storage;
    this.spare = new Map();
  }

  get lasts() {
    return this.storage !== null;
  }

  /** The draft of a task: {task, key, work, at}, or null. A new lease of the same text finds the
   *  old marks under a new key, as its answer is another one. */
  draft(task) {
    const kept = this.read(`draft:${digest(task)}`);
    if (!kept) return null;
    return kept.task === task.id ? kept : { ...kept, task: task.id, key: null };
  }

  keepDraft(task, key, work) {
    this.write(`draft:${digest(task)}`, { task: task.id, key, work, at: Date.now() });
    const drafts = this.names("draft:").map((name) => [this.read(name)?.at ?? 0, name]).sort((a, b) => a[0] - b[0]);
    drafts.slice(0, -MOST_DRAFTS).forEach(([, name]) => this.drop(name));
  }

  /** Whether a change of the storage, heard from another window, has dropped the draft of a task. */
  isDropped({ key, newValue }, task) {
    return newValue === null && key === `${this.prefix}draft:${digest(task)}`;
  }

  dropDraft(task) {
    this.drop(`draft:${digest(task)}`);
  }

  /** Answers that the server has not yet confirmed, oldest first; each has a key of its own, so that
   *  two windows never write over each other. */
  unsent() {
    return this.names("unsent:").map((name) => this.read(name)).filter(Boolean).sort((a, b) => a.at - b.at);
  }

  keepUnsent(entry) {
    this.write(`unsent:${entry.body.key}`, entry);
  }

  dropUnsent(entry) {
    this.drop(`unsent:${entry.body.key}`);
  }

  setting(name, otherwise) {
    return this.read(`setting:${name}`) ?? otherwise;
  }

  set(name, value) {
    this.write(`setting:${name}`, value);
  }

  read(name) {
    try {
      return JSON.parse(this.spare.get(name) ?? this.storage?.getItem(this.prefix + name) ?? "null");
    } catch {
      return null;
    }
  }

  write(name, value) {
    const text = JSON.stringify(value);
    try {
      if (!this.storage) throw new Error("no storage");
      this.storage.setItem(this.prefix + name, text);
      this.spare.delete(name);
    } catch {
      this.spare.set(name, text);
    }
  }

  drop(name) {
    this.spare.delete(name);
    this.storage?.removeItem(this.prefix + name);
  }

  names(kind) {
    const stored = this.storage ? Object.keys(this.storage) : [];
    const found = stored.filter((name) => name.startsWith(this.prefix)).map((name) => name.slice(this.prefix.length));
    return [...new Set([...found, ...this.spare.keys()])].filter((name) => name.startsWith(kind));
  }
}

/** A key that no other answer has. */
export function newKey() {
  if (globalThis.crypto?.randomUUID) return crypto.randomUUID();
  // Plain http on another host has no randomUUID.
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = (bytes[6] & 0x0f) | 0x40;
  bytes[8] = (bytes[8] & 0x3f) | 0x80;
  const hex = Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join("-");
}

// Two 32-bit hashes of the text: enough to tell a worker's own drafts apart.
function digest(task) {
  let [a, b] = [0xdeadbeef, 0x41c6ce57];
  const what = task.tokens.length ? task.tokens : task.text;
  for (const char of JSON.stringify([task.kind, what])) {
    const code = char.codePointAt(0);
    a = Math.imul(a ^ code, 2654435761);
    b = Math.imul(b ^ code, 1597334677);
  }
  return (a >>> 0).toString(36) + (b >>> 0).toString(36);
}

function findStorage() {
  try {
    const storage = globalThis.localStorage;
    storage.setItem("goldspan:try", "1");
    storage.removeItem("goldspan:try");
    return storage;
  } catch {
    return null;
  }
}
