// The ring: members on a circle in the order of the lap, and the token that goes round.

import { drawn, refill, say } from "./parts.js";
import { ring as ringInWords, stateOf, STATES } from "./words.js";

const WIDTH = 440, HEIGHT = 320, RADIUS = 122, FAR = 24;
const CROWDED = 16; // with more places than this only the neighbours are named
const LONGEST = 16; // letters of a name
const GLIDE = 120; // milliseconds in which the token covers most of its way
const calm = matchMedia("(prefers-reduced-motion: reduce)");

const round = (value) => Math.round(100 * value) / 100;
const point = (place, places, radius = RADIUS) => {
  const angle = (2 * Math.PI * place) / places - Math.PI / 2;
  return [round(WIDTH / 2 + radius * Math.cos(angle)), round(HEIGHT / 2 + radius * Math.sin(angle))];
};
const shorten = (name) => (name.length > LONGEST ? `${name.slice(0, LONGEST - 1)}…` : name);

const arc = (from, places, state) => {
  const [[x, y], [endX, endY]] = [point(from, places), point(from + 1, places)];
  const path = `M${x} ${y}A${RADIUS} ${RADIUS} 0 0 1 ${endX} ${endY}`;
  return drawn("path", { d: path, class: `arc ${state}` });
};
const chord = (from, to, places, state) => {
  const [[x, y], [endX, endY]] = [point(from, places), point(to, places)];
  return drawn("path", { d: `M${x} ${y}L${endX} ${endY}`, class: `arc ${state}` });
};

const label = (name, place, places, me) => {
  const [x, y] = point(place, places, RADIUS + FAR);
  const aside = (x - WIDTH / 2) / (RADIUS + FAR);
  const anchor = Math.abs(aside) < 0.2 ? "middle" : aside > 0 ? "start" : "end";
  return drawn("text", { x: round(x - 6 * Math.sign(aside) * (anchor !== "middle")), y: y + 4.5, "text-anchor": anchor, class: me ? "me-name" : "" }, shorten(name));
};

const build = (status) => {
  const { members, order } = status;
  const places = order.length;
  const states = new Map(status.links.map((link) => [link.name, stateOf(link)]));
  const memberAt = (place) => members[order[place % places]];
  const parts = [], adjacent = new Set();
  for (let place = 0; place < places; place += 1) {
    const [one, other] = [memberAt(place), memberAt(place + 1)];
    const neighbour = one.me ? other : other.me ? one : null;
    if (neighbour) adjacent.add(neighbour.name);
    parts.push(arc(place, places, neighbour ? (states.get(neighbour.name) ?? "") : ""));
  }
  const own = order.findIndex((number) => members[number].me);
  for (const [name, state] of states)
    if (!adjacent.has(name)) parts.unshift(chord(own, order.findIndex((number) => members[number].name === name), places, state));
  const size = places > 60 ? 4 : places > 30 ? 6 : 9;
  order.forEach((number, place) => {
    const member = members[number];
    const [cx, cy] = point(place, places);
    const again = order.indexOf(number) < place;
    const state = states.has(member.name) ? `, link ${STATES[states.get(member.name)]}` : "";
    const circle = drawn("circle", { cx, cy, r: size, class: `place${member.me ? " me" : ""}${again ? " again" : ""}` });
    circle.append(drawn("title", {}, `${member.name}${member.me ? ", this site" : ""}${state}${again ? ", met again" : ""}`));
    parts.push(circle);
    if (places <= CROWDED || member.me || states.has(member.name)) parts.push(label(member.name, place, places, member.me));
  });
  return parts;
};

export class Ring {
  constructor(node) {
    this.still = drawn("g");
    this.token = drawn("circle", { id: "token", class: "token", r: 8 });
    this.title = drawn("title", { id: "ring-words" });
    node.append(drawn("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-labelledby": "ring-words" }, this.title, this.still, this.token));
    this.at = null; // where the token is drawn, in places
    this.moving = false;
  }

  show(status) {
    say(this.title, ringInWords(status));
    refill(this.still, [status.members, status.order, status.links.map(stateOf)], () => build(status));
    const known = status.token_here || (status.on_cycle && status.lap_seconds > 0);
    this.token.toggleAttribute("hidden", !known || status.doing === "finished");
    this.token.classList.toggle("estimated", !status.token_here);
    this.token.dataset.place = status.token_place;
    this.places = status.order.length;
    this.goal = status.token_place;
    if (this.at === null || calm.matches) this.put(this.goal);
    else if (!this.moving && this.at !== this.goal) {
      this.moving = true;
      this.before = performance.now();
      requestAnimationFrame((now) => this.glide(now));
    }
  }

  put(place) {
    this.at = place;
    const [x, y] = point(place, this.places);
    this.token.setAttribute("cx", x);
    this.token.setAttribute("cy", y);
  }

  // Always onward, as the token goes.
  glide(now) {
    const away = (((this.goal - this.at) % this.places) + this.places) % this.places;
    if (away < 0.01 || away > this.places - 0.01) {
      this.put(this.goal);
      this.moving = false;
      return;
    }
    const part = 1 - Math.exp(-Math.max(now - this.before, 0) / GLIDE);
    this.before = now;
    this.put((this.at + part * away) % this.places);
    requestAnimationFrame((next) => this.glide(next));
  }
}
