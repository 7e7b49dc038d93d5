"""Files that somebody broke, by accident or on purpose."""

import copy
import datetime
from typing import Any

from hypothesis import settings, strategies as st

patient = settings(deadline=None, max_examples=150)

STRANGE = st.sampled_from(
    [
        0, 1, -1, 2**62 + 1, 10**400, -(10**30), True, False, 0.0, -0.0, 1e308, 5e-324, float("nan"), float("inf"), float("-inf"),
        "", "x", "x" * 20_000, "\n", "\x00", "é" * 50, "[signature]", "custom", "SealedStart", "all", "Oslo", "0" * 64,
        [], [[]], [1, "a"], [["Oslo", "Oslo"]], [["Oslo", "nobody"]], {}, {"kind": "L1"}, {"kind": "MaskedLinks", "noise": {}},
        [{}], [{"name": "a", "unit": "b"}], datetime.date(2020, 1, 1), datetime.time(1, 2),
    ]
)  # fmt: skip


def changed_bytes(text: bytes) -> st.SearchStrategy[bytes]:
    """One byte is another."""

    def change(place: int, add: int) -> bytes:
        return text[:place] + bytes([(text[place] + add) % 256]) + text[place + 1 :]

    return st.builds(change, st.integers(0, len(text) - 1), st.integers(1, 255))


@st.composite
def changed_lines(draw: st.DrawFn, text: bytes) -> bytes:
    """Lines are lost, or there twice, or in other places."""
    lines = text.splitlines(keepends=True)
    for _ in range(draw(st.integers(1, 3))):
        first, second = (draw(st.integers(0, len(lines) - 1)) for _ in range(2))
        how = draw(st.sampled_from(["lose", "repeat", "move"]))
        if how == "lose" and len(lines) > 1:
            del lines[first]
        elif how == "repeat":
            lines.insert(second, lines[first])
        else:
            lines[first], lines[second] = lines[second], lines[first]
    return b"".join(lines)


@st.composite
def changed_values(draw: st.DrawFn, tables: dict[str, Any]) -> dict[str, Any]:
    """Values somewhere in the tables are others, of any type, or lost, or new."""
    changed = copy.deepcopy(tables)
    for _ in range(draw(st.integers(1, 3))):
        holder: Any = changed
        while True:
            places = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
            if not places:
                break
            place = draw(st.sampled_from(places))
            inside = holder[place]
            if isinstance(inside, dict | list) and inside and draw(st.integers(0, 9)):
                holder = inside
                continue
            how = draw(st.integers(0, 9))
            if how == 0:
                del holder[place]
            elif how == 1 and isinstance(holder, dict):
                holder[draw(st.sampled_from(["more", "kind", "bits", "", "a.b"]))] = copy.deepcopy(draw(STRANGE))
            else:
                holder[place] = copy.deepcopy(draw(STRANGE))
            break
    return changed


def strange_toml() -> st.SearchStrategy[dict[str, Any]]:
    """Any tables, some with the names that a file has."""
    keys = st.sampled_from(["ring", "task", "member", "algorithm", "stopping", "invitation", "kind", "name", "format"])
    values = st.recursive(STRANGE, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=4))
    return st.dictionaries(keys | st.text(max_size=5), values, max_size=5)
