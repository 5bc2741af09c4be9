// Server-sent events, read with fetch, since EventSource does not say why it was refused.
//
//   connecting ──200──► live ──ended, silent, not understood──► waiting ──after 1, 2, 4 … 30 s──► connecting
//       └──refused──────────────────────────────────────────────► waiting, and says why
//   live, but of a replica that stands by ──after a while──► connecting
//   hidden for some minutes ──► resting ──seen again──► connecting

const SILENT_MS = 40000; // the scheduler says something every 15 s
const HIDDEN_MS = 300000;
const FIRST_MS = 1000;
const LONGEST_MS = 30000;
const STEADY_MS = 10000; // a connection that lasted so long may be had again at once
const MAX_EVENT = 1 << 24;

class NotUnderstood extends Error {}

export class Stream {
  // `heard(event, data)`; `told(state, text)` with the states above, or "refused".
  constructor(url, heard, told) {
    this.url = url;
    this.heard = heard;
    this.told = told;
    this.wait = FIRST_MS;
    this.timer = 0;
    this.renewal = 0;
    this.abort = null;
    document.addEventListener("visibilitychange", () => this.seen());
  }

  async open() {
    clearTimeout(this.timer);
    clearTimeout(this.renewal);
    this.told("connecting", "Connecting…");
    const abort = (this.abort = new AbortController());
    let silent = setTimeout(() => abort.abort(), SILENT_MS);
    let why = "The connection has ended";
    let state = "waiting";
    const began = performance.now();
    try {
      const response = await fetch(this.url, { signal: abort.signal, cache: "no-store", headers: { Accept: "text/event-stream" } });
      if (response.status === 200 && response.body) {
        const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
        let rest = "";
        for (;;) {
          const { value, done } = await reader.read();
          if (done) break;
          clearTimeout(silent);
          silent = setTimeout(() => abort.abort(), SILENT_MS);
          rest = this.take(rest + value);
        }
      } else {
        state = "refused";
        why = await reason(response);
      }
    } catch (error) {
      if (error instanceof NotUnderstood) why = error.message;
      else why = abort.signal.aborted ? "Nothing was heard for a while" : "The scheduler cannot be reached";
    }
    clearTimeout(silent);
    abort.abort(); // what is left of an answer that was not understood
    if (performance.now() - began > STEADY_MS) this.wait = FIRST_MS;
    if (this.abort === abort) this.again(state, why);
  }

  take(text) {
    const parts = text.split("\n\n");
    const rest = parts.pop();
    if (rest.length > MAX_EVENT) throw new NotUnderstood("What is told is too long");
    for (const part of parts) {
      const lines = part.split("\n");
      const name = lines.find((line) => line.startsWith("event: "));
      const data = lines.find((line) => line.startsWith("data: "));
      if (!name || !data) continue;
      try {
        this.heard(name.slice(7), JSON.parse(data.slice(6)));
      } catch (error) {
        console.error(error);
        throw new NotUnderstood(`What is told is not understood: ${error.message}`);
      }
    }
    return rest;
  }

  again(state, why) {
    this.abort = null;
    if (document.hidden) return this.rest();
    const wait = this.wait * (0.75 + Math.random() / 2);
    this.wait = Math.min(LONGEST_MS, this.wait * 2);
    this.told(state, `${why.replace(/[.;]$/, "")}; trying again in ${Math.ceil(wait / 1000)} s`);
    this.timer = setTimeout(() => this.open(), wait);
  }

  // Begins anew after a while, since another replica may answer then; 0: does not.
  renew(ms) {
    clearTimeout(this.renewal);
    if (!ms) return;
    this.renewal = setTimeout(() => {
      this.leave();
      this.open();
    }, ms);
  }

  leave() {
    const { abort } = this;
    this.abort = null; // so that its end is nobody's concern
    abort?.abort();
  }

  seen() {
    clearTimeout(this.resting);
    if (document.hidden) this.resting = setTimeout(() => this.rest(), HIDDEN_MS);
    else if (!this.abort) {
      this.wait = FIRST_MS;
      this.open();
    }
  }

  rest() {
    clearTimeout(this.timer);
    clearTimeout(this.renewal);
    this.leave();
    this.told("resting", "Resting while nobody looks");
  }
}

// A sentence for a refusal.
export async function reason(response) {
  let said = "";
  try {
    said = (await response.text()).slice(0, 2000);
    if (said.startsWith("{")) said = JSON.parse(said).message ?? "";
  } catch {
    said = "";
  }
  said = said.trim();
  if (response.status === 401) return said && said !== "Unauthorized" ? said : "Your token is not accepted (any more): open the page anew";
  if (response.status === 403) return `You may not see this: ${said}`;
  if (response.status === 429) return said || "Too many pages are open";
  return said || `HTTP ${response.status}`;
}

export async function fetched(url) {
  let response;
  try {
    response = await fetch(url, { cache: "no-store" });
  } catch {
    throw new Error("The scheduler cannot be reached");
  }
  const isJson = (response.headers.get("Content-Type") ?? "").startsWith("application/json");
  if (!response.ok && !(response.status === 404 && isJson)) throw new Error(await reason(response));
  try {
    return await response.json();
  } catch {
    throw new Error("The answer did not come whole: ask again");
  }
}
