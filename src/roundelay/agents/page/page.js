// Brings what the agent tells onto the page.

import { Chart } from "./chart.js";
import { Connection } from "./connection.js";
import { showJournal, showLinks, showModel, showPrivacy } from "./panels.js";
import { byId, element, refill, say } from "./parts.js";
import { Ring } from "./ring.js";
import * as words from "./words.js";

// The cookie has the token now; it need not stand in the address and in the browser's history.
history.replaceState(null, "", "/");

const ring = new Ring(byId("ring"));
const chart = new Chart(byId("chart"), byId("legend"), byId("chart-caption"));

let status = null; // the last one heard, while the line is open
let asked = false; // for the model
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

const showCourse = () => {
  const { stage, part } = status.progress;
  const at = words.STAGES.findIndex(([name]) => name === stage);
  byId("course").hidden = at < 0; // it is over
  const state = (place) => (place < at ? "behind" : place === at ? "now" : "ahead");
  refill(byId("stages"), [at], () =>
    words.STAGES.map(([, said], place) => element("li", { "data-state": state(place), ...(place === at ? { "aria-current": "step" } : {}) }, said)),
  );
  byId("progress").value = part;
  say(byId("left"), words.left(status));
};

// The words of the method are shown to whoever has asked for them before, too.
const method = byId("method");
const remembered = (() => {
  try {
    return localStorage;
  } catch {
    return null; // a browser that keeps nothing
  }
})();
const showMethod = () => document.body.classList.toggle("method", method.checked);
method.checked = remembered?.getItem("method") === "shown";
method.addEventListener("change", () => {
  remembered?.setItem("method", method.checked ? "shown" : "hidden");
  showMethod();
});
showMethod();

// The model comes once, when there is one.
const fetchModel = async () => {
  asked = true;
  try {
    const answer = await fetch("/model.json");
    if (!answer.ok) throw new Error(answer.statusText);
    showModel(await answer.json());
    byId("model").hidden = false;
  } catch {
    asked = false; // the next status asks again
  }
};

// Read out is only what lasts: paused, over or running.
const announce = () => {
  const lasts = ["paused", "finished", "failed"].includes(status.doing);
  say(byId("announcement"), lasts ? words.doing(status, 0) : "The agent takes part in the ring.");
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
  say(byId("fits"), words.fits(status));
  say(byId("outcome"), status.has_model ? words.outcome(status) : "");
  say(byId("run"), words.run(status));
  showDoing();
  showCourse();
  if (status.has_model && !asked) fetchModel();
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
