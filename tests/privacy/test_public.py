"""What everybody knows, and nothing more."""

from __future__ import annotations

import json
from dataclasses import fields

import pytest

import roundelay as rl
from roundelay.privacy import Public, load_public, save_public

ALGORITHMS = [
    rl.IADMM(rho=3.0, first_order=True),
    rl.RandomStart(),
    rl.PIADMM1(rho=2.0, gamma_spread=0.3, start=rl.UniformStart(0.0, 5.0)),
    rl.PIADMM2(sigma=0.1, sigma_is="variance"),
    rl.WADMM(walk=rl.MetropolisWalk(self_loops_free=True)),
    rl.IADMM(regulariser=rl.L1(0.5)),
]


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_it_comes_back_from_its_file(tmp_path, algorithm):
    public = Public(algorithm, 7, 3)
    assert Public.from_json(public.to_json()) == public
    assert load_public(save_public(public, tmp_path / "deeper" / "public.json")) == public


def test_the_seed_is_no_part_of_it():
    assert [field.name for field in fields(Public)] == ["algorithm", "agents", "dim"]


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"public": 9}, "format 9"),
        ({"agents": 0}, "number of agents is 0"),
        ({"algorithm": {"kind": "os.system"}}, "no algorithm of roundelay"),
        ({"algorithm": {"kind": "X"}}, "no algorithm"),
        ({"algorithm": "I-ADMM"}, "no algorithm of roundelay"),
    ],
)
def test_bad_descriptions_are_refused(change, sentence):
    text = json.dumps(json.loads(Public(rl.IADMM(), 4, 2).to_json()) | change)
    with pytest.raises(ValueError, match=sentence):
        Public.from_json(text)


def test_other_text_and_a_missing_file_are_refused(tmp_path):
    for text in ("no json", "[]", "{}", '{"public": 2}'):
        with pytest.raises(ValueError, match="does not describe what is public"):
            Public.from_json(text)
    with pytest.raises(ValueError, match="There is no file"):
        load_public(tmp_path / "nothing.json")
    described = json.loads(Public(rl.IADMM(), 4, 2).to_json())
    described["algorithm"]["colour"] = "red"
    with pytest.raises(ValueError, match="the field 'colour', which is not known"):
        Public.from_json(json.dumps(described))
