// Frames from the server: a stream of events, and where no stream can be had, a question each
// second.

// Frames come each second; after this long without one the server does not answer.
const SILENCE_MS = 3500;
const POLL_MS = 1000;

// tell.live(live), tell.tenant(detail or null), tell.status("live" | "polling" | "lost", text)
export class Feed {
  constructor(tell) {
    this.tell = tell;
    this.turn = 0;
    this.heard_ms = Date.now();
    setInterval(() => this.listen(), 500);
  }

  // Follows everybody, and one tenant closer when a name is given.
  open(tenant) {
    this.turn += 1;
    this.tenant = tenant;
    this.heard_ms = Date.now();
    if (this.source) this.source.close();
    const path = tenant === null ? "/api/events" : `/api/events/${encodeURIComponent(tenant)}`;
    const source = (this.source = new EventSource(path));
    source.addEventListener("live", (event) => this.hear("live", JSON.parse(event.data)));
    source.addEventListener("tenant", (event) => this.tell.tenant(JSON.parse(event.data)));
    // A browser tries a broken stream again by itself, but not one that was refused.
    source.addEventListener("error", () => source.readyState === EventSource.CLOSED && source === this.source && this.poll(this.turn));
  }

  hear(kind, live) {
    this.heard_ms = Date.now();
    this.tell.status(kind);
    this.tell.live(live);
  }

  listen() {
    if (Date.now() - this.heard_ms > SILENCE_MS) this.tell.status("lost");
  }

  async poll(turn) {
    while (turn === this.turn) {
      try {
        const live = await ask("/api/live");
        const detail = this.tenant === null ? null : await ask(`/api/live/${encodeURIComponent(this.tenant)}`);
        if (turn !== this.turn) return;
        if (live !== null) this.hear("polling", live);
        if (this.tenant !== null) this.tell.tenant(detail);
      } catch {
        // The network's word for it helps nobody; the silence is told by `listen`.
      }
      await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    }
  }
}

export async function ask(path) {
  const answer = await fetch(path);
  return answer.ok ? answer.json() : null;
}
