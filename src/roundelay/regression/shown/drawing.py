"""How a picture is drawn: scales with ticks at round numbers, and an SVG whose letters are letters and which says in words what it shows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from roundelay.shown.markup import Markup, Value, joined, tag
from roundelay.shown.numbers import fixed, power_of_ten

# As wide as a telephone, so that letters stay readable there; a page may show it a third larger.
WIDTH = 400.0
_LETTER = 6.1


@dataclass(frozen=True)
class Picture:
    """A figure as it stands in a document: the drawing, what it is called, and what is to be said of it."""

    name: str
    title: str
    drawing: Markup
    caption: str


@dataclass(frozen=True)
class Scale:
    """Numbers from `low` to `high` on a line from `begin` to `end`, by their logarithm where that is wanted; `whole` ones, where they count."""

    low: float
    high: float
    begin: float
    end: float
    logarithmic: bool = False
    whole: bool = False

    def at(self, value: float) -> float:
        """Where a number lies; what is beyond an end lies there."""
        value = min(max(value, self.low), self.high)
        if self.logarithmic:
            part = math.log(value / self.low) / math.log(self.high / self.low)
        else:
            part = (value - self.low) / (self.high - self.low)
        return self.begin + part * (self.end - self.begin)

    @property
    def ticks(self) -> tuple[float, ...]:
        """Round numbers, about five."""
        if self.logarithmic:
            return _round_ratios(self.low, self.high)
        return tuple(one for one in round_numbers(self.low, self.high) if not self.whole or one == round(one))


def round_numbers(low: float, high: float, most: int = 6) -> tuple[float, ...]:
    """Multiples of 1, 2 or 5 times a power of ten."""
    base = 10.0 ** math.floor(math.log10((high - low) / most))
    step = next(
        factor * base for factor in (1.0, 2.0, 5.0, 10.0) if factor * base * most >= (high - low) * (1.0 - 1e-9)
    )
    first = math.ceil(low / step - 1e-9)
    return tuple(step * number for number in range(first, math.floor(high / step + 1e-9) + 1))


def _round_ratios(low: float, high: float) -> tuple[float, ...]:
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    every = max(len(powers) // 6, 1)
    choices = (
        [factor * 10.0**power for power in powers for factor in (1.0, 2.0, 5.0)],
        [10.0**power for power in powers],
        [10.0**power for power in powers if power % every == 0],
    )
    for numbers in choices:
        inside = tuple(one for one in numbers if low * (1 - 1e-9) <= one <= high * (1 + 1e-9))
        if len(inside) < 3:
            return tuple(one for one in round_numbers(low, high, 5) if one > 0.0)
        if len(inside) <= 7:
            return inside
    return inside


def ticks_in_words(ticks: Sequence[float]) -> tuple[str, ...]:
    """Numbers with as many decimals as each needs; very large or small ones as powers of ten."""
    sizes = [abs(tick) for tick in ticks if tick]
    if sizes and (max(sizes) >= 1e6 or min(sizes) < 0.9e-3):
        return tuple(
            power_of_ten(tick) if tick > 0.0 else fixed(tick, 0) if not tick else f"−{power_of_ten(-tick)}"
            for tick in ticks
        )
    return tuple(f"{round(tick, 6):,}".removesuffix(".0").replace("-", "−") for tick in ticks)


# ---------------------------------------------------------------- marks


def line(x: tuple[float, float], y: tuple[float, float], look: str) -> Markup:
    """A straight line."""
    return tag("line", {"x1": x[0], "x2": x[1], "y1": y[0], "y2": y[1], "class": look})


def path(points: Sequence[tuple[float, float]], look: str, closed: bool = False) -> Markup:
    """A line through points."""
    steps = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return tag("path", {"d": f"M{steps}{'Z' if closed else ''}", "class": look})


def letters(x: float, y: float, said: str, look: str = "", anchor: str = "start") -> Markup:
    """Words; all of them are read where only a part of them has room."""
    attributes: dict[str, Value] = {"x": x, "y": y, "text-anchor": anchor}
    return tag("text", attributes | ({"class": look} if look else {}), said)


def dot(x: float, y: float, said: str, look: str = "dot", radius: float = 4.0) -> Markup:
    """A point that says what it is."""
    return tag("circle", {"cx": x, "cy": y, "r": radius, "class": look}, tag("title", {}, said))


def shortened(said: str, room: float) -> str:
    """As much of a name as there is room for, without its middle."""
    most = max(int(room / _LETTER), 4)
    end = most // 3
    return said if len(said) <= most else f"{said[: most - end - 1]}…{said[-end:]}"


@dataclass(frozen=True)
class Frame:
    """A plot with two axes, `height` high."""

    x: Scale
    y: Scale
    height: float
    x_label: str
    y_label: str
    marks: list[Markup] = field(default_factory=list)

    @property
    def axes(self) -> list[Markup]:
        """A grid, the two axes, and what they say."""
        left, right, bottom, top = self.x.begin, self.x.end, self.y.begin, self.y.end
        found = []
        for tick, said in zip(self.y.ticks, ticks_in_words(self.y.ticks), strict=True):
            y = self.y.at(tick)
            found += [line((left, right), (y, y), "grid"), letters(left - 6.0, y + 4.0, said, anchor="end")]
        found.append(line((left, right), (bottom, bottom), "axis"))
        for tick, said in zip(self.x.ticks, ticks_in_words(self.x.ticks), strict=True):
            x = self.x.at(tick)
            found += [line((x, x), (bottom, bottom + 4.0), "axis"), letters(x, bottom + 17.0, said, anchor="middle")]
        found.append(letters(right, bottom + 34.0, self.x_label, "label", "end"))
        found.append(letters(0.0, top - 12.0, self.y_label, "label"))
        return found

    def drawn(self, name: str, said: str) -> Markup:
        """All of it; `said` says in words what is to be seen."""
        return drawing(name, self.height, said, [*self.axes, *self.marks])


def plot(
    x: tuple[float, float],
    y: tuple[float, float],
    labels: tuple[str, str],
    height: float = 300.0,
    below: float = 42.0,
    log_y: bool = False,
    log_x: bool = False,
) -> Frame:
    """An empty plot over these numbers."""
    return Frame(Scale(*x, 44.0, WIDTH - 14.0, log_x), Scale(*y, height - below, 26.0, log_y), height, *labels)


def drawing(name: str, height: float, said: str, parts: list[Markup]) -> Markup:
    """A drawing that is read aloud as one sentence; a point of it says what it is where the mouse is on it."""
    attributes: dict[str, Value] = {
        "class": "picture", "id": f"picture-{name}", "viewBox": f"0 0 {WIDTH:g} {height:g}", "role": "img",
        "aria-labelledby": f"said-{name}", "xmlns": "http://www.w3.org/2000/svg",
    }  # fmt: skip
    return tag("svg", attributes, tag("title", {"id": f"said-{name}"}, said), joined(parts))
