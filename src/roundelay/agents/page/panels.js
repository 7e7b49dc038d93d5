// The links, the privacy meter, the journal and the model.

import { byId, drawing, element, refill } from "./parts.js";
import { journal, known, knownInWords, leak as leakInWords, measured, quantity, seconds, stateOf, STATES, trouble, whole } from "./words.js";

const cell = (head, content, attributes = {}) => element("td", { "data-head": head, ...attributes }, element("span", {}, content));

const linkRow = (link, status) => {
  const state = stateOf(link, status);
  const badge = element("span", { class: `badge ${state}` }, STATES[state]);
  return element(
    "tr",
    { "data-neighbour": link.name },
    element("th", { scope: "row", "data-head": "Site" }, element("span", {}, link.name)),
    cell("Connection", badge),
    cell("Round trip", link.milliseconds ? seconds(link.milliseconds / 1000) : "–", { class: "number of-method" }),
    cell("Times broken", whole(link.broken), { class: "number of-method" }),
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
  const about = { role: "meter", "aria-label": quantity(leak), "aria-valuemin": 0, "aria-valuemax": 100, "aria-valuenow": percent, "aria-valuetext": words };
  return element("div", { class: `meter ${kind}`, ...about }, bar);
};

const leakParts = (leak) =>
  element(
    "div",
    { class: "leak" },
    element("p", { class: "quantity" }, quantity(leak)),
    meter(leak),
    element("p", { class: "ends", "aria-hidden": "true" }, element("span", {}, "they can only guess"), element("span", {}, "they know it exactly")),
    element("p", { class: "attack" }, knownInWords(leak)),
    element("p", { class: "attack of-method" }, leakInWords(leak)),
  );

export const showPrivacy = (status) =>
  refill(byId("privacy"), [status.privacy, status.sealed], () => {
    const { privacy } = status;
    if (privacy === null) return [element("p", { class: "none" }, "Nothing has been measured yet.")];
    return [
      element("p", {}, privacy.sentence),
      element("p", { class: "attack of-method" }, measured(status)),
      ...privacy.leaks.map(leakParts),
    ];
  });

export const showJournal = (status) => {
  const sentences = journal(status);
  refill(byId("journal"), sentences, () => sentences.map((text) => element("p", {}, text)));
};

const modelTable = ({ header, rows, words, caption }) => {
  const number = (place) => (place < words ? {} : { class: "number" });
  const heads = header.map((head, place) => (head ? element("th", { scope: "col", ...number(place) }, head) : element("td")));
  const row = (cells) => cells.map((cell, place) => (place === 0 ? element("th", { scope: "row" }, cell) : element("td", number(place), cell)));
  const table = element(
    "table",
    {},
    element("caption", { class: "unseen" }, "Coefficients"),
    element("thead", {}, element("tr", {}, ...heads)),
    element("tbody", {}, ...rows.map((cells) => element("tr", {}, ...row(cells)))),
  );
  const scrolls = element("div", { class: "wide", tabindex: "0", role: "region", "aria-label": "Coefficients" }, table);
  return element("div", header.length > 4 ? { class: "whole" } : {}, scrolls, element("p", { class: "caption" }, caption));
};

const figure = ({ title, drawing: drawn, caption }) =>
  element("figure", {}, element("h3", {}, title), drawing(drawn), element("figcaption", {}, element("p", { class: "caption" }, caption)));

// The table first, then the pictures; the report has all of it in one file.
export const showModel = (model) =>
  refill(byId("model-parts"), model, () => [
    ...model.notes.map((note) => element("p", { class: "note" }, note)),
    element("dl", { class: "facts" }, ...model.facts.map(([name, said]) => element("div", {}, element("dt", {}, name), element("dd", {}, said)))),
    element("div", { class: "model-parts" }, modelTable(model.table), ...model.pictures.map(figure)),
    ...(model.has_report ? [element("p", { class: "caption" }, element("a", { href: "/report.html", target: "_blank", rel: "noopener" }, "Open the whole report"), ", in one file that can be saved and printed.")] : []),
  ]);
