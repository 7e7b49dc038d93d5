// What a status means, in words.

const BRISK = 2; // seconds: what changes more often than this is not told step by step

const figures = new Intl.NumberFormat("en-GB", { useGrouping: true });
const SUPERSCRIPTS = "⁰¹²³⁴⁵⁶⁷⁸⁹";

export const whole = (value) => figures.format(value);
export const power = (exponent) =>
  "10" + [...String(exponent)].map((digit) => (digit === "-" ? "⁻" : SUPERSCRIPTS[Number(digit)])).join("");

// Two digits, and powers of ten as people write them.
export const small = (value) => {
  if (value === null) return "unknown";
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 0.01 && size < 10000) return String(Number(value.toPrecision(2)));
  const [mantissa, exponent] = value.toExponential(1).split("e");
  const shortened = Number(mantissa);
  return (shortened === 1 ? "" : `${shortened} · `) + power(Number(exponent));
};

export const seconds = (value) => {
  if (!value) return "not yet";
  if (value < 1) return `${small(1000 * value)} ms`;
  if (value < 120) return `${small(value)} s`;
  return value < 7200 ? `${Math.round(value / 60)} min` : `${(value / 3600).toFixed(1)} h`;
};

export const bytes = (value) => {
  if (value < 1000) return `${value} bytes`;
  const steps = ["kB", "MB", "GB", "TB"];
  const step = Math.min(Math.floor(Math.log10(value) / 3), steps.length);
  return `${small(value / 1000 ** step)} ${steps[step - 1]}`;
};

const times = (count, one, many) => (count === 1 ? `1 ${one}` : `${whole(count)} ${many}`);
const sentence = (text) => (/[.!?…]$/.test(text) ? text : `${text}.`);

// What goes round: in sealed laps it carries a question, not a state that the sites change.
const what = (status) => (status.sealed ? "baton" : "token");

export const hopOf = (status) => status.hop - status.first_hop;

// Whether the token comes by too often for each visit to be told. `quiet`: for how many seconds it has not been here.
const brisk = ({ lap_seconds: lap }, quiet) => lap > 0 && lap < BRISK && quiet < Math.max(BRISK, 4 * lap);

const listed = (names) => new Intl.ListFormat("en-GB").format(names);

// The course of a run, as whoever has never seen one can follow it.
export const STAGES = [
  ["meeting", "Find each other"],
  ["preparing", "Prepare"],
  ["fitting", "Fit"],
  ["signing", "Sign"],
];

const STAGE = {
  meeting: "Waiting for the other sites.",
  preparing: "Preparing: the sites add up what must be known before the fit.",
  fitting: "Fitting the model.",
  signing: "The model is found. All sites are signing it.",
};

export const doing = (status, quiet) => {
  if (status.doing === "failed") return "Nothing could be fitted.";
  if (status.doing === "finished") return status.has_model ? "Finished: the model is here, and every site has signed it." : `Finished: ${outcome(status) || "the run is over."}`;
  if (status.doing === "paused") return "Paused: nothing goes on from here until this agent is told to go on.";
  const said = STAGE[status.progress.stage];
  if (status.progress.stage === "meeting") {
    const away = status.links.filter((link) => !link.up).map((link) => link.name);
    return away.length ? `Waiting for ${listed(away)}, who can't be reached yet.` : said;
  }
  const late = quiet > Math.max(10, 4 * status.lap_seconds);
  return late ? `${said} Nothing has come from the others for ${seconds(Math.floor(quiet))}.` : said;
};

// Rounds, and roughly how long they may still take.
export const left = (status) => {
  const { rounds, usual, part, seconds_left: still } = status.progress;
  const far = usual ? `Round ${whole(Math.min(rounds + 1, usual))} of about ${whole(usual)}` : part > 0 ? `About ${Math.round(100 * part)} % of the way` : "";
  const time = still === null || status.doing === "paused" ? "" : still < 2 ? "a moment is left" : `about ${roughly(still)} left`;
  return [far, time].filter(Boolean).join("; ") + (far || time ? "." : "");
};

const roughly = (value) => {
  if (value < 90) return times(Math.ceil(value), "second", "seconds");
  if (value < 5400) return times(Math.round(value / 60), "minute", "minutes");
  return value < 172800 ? times(Math.round(value / 3600), "hour", "hours") : times(Math.round(value / 86400), "day", "days");
};

export const fits = (status) => {
  const others = status.members.filter((member) => !member.me).map((member) => member.name);
  const together = others.length > 6 ? `${whole(others.length)} other sites` : listed(others);
  const seen = status.sealed ? "No row leaves its site, and nobody sees anything but sums over all sites." : "No row leaves its site.";
  const what = status.fits || "a model";
  return `${what[0].toUpperCase()}${what.slice(1)}, together with ${together}. ${seen}`;
};

export const outcome = (status) => (status.outcome ? sentence(status.outcome) : "");

export const run = (status) => {
  const members = status.members.length;
  const epoch = status.epoch ? `, epoch ${status.epoch}` : "";
  return `${status.algorithm} between ${members} sites, run ${status.run.slice(0, 8)}${epoch}`;
};

const isOver = (status) => status.doing === "finished" || status.doing === "failed";

// A link that never was up and of which nothing bad is known is still being opened.
// After the end neighbours go, and that is no trouble.
export const stateOf = (link, status) => {
  if (isOver(status)) return "closed";
  if (link.up) return "up";
  return link.broken || link.trouble ? "down" : "unknown";
};
export const STATES = { up: "connected", down: "no connection", unknown: "not connected yet", closed: "finished" };

export const trouble = (link, status) => {
  if (stateOf(link, status) === "closed") return "";
  if (link.trouble) return sentence(link.trouble);
  if (link.up && link.epoch >= 0 && link.epoch !== status.epoch)
    return `It is in epoch ${link.epoch} of the ring, this site in epoch ${status.epoch}.`;
  return stateOf(link, status) === "down" ? "It is tried again by itself." : "";
};

// What a person should look at now.
export const troubles = (status) => {
  const said = [];
  if (status.doing === "failed") return [sentence(status.outcome)];
  const over = status.doing === "finished"; // then neighbours may go
  for (const link of status.links) {
    const why = link.trouble ? ` ${sentence(link.trouble)}` : "";
    if (stateOf(link, status) === "down")
      said.push(`There is no connection to ${link.name}.${why} Nothing is lost: it goes on when the connection is there again.`);
    else if (link.up && link.trouble && !over) said.push(`There is trouble with ${link.name}:${why}`);
  }
  const refused = status.journal.refused;
  if (refused) said.push(`This site has refused ${times(refused, "message", "messages")} since the agent started: find out with the neighbour's operator what was sent.`);
  if (status.outcome && !over) said.push(sentence(status.outcome));
  return said;
};

export const journal = (status) => {
  const { taken, sent, acknowledged, duplicates, resent, damaged, refused } = status.journal;
  const said = [];
  said.push(taken < 0 ? "Nothing has been handed over to this site yet." : `Hand-over ${whole(taken)} is on disk, and so is what came of it.`);
  if (sent >= 0)
    said.push(acknowledged ? `Hand-over ${whole(sent)} was sent on, and the next site has it in its journal.` : `Hand-over ${whole(sent)} is to be sent on, and is not acknowledged yet.`);
  else if (taken >= 0) said.push("There is nothing to send on.");
  const counts = [
    [resent, "hand-over was sent again", "hand-overs were sent again"],
    [duplicates, "came again and was taken once", "came again and were taken once"],
    [damaged, "frame came damaged", "frames came damaged"],
    [refused, "hand-over was refused", "hand-overs were refused"],
  ].filter(([count]) => count > 0);
  const listed = new Intl.ListFormat("en-GB").format(counts.map((each) => times(...each)));
  said.push(listed ? `Since the agent started, ${listed}.` : "Since the agent started, nothing was sent again, came again, came damaged or was refused.");
  said.push(`The journal takes ${bytes(status.journal.bytes)} on disk.`);
  return said;
};

export const place = (status, quiet) => {
  if (isOver(status)) return `The run is over: there is no ${what(status)} any more.`;
  if (status.doing === "paused") return `The ${what(status)} stays at this site when it comes.`;
  if (status.token_here && !brisk(status, quiet)) return `The ${what(status)} is at this site.`;
  if (!status.on_cycle) return "The token walks at random, so nobody here knows where it is until it comes back.";
  if (!status.lap_seconds) return `Where the ${what(status)} is can't be estimated until it has been here twice.`;
  const fast = status.lap_seconds < 1 ? " It goes round faster than can be drawn." : "";
  return `Between its visits here, the place of the ${what(status)} is an estimate from the usual time of a lap, ${seconds(status.lap_seconds)}.${fast}`;
};

export const ring = (status) => {
  const names = status.order.map((number) => status.members[number].name);
  const links = status.links.map((link) => `${link.name}: ${STATES[stateOf(link, status)]}`);
  return `A ring: the ${what(status)} goes from ${names.join(" to ")} and back. This site is ${status.site}. ${links.join(", ")}.`;
};

export const chart = (status) => {
  const last = status.residuals.at(-1);
  if (!last) return "There are no residuals until this site has made an update.";
  const hop = whole(last.hop - status.first_hop);
  const rest = `primal residual ${small(last.primal)}, dual residual ${small(last.dual)}.`;
  if (status.tolerance === null) return `At hop ${hop}: ${rest} This run has no tolerance, so unrest is not measured.`;
  const below = [last.unrest, last.primal, last.dual].every((value) => value !== null && value <= status.tolerance);
  return `At hop ${hop}: unrest ${small(last.unrest)}, ${rest} ` +
    (below ? "All are within the tolerance: this site is content." : `This site is content when all are at most ${small(status.tolerance)}.`);
};

// How long the meter has looked: at visits of the token, or at laps of sums.
export const measured = ({ privacy, sealed }) => {
  const looked = sealed ? times(privacy.visits, "lap", "laps") : times(privacy.visits, "visit", "visits");
  if (sealed && !privacy.leaks.length) return `Said after ${looked} from what is proven; nothing was measured.`;
  return sealed
    ? `Measured after ${looked}, on the words that this site received and sent, without the masks that both neighbours together know.`
    : `Measured after ${looked}, from what both neighbours together have seen.`;
};

// 0 where a neighbour can only guess, 1 where it knows exactly.
export const known = (leak) => {
  if (leak.error === null || leak.guess === null) return 0;
  if (leak.guess <= 0) return leak.error <= 0 ? 1 : 0;
  return Math.min(Math.max(1 - leak.error / leak.guess, 0), 1);
};

// What a quantity means to whoever has the data; its name in the method stands behind it for whoever wants it.
const QUANTITIES = [
  ["the gradient of this site's function", "Which way your data pull the model"],
  ["the curvature of this site's data", "How your columns vary, and go together with each other"],
  ["the slope of this site's data", "How your columns go together with the outcome"],
];
export const quantity = (each) => QUANTITIES.find(([name]) => each.quantity.startsWith(name))?.[1] ?? each.quantity;
export const knownInWords = (each) => {
  const part = known(each);
  if (part < 0.05) return "From all that your neighbours have seen, an attack finds no more than a guess would.";
  if (part < 0.5) return "From what your neighbours have seen, an attack finds a little more than a guess would.";
  return part < 0.9 ? "From what your neighbours have seen, an attack finds a good part of it." : "From what your neighbours have seen, an attack finds it almost exactly.";
};
export const leak = (each) => {
  if (each.error !== null && each.error >= each.guess) return `${each.quantity}: ${sentence(each.attack)} It finds no more than a guess without any message does.`;
  if (each.error === null) return `${each.quantity}: ${sentence(each.attack)} It gave no answer, so nothing better than a guess is known.`;
  return `${each.quantity}: ${sentence(each.attack)} Its error is ${small(each.error)}; that of a guess without any message is ${small(each.guess)}.`;
};
