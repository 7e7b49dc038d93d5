// The ring: members on a circle in the order of the lap, and the token that goes round.

import { drawn, refill, say } from "./parts.js";
import { ring as ringInWords, stateOf, STATES } from "./words.js";

const ROOM = 38; // above and below the circle, for names
const FAR = 18; // from the circle to a name
const LETTER = 7.4, BOLD = 8.4; // how wide a letter is, about
const CROWDED = 16; // with more places than this only this site is named
const GLIDE = 120; // milliseconds in which the token covers most of its way
const calm = matchMedia("(prefers-reduced-motion: reduce)");

const clamp = (value, least, most) => Math.min(Math.max(value, least), most);
const round = (value) => Math.round(100 * value) / 100;

// The middle of a long name is left out: names of one ring may begin alike.
const shorten = (name, letters) => {
  if (name.length <= letters) return name;
  const end = Math.max(Math.floor(0.4 * letters), 1);
  return `${name.slice(0, Math.max(letters - end - 1, 1))}…${name.slice(-end)}`;
};

// The circle, as large as there is room for it and for the names beside it.
class Circle {
  constructor(width, places) {
    this.width = clamp(width, 240, 480);
    this.radius = clamp(0.3 * this.width - 15, 60, 125);
    this.height = 2 * (this.radius + ROOM);
    this.places = places;
  }

  point(place, radius = this.radius) {
    const angle = (2 * Math.PI * place) / this.places - Math.PI / 2;
    return [round(this.width / 2 + radius * Math.cos(angle)), round(this.height / 2 + radius * Math.sin(angle))];
  }

  arc(from, state) {
    const [start, end] = [this.point(from), this.point(from + 1)];
    return drawn("path", { d: `M${start.join(" ")}A${this.radius} ${this.radius} 0 0 1 ${end.join(" ")}`, class: `arc ${state}` });
  }

  chord(from, to, state) {
    return drawn("path", { d: `M${this.point(from).join(" ")}L${this.point(to).join(" ")}`, class: `arc ${state}` });
  }

  name(member, place) {
    const [x, y] = this.point(place, this.radius + FAR);
    const aside = (x - this.width / 2) / this.radius;
    const anchor = Math.abs(aside) < 0.2 ? "middle" : aside > 0 ? "start" : "end";
    const free = anchor === "middle" ? this.width : anchor === "start" ? this.width - x : x;
    const words = shorten(member.name, Math.floor(free / (member.me ? BOLD : LETTER)));
    return drawn("text", { x, y: round(y + 4.5), "text-anchor": anchor, class: member.me ? "me-name" : "" }, words);
  }
}

const build = (status, circle) => {
  const { members, order } = status;
  const { places } = circle;
  const states = new Map(status.links.map((link) => [link.name, stateOf(link, status)]));
  const memberAt = (place) => members[order[place % places]];
  const parts = [], adjacent = new Set();
  for (let place = 0; place < places; place += 1) {
    const [one, other] = [memberAt(place), memberAt(place + 1)];
    const neighbour = one.me ? other : other.me ? one : null;
    if (neighbour) adjacent.add(neighbour.name);
    parts.push(circle.arc(place, neighbour ? (states.get(neighbour.name) ?? "") : ""));
  }
  const placeOf = (name) => order.findIndex((number) => members[number].name === name);
  for (const [name, state] of states)
    if (!adjacent.has(name)) parts.unshift(circle.chord(placeOf(status.site), placeOf(name), state));
  const size = places > 60 ? 4 : places > 30 ? 6 : 9;
  order.forEach((number, place) => {
    const member = members[number];
    const [cx, cy] = circle.point(place);
    const again = order.indexOf(number) < place;
    const state = states.has(member.name) ? `, link ${STATES[states.get(member.name)]}` : "";
    const words = `${member.name}${member.me ? ", this site" : ""}${state}${again ? ", met again" : ""}`;
    const look = `place${member.me ? " me" : ""}${again ? " again" : ""}`;
    parts.push(drawn("circle", { cx, cy, r: size, class: look }, drawn("title", {}, words)));
    if (places <= CROWDED || member.me) parts.push(circle.name(member, place));
  });
  return parts;
};

export class Ring {
  constructor(node) {
    this.node = node;
    this.still = drawn("g");
    this.token = drawn("circle", { id: "token", class: "token", r: 8 });
    this.title = drawn("title", { id: "ring-words" });
    this.drawing = drawn("svg", { role: "img", "aria-labelledby": "ring-words" }, this.title, this.still, this.token);
    node.append(this.drawing);
    this.at = null; // where the token is drawn, in places
    this.moving = false;
    new ResizeObserver(() => this.draw()).observe(node);
  }

  show(status) {
    this.status = status;
    say(this.title, ringInWords(status));
    this.draw();
    const known = status.token_here || (status.on_cycle && status.lap_seconds > 0);
    this.token.toggleAttribute("hidden", !known || status.doing === "finished" || status.doing === "failed");
    this.token.classList.toggle("estimated", !status.token_here);
    this.token.dataset.place = status.token_place;
    if (this.at === null || calm.matches) this.put(status.token_place);
    else if (!this.moving && this.at !== status.token_place) {
      this.moving = true;
      this.before = performance.now();
      requestAnimationFrame((now) => this.glide(now));
    }
  }

  draw() {
    const { status } = this;
    if (!status || !this.node.clientWidth) return;
    this.circle = new Circle(this.node.clientWidth, status.order.length);
    const { width, height } = this.circle;
    refill(this.still, [status.members, status.order, status.links.map((link) => stateOf(link, status)), width], () => {
      this.drawing.setAttribute("viewBox", `0 0 ${width} ${height}`);
      this.drawing.setAttribute("width", width);
      return build(status, this.circle);
    });
    if (this.at !== null) this.put(this.at);
  }

  put(place) {
    this.at = place;
    const [x, y] = this.circle.point(place);
    this.token.setAttribute("cx", x);
    this.token.setAttribute("cy", y);
  }

  // Always onward, as the token goes.
  glide(now) {
    const { places } = this.circle;
    const goal = this.status.token_place;
    const away = (((goal - this.at) % places) + places) % places;
    if (away < 0.01 || away > places - 0.01) {
      this.put(goal);
      this.moving = false;
      return;
    }
    const part = 1 - Math.exp(-Math.max(now - this.before, 0) / GLIDE);
    this.before = now;
    this.put((this.at + part * away) % places);
    requestAnimationFrame((next) => this.glide(next));
  }
}
