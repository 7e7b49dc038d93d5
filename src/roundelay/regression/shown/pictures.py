"""The pictures of a result."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from roundelay.regression.regression import INTERCEPT
from roundelay.regression.result import Bin, Result, SurvivalPoint, Term
from roundelay.regression.shown.drawing import (
    WIDTH,
    Picture,
    Scale,
    dot,
    drawing,
    letters,
    line,
    path,
    plot,
    shortened,
    ticks_in_words,
)
from roundelay.regression.shown.tables import in_words, least_of
from roundelay.shown.markup import Markup, tag
from roundelay.shown.numbers import UNKNOWN, count, fixed, percent, plural, short

# More coefficients than these are in the table alone.
MOST_TERMS = 60
# Of a coefficient that nobody knows, the interval ends where it would be so many times (in a ratio) off.
_FARTHEST = 1e3
# Where one interval is so many times as wide as another, their units can't share an axis.
_APART = 50.0
# Fewer questions than these make no picture.
LEAST_QUESTIONS = 3
_ROW, _ABOVE = 40.0, 20.0


def pictures_of(result: Result) -> tuple[Picture, ...]:
    """All that a result has, in the order in which they are looked at."""
    found = [
        forest(result),
        calibration(result),
        roc(result),
        residuals(result),
        survival(result),
        penalty(result),
        convergence(result),
    ]
    return tuple(one for one in found if one is not None)


# ---------------------------------------------------------------- coefficients


def forest(result: Result) -> Picture | None:
    """Each coefficient, or its ratio, with its interval; None where there is nothing but constants."""
    return forest_of(result.terms, result.ratio, result.level)


def forest_of(all_terms: Sequence[Term], ratio: str = "", level: float = 0.95) -> Picture | None:
    """The same of coefficients of which no more is known; `ratio` is what e^coefficient is called."""
    terms = [term for term in all_terms if term.name != INTERCEPT and not term.name.endswith(f": {INTERCEPT}")]
    shown = terms[:MOST_TERMS]
    if not shown:
        return None
    is_ratio = bool(ratio) and all(term.ratio is not None for term in shown)
    triples = [_triple(term, is_ratio) for term in shown]
    label = ratio if is_ratio else "coefficient, in the units of the data"
    if not is_ratio and _are_apart(triples):
        triples = [tuple(value / term.std_error for value in three) for term, three in zip(shown, triples, strict=True)]  # type: ignore[operator, misc]
        label = "coefficient, in its standard errors"
    neutral = 1.0 if is_ratio else 0.0
    scale = _forest_scale(triples, neutral, is_ratio)
    height = _ABOVE + _ROW * len(shown) + 40.0
    bottom, x = _ABOVE + _ROW * len(shown), scale.at(neutral)
    parts = [line((x, x), (_ABOVE - 14.0, bottom), "neutral")]
    for row, (term, three) in enumerate(zip(shown, triples, strict=True)):
        parts += _forest_row(term, in_words(term, is_ratio), three, scale, _ABOVE + _ROW * row)
    parts.append(line((scale.begin, scale.end), (bottom, bottom), "axis"))
    for tick, said in zip(scale.ticks, ticks_in_words(scale.ticks), strict=True):
        x = scale.at(tick)
        parts += [line((x, x), (bottom, bottom + 4.0), "axis"), letters(x, bottom + 17.0, said, anchor="middle")]
    parts.append(letters(WIDTH, bottom + 35.0, label, "label", "end"))
    listed = "; ".join(f"{term.name} {in_words(term, is_ratio)}" for term in shown)
    exact = any(low < high for _, low, high in triples)
    intervals = f", with intervals of {100.0 * level:g} %" if exact else ""
    caption = (
        f"Dots are estimates, lines are intervals of {100.0 * level:g} %. An interval that crosses {neutral:g} is compatible with no association."
        if exact
        else f"Dots are estimates; at {neutral:g} there is no association."
    )
    if len(shown) < len(terms):
        caption += f" The first {len(shown)} of {len(terms)} are shown; the table has all."
    title = f"{ratio.capitalize()}s" if is_ratio else "Coefficients"
    return Picture("forest", title, drawing("forest", height, f"{title}{intervals}: {listed}.", parts), caption)


def _triple(term: Term, is_ratio: bool) -> tuple[float, float, float]:
    middle, low, high = (
        (term.ratio, term.ratio_low, term.ratio_high) if is_ratio else (term.estimate, term.low, term.high)
    )
    assert middle is not None
    return middle, middle if low is None else low, middle if high is None else high


def _are_apart(triples: list[tuple[float, float, float]]) -> bool:
    widths = [high - low for _, low, high in triples]
    return min(widths) > 0.0 and max(widths) > _APART * min(widths)


def _forest_scale(
    triples: list[tuple[float, ...]] | list[tuple[float, float, float]], neutral: float, is_ratio: bool
) -> Scale:
    if is_ratio:
        middles = [min(max(three[0], 1.0 / _FARTHEST), _FARTHEST) for three in triples]
        low = max(min(neutral, *(three[1] for three in triples)), min(middles) / 30.0)
        high = min(max(neutral, *(three[2] for three in triples)), max(middles) * 30.0)
        room = max(math.log(max(high, 1e-300) / max(low, 1e-300)) * 0.04, 0.02)
        return Scale(max(low, 1e-300) * math.exp(-room), high * math.exp(room), 14.0, WIDTH - 14.0, True)
    low, high = min(neutral, *(three[1] for three in triples)), max(neutral, *(three[2] for three in triples))
    room = 0.04 * (high - low) or 1.0
    return Scale(low - room, high + room, 14.0, WIDTH - 14.0)


def _forest_row(term: Term, said: str, three: tuple[float, ...], scale: Scale, top: float) -> list[Markup]:
    middle, low, high = three
    y = top + 13.0
    room = WIDTH - 6.4 * len(said) - 12.0
    name = tag("text", {"x": 0.0, "y": top, "class": "term"}, tag("title", {}, term.name), shortened(term.name, room))
    marks = [name, letters(WIDTH, top, said, "value", "end"), line((scale.at(low), scale.at(high)), (y, y), "interval")]
    for end, beyond, way in ((low, low < scale.low, -1.0), (high, high > scale.high, 1.0)):
        x = scale.at(end)
        if beyond:  # an arrow says that it goes on
            marks.append(path([(x - 6.0 * way, y - 4.0), (x, y), (x - 6.0 * way, y + 4.0)], "interval"))
        elif low < high:
            marks.append(line((x, x), (y - 4.0, y + 4.0), "interval"))
    return [*marks, dot(scale.at(middle), y, f"{term.name}: {said}")]


# ---------------------------------------------------------------- how well it fits


def calibration(result: Result) -> Picture | None:
    """What was predicted for groups of rows against what was observed, with intervals by Wilson."""
    bins = [one for one in result.calibration if one.rows and one.predicted is not None and one.observed is not None]
    if not bins:
        return None
    spans = [(one, *_wilson(one)) for one in bins]
    top = min(max(max(one.predicted or 0.0, high) for one, _, high in spans) * 1.05, 1.0)
    frame = plot((0.0, top), (0.0, top), ("predicted chance", "observed"))
    frame.marks.append(line((frame.x.at(0.0), frame.x.at(top)), (frame.y.at(0.0), frame.y.at(top)), "neutral"))
    for one, low, high in spans:
        assert one.predicted is not None and one.observed is not None
        x = frame.x.at(one.predicted)
        frame.marks.append(line((x, x), (frame.y.at(low), frame.y.at(high)), "interval"))
        said = f"predicted {percent(one.predicted)}, observed {percent(one.observed)} of {plural(round(one.rows or 0), 'row')}"
        frame.marks.append(dot(x, frame.y.at(one.observed), said))
    hidden = len(result.calibration) - len(bins)
    caption = "Groups of rows by the chance that is predicted for them; each has enough rows with the outcome, and without it. On the dashed line predictions are what happens; lines are intervals of 95 %."
    if hidden:
        caption += f" {plural(hidden, 'group')} of fewer than {least_of(result) or 'the agreed number of'} rows {'is' if hidden == 1 else 'are'} not shown."
    pairs = ", ".join(f"{percent(one.predicted)} and {percent(one.observed)}" for one in bins)
    return Picture(
        "calibration",
        "Calibration",
        frame.drawn("calibration", f"Predicted and observed, by groups of rows: {pairs}."),
        caption,
    )


def _wilson(one: Bin) -> tuple[float, float]:
    """An interval of 95 % for a chance that was observed in so many rows."""
    assert one.rows is not None and one.observed is not None
    z, n, p = 1.959964, one.rows, min(max(one.observed, 0.0), 1.0)
    middle = (p + z * z / (2.0 * n)) / (1.0 + z * z / n)
    half = z / (1.0 + z * z / n) * math.sqrt(p * (1.0 - p) / n + z * z / (4.0 * n * n))
    return max(middle - half, 0.0), min(middle + half, 1.0)


def roc(result: Result) -> Picture | None:
    """True against false positives."""
    if result.roc is None:
        return None
    frame = plot((0.0, 1.0), (0.0, 1.0), ("false positives", "true positives"))
    x, y = frame.x, frame.y
    points = [
        (x.at(false), y.at(true))
        for false, true in zip(result.roc.false_positive, result.roc.true_positive, strict=True)
    ]
    area = fixed(result.roc.area, 3)
    frame.marks.append(path([*points, (x.at(1.0), y.at(0.0)), (x.at(0.0), y.at(0.0))], "band", closed=True))
    frame.marks.append(line((x.at(0.0), x.at(1.0)), (y.at(0.0), y.at(1.0)), "neutral"))
    frame.marks.append(path(points, "curve"))
    frame.marks.append(letters(x.at(0.96), y.at(0.08), f"area {area}", "value", "end"))
    return Picture(
        "roc", "ROC curve", frame.drawn("roc", f"True positives over false positives; the area under the curve is {area}."),
        f"Of a row with the outcome and one without, the first has the higher predicted chance in {percent(result.roc.area)} of all pairs. Dashed: by guessing. "
        "Each step of the curve has enough rows with the outcome, and without it; the area is that of finer steps.",
    )  # fmt: skip


def residuals(result: Result) -> Picture | None:
    """How many rows lie how far from what is predicted for them, with what a normal law would have."""
    if result.residuals is None:
        return None
    edges, counts = result.residuals.edges, result.residuals.counts
    least, rows = least_of(result), sum(one for one in counts if one is not None)
    words = ["not shown" if one is None else count(one) for one in counts]
    top = max([one for one in counts if one is not None] + [1]) * 1.06
    frame = plot((edges[0], edges[-1]), (0.0, top), ("residual, in standard deviations", "rows"), 260.0)
    for low, high, one, word in zip(edges[:-1], edges[1:], counts, words, strict=True):
        left, right = frame.x.at(low), frame.x.at(high)
        y = frame.y.at(one if one is not None else min(least or 1, top))
        where = {"x": left + 0.5, "y": y, "width": right - left - 1.0, "height": frame.y.begin - y}
        said = f"{short(low, 3)} to {short(high, 3)}: {word}"
        frame.marks.append(
            tag("rect", {**where, "class": "bar" if one is not None else "bar few"}, tag("title", {}, said))
        )
    width = edges[1] - edges[0]
    law = [(edges[0] + (edges[-1] - edges[0]) * step / 80.0) for step in range(81)]
    heights = [min(rows * width * math.exp(-0.5 * r * r) / math.sqrt(2.0 * math.pi), top) for r in law]
    frame.marks.append(path([(frame.x.at(r), frame.y.at(h)) for r, h in zip(law, heights, strict=True)], "neutral"))
    caption = "Observed less predicted, in units of what the model expects (Pearson). The first and the last bar have all that lies beyond. Dashed: a normal law."
    if None in counts:
        caption += f" Bars in outline have {f'fewer than {least}' if least else 'too few'} rows, or a number from which such a one would follow: it is not shown."
    pairs = ", ".join(f"{short(low, 3)}: {word}" for low, word in zip(edges, words, strict=False))
    return Picture(
        "residuals",
        "Residuals",
        frame.drawn("residuals", f"Rows by their residual, from the lower end of each bar: {pairs}."),
        caption,
    )


# ---------------------------------------------------------------- survival, laps


def survival(result: Result) -> Picture | None:
    """What part of the rows has had no event yet, with its interval, and below how many are left."""
    points = result.survival
    if not points:
        return None
    end = points[-1].time
    frame = plot((0.0, end), (0.0, 1.0), ("time", "without an event"), 330.0, 78.0)
    x, y = frame.x, frame.y
    low, high = _steps(points, "low"), _steps(points, "high")
    frame.marks.append(path([(x.at(t), y.at(s)) for t, s in [*low, *reversed(high)]], "band", closed=True))
    frame.marks.append(path([(x.at(t), y.at(s)) for t, s in _steps(points, "survival")], "curve"))
    below = frame.height - 8.0
    frame.marks.append(letters(0.0, below - 17.0, "at risk", "label"))
    begins = [0.0, *(point.time for point in points[:-1])]
    for tick in x.ticks:
        at = next(
            (
                point.at_risk
                for begin, point in zip(begins, points, strict=True)
                if math.isclose(begin, tick, abs_tol=1e-9 * end)
            ),
            -1.0,
        )
        if at != -1.0:
            frame.marks.append(letters(x.at(tick), below, UNKNOWN if at is None else count(at), anchor="middle"))
    said = ", ".join(f"{percent(point.survival)} at {short(point.time, 4)}" for point in points)
    return Picture(
        "survival", "Survival", frame.drawn("survival", f"Without an event are {said}."),
        f"By Kaplan and Meier, on agreed bins of time, of which those with few events are joined with the next; the band is an interval of {100.0 * result.level:g} %.",
    )  # fmt: skip


def _steps(points: tuple[SurvivalPoint, ...], what: str) -> list[tuple[float, float]]:
    """It stays where it was until the end of the bin."""
    found, before = [(0.0, 1.0)], 1.0
    for point in points:
        found += [(point.time, before), (point.time, getattr(point, what))]
        before = getattr(point, what)
    return found


def convergence(result: Result) -> Picture | None:
    """How far each question was from the best point."""
    slopes = [(number, one) for number, one in enumerate(result.slopes, start=1) if one > 0.0]
    if len(slopes) < LEAST_QUESTIONS:
        return None
    low, high = (
        10.0 ** bound(math.log10(each(one for _, one in slopes)))
        for bound, each in ((math.floor, min), (math.ceil, max))
    )
    frame = plot(
        (1.0, float(slopes[-1][0])),
        (low, max(high, 10.0 * low)),
        ("question to all sites", "slope of the mean loss"),
        240.0,
        log_y=True,
    )
    frame = replace(frame, x=replace(frame.x, whole=True))
    places = [(frame.x.at(number), frame.y.at(one)) for number, one in slopes]
    frame.marks.append(path(places, "curve"))
    frame.marks.extend(
        dot(*place, f"question {number}: {short(one, 3)}", radius=3.0)
        for place, (number, one) in zip(places, slopes, strict=True)
    )
    return Picture(
        "convergence", "How it converged", frame.drawn("convergence", f"The slope fell from {short(slopes[0][1], 3)} to {short(slopes[-1][1], 3)} in {len(slopes)} questions."),
        "Each question goes round to all sites once. At the best coefficients the slope is 0.",
    )  # fmt: skip


def penalty(result: Result) -> Picture | None:
    """What rows lost that were left out of the fit, over how strong the penalty was."""
    path = sorted(result.path, key=lambda one: one.factor)
    if len(path) < 2:
        return None
    ends = [(one.loss - one.error, one.loss + one.error) for one in path]
    low, high = min(low for low, _ in ends), max(high for _, high in ends)
    room = 0.05 * (high - low) or 1.0
    labels = ("times the planned penalty", "mean loss of rows left out")
    frame = plot((path[0].factor, path[-1].factor), (low - room, high + room), labels, log_x=True)
    for one, (below, above) in zip(path, ends, strict=True):
        x = frame.x.at(one.factor)
        frame.marks.append(line((x, x), (frame.y.at(below), frame.y.at(above)), "grid"))
        said = f"{short(one.factor, 3)} times: {short(one.loss, 4)}, {short(one.slopes, 3)} coefficients"
        frame.marks.append(dot(x, frame.y.at(one.loss), said, radius=2.5))
    taken = result.strength
    if taken is not None:
        x = frame.x.at(taken)
        frame.marks.append(line((x, x), (frame.y.begin, frame.y.end), "neutral"))
    return Picture(
        "penalty", "How strong the penalty is", frame.drawn("penalty", f"The loss of rows left out, at {len(path)} strengths of the penalty."),
        "Rows were left out of the fit in turn, and then predicted: the strength with the least loss was taken, on the dashed line. "
        "Lines are a standard error to both sides.",
    )  # fmt: skip
