// The links, the privacy meter and the journal.

import { byId, element, refill } from "./parts.js";
import { journal, known, leak as leakInWords, measured, seconds, stateOf, STATES, trouble, whole } from "./words.js";

const cell = (head, content, attributes = {}) => element("td", { "data-head": head, ...attributes }, element("span", {}, content));

const linkRow = (link, status) => {
  const state = stateOf(link, status);
  const badge = element("span", { class: `badge ${state}` }, STATES[state]);
  return element(
    "tr",
    { "data-neighbour": link.name },
    element("th", { scope: "row", "data-head": "Neighbour" }, element("span", {}, link.name)),
    cell("State", badge),
    cell("Round trip", link.milliseconds ? seconds(link.milliseconds / 1000) : "–", { class: "number" }),
    cell("Times broken", whole(link.broken), { class: "number" }),
    cell("Trouble", trouble(link, status) || "none"),
  );
};

export const showLinks = (status) =>
  refill(byId("links"), [status.links, status.epoch, status.doing], () => status.links.map((link) => linkRow(link, status)));

const meter = (leak) => {
  const part = known(leak);
  const percent = Math.round(100 * part);
  const bar = element("div");
  bar.style.width = `${percent}%`;
  const kind = part < 0.5 ? "guess" : part < 0.9 ? "partly" : "known";
  const words = `${percent} % of the way from a guess to exactly known`;
  const about = { role: "meter", "aria-label": leak.quantity, "aria-valuemin": 0, "aria-valuemax": 100, "aria-valuenow": percent, "aria-valuetext": words };
  return element("div", { class: `meter ${kind}`, ...about }, bar);
};

const leakParts = (leak) =>
  element(
    "div",
    { class: "leak" },
    element("p", { class: "quantity" }, leak.quantity),
    meter(leak),
    element("p", { class: "ends", "aria-hidden": "true" }, element("span", {}, "a guess"), element("span", {}, "exactly known")),
    element("p", { class: "attack" }, leakInWords(leak)),
  );

export const showPrivacy = (status) =>
  refill(byId("privacy"), [status.privacy, status.sealed], () => {
    const { privacy } = status;
    if (privacy === null) return [element("p", { class: "none" }, "Not measured yet.")];
    return [
      element("p", {}, privacy.sentence),
      element("p", { class: "attack" }, measured(status)),
      ...privacy.leaks.map(leakParts),
    ];
  });

export const showJournal = (status) => {
  const sentences = journal(status);
  refill(byId("journal"), sentences, () => sentences.map((text) => element("p", {}, text)));
};
