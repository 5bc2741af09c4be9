// Server-sent events, read with fetch, since EventSource does not say why it was refused.
//
//   connecting ──200──► live ──ended, silent──► waiting ──after 1, 2, 4 … 30 s──► connecting
//       └──refused──────────────────────────────► waiting, and says why
//   hidden for some minutes ──► resting ──seen again──► connecting

const SILENT_MS = 40000; // the scheduler says something every 15 s
const HIDDEN_MS = 300000;
const FIRST_MS = 1000;
const LONGEST_MS = 30000;
const MAX_EVENT = 1 << 24;

export class Stream {
  // `heard(event, data)`; `told(state, text)` with the states above, or "refused".
  constructor(url, heard, told) {
    this.url = url;
    this.heard = heard;
    this.told = told;
    this.wait = FIRST_MS;
    this.timer = 0;
    this.abort = null;
    document.addEventListener("visibilitychange", () => this.seen());
  }

  async open() {
    clearTimeout(this.timer);
    this.told("connecting", "Connecting…");
    const abort = (this.abort = new AbortController());
    let silent = setTimeout(() => abort.abort(), SILENT_MS);
    let why = "The connection has ended";
    let state = "waiting";
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
    } catch {
      why = abort.signal.aborted ? "Nothing was heard for a while" : "The scheduler cannot be reached";
    }
    clearTimeout(silent);
    if (this.abort === abort) this.again(state, why);
  }

  take(text) {
    const parts = text.split("\n\n");
    const rest = parts.pop();
    if (rest.length > MAX_EVENT) throw new Error("too long");
    for (const part of parts) {
      const lines = part.split("\n");
      const name = lines.find((line) => line.startsWith("event: "));
      const data = lines.find((line) => line.startsWith("data: "));
      if (!name || !data) continue;
      this.wait = FIRST_MS;
      this.heard(name.slice(7), JSON.parse(data.slice(6)));
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
    const abort = this.abort;
    this.abort = null;
    abort?.abort();
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
  if (response.ok || (response.status === 404 && isJson)) return response.json();
  throw new Error(await reason(response));
}
