// Brings what the agent tells onto the page.

import { Chart } from "./chart.js";
import { Connection } from "./connection.js";
import { showJournal, showLinks, showPrivacy } from "./panels.js";
import { byId, element, refill, say } from "./parts.js";
import { Ring } from "./ring.js";
import * as words from "./words.js";

// The cookie has the token now; it need not stand in the address and in the browser's history.
history.replaceState(null, "", "/");

const ring = new Ring(byId("ring"));
const chart = new Chart(byId("chart"), byId("legend"), byId("chart-caption"));

let status = null; // the last one heard, while the line is open
let visits = -1, moved = 0; // when the token was last seen to do something

const clock = () => new Date().toLocaleTimeString("en-GB");

const showTroubles = (sentences) =>
  refill(byId("troubles"), sentences, () => sentences.map((text) => element("p", { class: "banner" }, text)));

const showDoing = () => {
  if (!status) return;
  const quiet = (performance.now() - moved) / 1000;
  say(byId("doing"), words.doing(status, quiet));
  say(byId("ring-caption"), words.place(status, quiet));
};

// Read out is only what lasts: paused, finished or running.
const announce = () => {
  const lasting = status.doing === "paused" || status.doing === "finished" ? words.doing(status, 0) : "The agent takes part in the ring.";
  say(byId("announcement"), lasting);
};

const heard = (latest) => {
  status = latest;
  if (status.visits !== visits) [visits, moved] = [status.visits, performance.now()];
  byId("main").hidden = false;
  byId("main").classList.remove("stale");
  const connection = byId("connection");
  connection.dataset.state = "live";
  say(connection, "Live");
  document.title = `${status.site}: ${status.doing}`;
  document.body.dataset.doing = status.doing;
  document.body.classList.toggle("sealed", status.sealed);
  say(byId("site"), status.site);
  say(byId("run"), words.run(status));
  showDoing();
  announce();
  showTroubles(words.troubles(status));
  const last = status.residuals.at(-1);
  say(byId("hop"), words.whole(words.hopOf(status)));
  say(byId("visits-name"), status.sealed ? "Questions answered" : "Visits here");
  say(byId("visits"), words.whole(status.visits));
  say(byId("lap"), words.seconds(status.lap_seconds));
  say(byId("unrest"), last ? words.small(last.unrest) : "not yet");
  ring.show(status);
  chart.show(status);
  showLinks(status);
  showPrivacy(status);
  showJournal(status);
};

let since = "";
const lost = (why, wait) => {
  if (status) since = clock();
  status = null;
  byId("main").classList.add("stale");
  const connection = byId("connection");
  connection.dataset.state = "lost";
  say(connection, `Connection lost, next try in ${words.seconds(wait)}`);
  const old = since ? ` What you see is from ${since}.` : "";
  say(byId("doing"), "What the agent is doing is not known.");
  showTroubles([`The connection to the agent is lost.${old} ${why || "It may have ended: look whether it runs. This page tries again by itself."}`]);
};

setInterval(showDoing, 1000); // also when nothing comes any more
new Connection(heard, lost);
