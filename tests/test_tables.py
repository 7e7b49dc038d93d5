import tomllib
from dataclasses import MISSING, fields, make_dataclass
from typing import Any, Literal

import numpy as np
import pytest
import tomli_w
from hypothesis import given, strategies as st

from roundelay import (
    IADMM,
    L1,
    MCSAG,
    PIADMM1,
    PIADMM2,
    SIADMM,
    WADMM,
    WPG,
    AcceleratedToken,
    Algorithm,
    Algorithm2,
    Box,
    Censoring,
    Channel,
    Compressor,
    ContributionNoise,
    Defence,
    IncrementalGradient,
    MaskedLinks,
    MixedWalk,
    NetworkConditions,
    NoDefence,
    NoRegulariser,
    PointSAGA,
    PrivateIncrementalGradient,
    ProxDFinito,
    Regulariser,
    SealedStart,
    Start,
    UniformStart,
    Walk,
    ZeroStart,
    ZeroSumStart,
    registry,
)
from roundelay.networks.walks import ClosedUniformWalk, Cycle, LeastVisitedWalk, MetropolisWalk, UniformWalk
from roundelay.registry import classes_for
from roundelay.tables import as_table, described, from_table, options_of, restored
from tests.agents.fuzzing import STRANGE, patient

# All that may stand in a table.
ANY = Algorithm | Start | Defence | Walk | Regulariser | Compressor | Channel | Censoring | NetworkConditions

positive = st.floats(1e-300, 1e300)
plain = st.floats(-1e300, 1e300)
fraction = st.floats(0.0, 1.0, exclude_min=True, exclude_max=True)
bounds = st.tuples(plain, plain).map(sorted)
starts = st.one_of(
    st.builds(ZeroStart),
    st.builds(lambda pair, sign: UniformStart(*pair, sign), bounds, st.booleans()),
    st.builds(lambda scale, pair: ZeroSumStart(scale, *pair), positive, bounds),
    st.builds(SealedStart, st.integers(0, 62)),
)
noises = st.builds(ContributionNoise, positive, fraction)
defences = st.one_of(
    st.builds(NoDefence), noises, st.builds(MaskedLinks, st.integers(0, 62), st.one_of(st.none(), noises))
)
flags = st.booleans()
walks = st.one_of(
    st.builds(Cycle),
    st.builds(UniformWalk),
    st.builds(MixedWalk, st.integers(1, 10**6), flags),
    *(st.builds(kind, flags) for kind in (MetropolisWalk, ClosedUniformWalk, LeastVisitedWalk)),
)
infinite = st.tuples(plain, st.sampled_from([float("inf")]))
regularisers = st.one_of(
    st.builds(NoRegulariser), st.builds(L1, positive), st.builds(lambda pair: Box(*pair), bounds | infinite)
)
methods = st.one_of(
    st.builds(IADMM, positive, flags, starts, regularisers, defences),
    st.builds(Algorithm2, positive, flags, starts, defences),
    st.builds(
        PIADMM1, positive, st.floats(0, 0.999), starts, flags, positive, st.sampled_from(["scalar", "vector"]), defences
    ),
    st.builds(
        PIADMM2, positive, positive, starts, st.just(True), st.sampled_from(["deviation", "variance"]), positive,
        st.none() | fraction, defences,
    ),
    st.builds(PIADMM2, positive, positive, starts, flags, defence=defences),
    st.builds(WADMM, positive, walks, flags, starts, regularisers, defences),
    st.builds(WPG, positive, walks, regularisers),
    st.builds(IncrementalGradient, positive, positive, walks),
    st.builds(PrivateIncrementalGradient, positive, positive, positive, positive, positive, walks),
    st.builds(SIADMM, positive, positive, positive, st.integers(1, 10**9)),
    st.builds(MCSAG, st.none() | positive, walks),
    st.builds(PointSAGA, st.none() | positive, walks),
    st.builds(ProxDFinito, st.none() | positive, st.floats(0.01, 1.0), regularisers),
    st.builds(AcceleratedToken, st.none() | st.just(0.25), st.none() | st.just(2.0), walks),
)  # fmt: skip
parts = st.one_of(starts, defences, walks, regularisers)


@patient
@given(methods | parts)
def test_everything_comes_back(thing: Any) -> None:
    table = tomllib.loads(tomli_w.dumps(as_table(thing, ANY)))
    again = from_table(table, "here", ANY)
    assert again == thing and type(again) is type(thing)


def test_every_kind_with_its_defaults_comes_back() -> None:
    for kind in classes_for(ANY):
        types = options_of(kind)
        needed = [types[field.name] for field in fields(kind) if field.init and field.default is MISSING]
        thing = kind(*(1 if wanted is int else 0.5 for wanted in needed))
        assert from_table(as_table(thing, ANY), "here", ANY) == thing


def test_a_table_reads_as_people_write_it() -> None:
    assert as_table(PIADMM1(rho=np.float64(2.0), start=SealedStart(), defence=MaskedLinks(30)), ANY) == {
        "kind": "PIADMM1",
        "rho": 2.0,
        "gamma_spread": 0.1,
        "start": {"kind": "SealedStart", "bits": 40},
        "first_order": False,
        "gamma": 1.0,
        "gamma_is": "scalar",
        "defence": {"kind": "MaskedLinks", "bits": 30},
    }
    assert from_table({"kind": "IADMM", "rho": 3}, "here", ANY) == IADMM(rho=3.0)
    assert from_table({"kind": "RandomStart", "rho": 3}, "here", ANY) == Algorithm2(rho=3.0)  # as older files have it
    assert type(as_table(IADMM(rho=np.float64(2.0)), ANY)["rho"]) is float


def test_others_are_not_written() -> None:
    for thing in (object(), IADMM, IADMM(start=OwnStart())):
        with pytest.raises(
            ValueError, match=r"can't stand in a file: use one of .*, or enter its class by roundelay\.register"
        ):
            as_table(thing, ANY)


class OwnStart(ZeroStart):
    """Somebody's own."""


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({}, "here has no field kind"),
        ({"kind": 3}, "The field kind of here is 3: use a text"),
        ({"kind": "Exact"}, "The field kind of here is 'Exact': use one of"),
        ({"kind": "os.system"}, "use one of"),
        ({"kind": "IADMM", "tokens": 2}, "here has the field 'tokens', which is not known: it may have kind, rho"),
        ({"kind": "IADMM", "name": "x"}, "here has the field 'name'"),
        ({"kind": "IADMM", "rho": "x"}, "The field rho of here is 'x': use a number"),
        ({"kind": "IADMM", "rho": True}, "The field rho of here is true: use a number"),
        ({"kind": "IADMM", "rho": 10**400}, "The field rho of here is a huge number: use a number"),
        ({"kind": "IADMM", "rho": float("nan")}, "The field rho of here is nan"),
        ({"kind": "IADMM", "rho": -1.0}, "here can't be used: rho is -1.0: use a positive number"),
        ({"kind": "IADMM", "rho": float("inf")}, "rho is inf: use a finite number"),
        ({"kind": "IADMM", "first_order": 1}, "The field first_order of here is 1: use true or false"),
        ({"kind": "IADMM", "start": "zero"}, "The field start of here is 'zero': make it a table"),
        ({"kind": "IADMM", "start": {"kind": "L1"}}, "The field kind of start of here is 'L1': use one of ZeroStart"),
        (
            {"kind": "IADMM", "start": {"kind": "SealedStart", "bits": 4.0}},
            r"bits of start of here is 4\.0: use a whole",
        ),
        ({"kind": "IADMM", "start": {"kind": "SealedStart", "bits": 2**70}}, "bits of start of here"),
        ({"kind": "IADMM", "regulariser": {"kind": "L1"}}, "regulariser of here has no field weight: L1 needs it"),
        ({"kind": "PIADMM1", "gamma_is": "x"}, "gamma_is of here is 'x': use 'scalar' or 'vector'"),
        ({"kind": "MaskedLinks", "noise": {"kind": "NoDefence"}}, "kind of noise of here is 'NoDefence': use Contri"),
    ],
)
def test_refusals_name_the_place(table: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        from_table(table, "here", ANY)


@patient
@given(st.data())
def test_any_value_in_any_field(data: st.DataObject) -> None:
    table = as_table(data.draw(methods), ANY)
    place = table
    while isinstance(inner := place[data.draw(st.sampled_from(sorted(place)))], dict) and data.draw(st.booleans()):
        place = inner
    place[data.draw(st.sampled_from(sorted(place)))] = data.draw(STRANGE)
    try:
        thing = from_table(table, "here", ANY)
    except ValueError as refused:
        assert "here" in str(refused)
    else:
        assert type(thing) in classes_for(ANY)


@pytest.mark.parametrize(
    ("wanted", "value", "comes_back"),
    [
        (tuple[float, ...], (1.0, 2.0), True),
        (Literal[1, 2], 2, True),
        (int | float, 2.5, True),
        (int | float, 2, True),
        (int, 2.5, False),
        (float, float("nan"), False),
        (bytes, b"x", False),
        (Any, 3.0, False),
    ],
)
def test_an_option_comes_back_or_is_refused(
    monkeypatch: pytest.MonkeyPatch, wanted: Any, value: Any, comes_back: bool
) -> None:
    """Whatever somebody's own class asks for: nothing is changed silently, and nothing ends in a raw error."""
    monkeypatch.setattr(registry, "_ENTRIES", {slot: dict(words) for slot, words in registry._ENTRIES.items()})
    kind = registry.register(Start, "theirs")(make_dataclass("Theirs", [("option", wanted)], frozen=True))
    thing = kind(value)
    if comes_back:
        again = from_table(tomllib.loads(tomli_w.dumps(as_table(thing, Start))), "here", Start)
        assert again == thing and type(again.option) is type(value)
    else:
        with pytest.raises(ValueError, match=r"can't stand in a file|can't be read from a file|use a number"):
            as_table(thing, Start)
        assert described(thing, Start) == repr(thing)


@pytest.mark.parametrize("strange", [[], 3, None, "x", {"kind": []}, {"kind": 3}, {}, {"kind": "Nobody"}])
def test_a_strange_description_stays_one(strange: Any) -> None:
    assert restored(strange, "here", Algorithm) == strange
    assert restored({"kind": "RandomStart"}, "here", Algorithm) == Algorithm2()
