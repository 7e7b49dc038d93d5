"""Secrets of pairs: both ends find the same, nobody else anything, and no two runs or purposes alike."""

from __future__ import annotations

import builtins
import itertools
from typing import Any

import numpy as np
import pytest

from roundelay.masks import (
    LINK,
    MASK,
    SEAL,
    AgreedPairs,
    SeededPairs,
    my_mask,
    my_seal,
    new_private_key,
    public_key_of,
)

AGENTS = 5


@pytest.fixture(scope="module")
def keys() -> list[bytes]:
    return [new_private_key() for _ in range(AGENTS)]


def ends(keys: list[bytes], run: str = "trial", epoch: int = 0) -> list[AgreedPairs]:
    public = [public_key_of(key) for key in keys]
    return [AgreedPairs(me, key, tuple(public), run, epoch) for me, key in enumerate(keys)]


def words(secrets: Any, i: int, j: int, purpose: int = MASK, turn: int = 0) -> bytes:
    return secrets.words(np.array([i]), np.array([j]), purpose, np.array([turn]), 8).tobytes()


def test_both_ends_of_every_pair_agree_and_all_pairs_differ(keys):
    all_ends = ends(keys)
    found = {}
    for i, j in itertools.combinations(range(AGENTS), 2):
        assert all_ends[i].key(i, j) == all_ends[j].key(j, i) == all_ends[j].key(i, j)
        assert words(all_ends[i], i, j) == words(all_ends[j], j, i)
        found[i, j] = all_ends[i].key(i, j)
    assert len(set(found.values())) == len(found)
    assert all(len(key) == 16 for key in found.values())


def test_another_run_and_another_epoch_have_other_keys(keys):
    ours = ends(keys)[0].key(0, 1)
    assert ours != ends(keys, run="another")[0].key(0, 1)
    assert ours != ends(keys, epoch=1)[0].key(0, 1)
    assert ends(keys, "ab")[0].key(0, 1) != ends(keys, "a", epoch=ord("b"))[0].key(0, 1)


def test_one_compromised_pair_tells_nothing_of_the_others(keys):
    """Agent 1 is replaced: the keys of all pairs without it are the same, those with it are all new."""
    others = list(keys)
    others[1] = new_private_key()
    before, after = ends(keys), ends(others)
    for i, j in itertools.combinations(range(AGENTS), 2):
        if 1 in (i, j):
            assert before[j if i == 1 else i].key(i, j) != after[j if i == 1 else i].key(i, j)
        else:
            assert before[i].key(i, j) == after[i].key(i, j)


def test_no_agent_can_ask_for_a_secret_of_others(keys):
    with pytest.raises(ValueError, match="Agent 0 does not know the secret of agents 1 and 2"):
        ends(keys)[0].key(1, 2)
    with pytest.raises(ValueError, match="does not know"):
        words(ends(keys)[0], 1, 2)


def test_each_agent_computes_its_own_mask_and_they_cancel(keys):
    all_ends = ends(keys)
    masks = np.array([my_mask(end, end.me, AGENTS, 3, 50.0) for end in all_ends])
    assert (masks.sum(axis=0) == 0.0).all()
    assert np.abs(masks).min() > 0.0
    seals = np.array([my_seal(end, end.me, AGENTS, 3) for end in all_ends])
    assert (seals.sum(axis=0, dtype=np.uint64) == 0).all()


@pytest.mark.parametrize("make", [lambda keys: SeededPairs(3), lambda keys: ends(keys)[0]], ids=["seeded", "agreed"])
def test_every_purpose_and_every_turn_has_words_of_its_own(keys, make):
    secrets = make(keys)
    drawn = {words(secrets, 0, j, purpose, turn) for j in (1, 2) for purpose in (MASK, SEAL, LINK) for turn in range(5)}
    assert len(drawn) == 30
    assert words(secrets, 0, 1) == words(secrets, 1, 0) == words(secrets, 0, 1)


def test_seeded_pairs_depend_on_the_seed_and_on_both_agents():
    found = {SeededPairs(seed).key(i, j) for seed in (0, 1, 2**63) for i, j in itertools.combinations(range(40), 2)}
    assert len(found) == 3 * 780
    assert SeededPairs(7).key(3, 9) == SeededPairs(7).key(9, 3)


def test_the_private_key_is_not_shown(keys):
    assert repr(keys[0]) not in repr(ends(keys)[0])


def test_bad_keys_are_refused_in_sentences(keys):
    public = tuple(public_key_of(key) for key in keys)
    with pytest.raises(ValueError, match="does not belong to public key 1"):
        AgreedPairs(1, keys[0], public, "run")
    with pytest.raises(ValueError, match="same public key"):
        AgreedPairs(0, keys[0], (public[0], public[0]), "run")
    with pytest.raises(ValueError, match="There is no agent 9"):
        AgreedPairs(9, keys[0], public, "run")
    with pytest.raises(ValueError, match="The public key of agent 1 is not 32 bytes"):
        AgreedPairs(0, keys[0], (public[0], b"short"), "run")
    with pytest.raises(ValueError, match="public key of agent 1 is no good"):
        AgreedPairs(0, keys[0], (public[0], bytes(32)), "run").key(0, 1)
    with pytest.raises(ValueError, match="The seed is -1"):
        SeededPairs(-1)


def test_without_the_package_the_remedy_is_named(monkeypatch, keys):
    real = builtins.__import__

    def missing(name: str, *rest: Any, **more: Any) -> Any:
        if name.startswith("cryptography"):
            raise ImportError(name)
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(ImportError, match=r"pip install 'roundelay\[ring\]'"):
        new_private_key()
