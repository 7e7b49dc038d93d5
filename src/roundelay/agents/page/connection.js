// The line to the agent: opened again, with longer and longer pauses, whenever it is lost.

const FIRST = 500, LONGEST = 15000; // milliseconds

export class Connection {
  // `heard` is given each status; `lost` is told why, and in how many seconds the next try is.
  constructor(heard, lost) {
    this.heard = heard;
    this.lost = lost;
    this.pause = FIRST;
    this.open();
  }

  open() {
    const events = new EventSource("/live");
    events.onmessage = (event) => {
      this.pause = FIRST;
      this.heard(JSON.parse(event.data));
    };
    events.onerror = async () => {
      events.close(); // the browser's own tries would not get slower
      const wait = this.pause;
      this.pause = Math.min(2 * this.pause, LONGEST);
      setTimeout(() => this.open(), wait);
      this.lost("", wait / 1000);
      const refusal = await this.refusal();
      if (refusal) this.lost(refusal, wait / 1000);
    };
  }

  // An agent that runs but refuses this page says why.
  async refusal() {
    try {
      const answer = await fetch("/status.json");
      return answer.status === 403 ? await answer.text() : "";
    } catch {
      return "";
    }
  }
}
