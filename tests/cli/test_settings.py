import pytest

import roundelay as rl
from roundelay.algorithms.algorithm import Algorithm
from roundelay.cli.settings import algorithm_from, algorithm_named, configured, parts_for, read_value
from roundelay.registry import registered
from roundelay.tables import options_of


@pytest.mark.parametrize("name", ["piadmm1", "PIADMM1", "PI-ADMM1", "pi_admm1", "pi-admm1"])
def test_an_algorithm_goes_by_many_spellings(name: str) -> None:
    assert algorithm_named(name) is rl.PIADMM1


def test_the_papers_names_are_known_too() -> None:
    for kind in registered(Algorithm).values():
        assert algorithm_named(kind.name) is kind


def test_every_algorithm_is_offered() -> None:
    assert {"iadmm", "randomstart", "piadmm1", "piadmm2", "wadmm", "pwadmm", "ipwadmm", "wpg", "siadmm"} <= set(
        registered(Algorithm)
    )


@pytest.mark.parametrize(
    ("kind", "words", "expected"),
    [
        (rl.IADMM, ["rho=3", "first_order=yes"], rl.IADMM(rho=3.0, first_order=True)),
        (rl.IADMM, ["first-order=off"], rl.IADMM(first_order=False)),
        (rl.PIADMM2, ["sigma=1e-2", "sigma_is=variance"], rl.PIADMM2(sigma=1e-2, sigma_is="variance")),
        (rl.PWADMM, ["walks=5"], rl.PWADMM(walks=5)),
        (rl.WADMM, ["walk=uniform"], rl.WADMM(walk=rl.UniformWalk())),
        (rl.WADMM, ["walk=metropolis:true"], rl.WADMM(walk=rl.MetropolisWalk(self_loops_free=True))),
        (rl.PIADMM1, ["start=uniform:-1:1"], rl.PIADMM1(start=rl.UniformStart(-1.0, 1.0))),
        (rl.PIADMM1, ["start=zero"], rl.PIADMM1(start=rl.ZeroStart())),
        (rl.PIADMM1, ["start=zero-sum:50"], rl.PIADMM1(start=rl.ZeroSumStart(50.0))),
        (rl.IADMM, ["start=sealed:44"], rl.IADMM(start=rl.SealedStart(44))),
        (rl.IADMM, ["defence=contribution-noise:2:0.8"], rl.IADMM(defence=rl.ContributionNoise(2.0, 0.8))),
        (rl.WADMM, ["defence=masked-links:44"], rl.WADMM(defence=rl.MaskedLinks(44))),
        (rl.IADMM, ["defence=none"], rl.IADMM()),
        (rl.IADMM, ["regulariser=l1:0.1"], rl.IADMM(regulariser=rl.L1(0.1))),
        (rl.IADMM, ["regulariser=box:-1:2"], rl.IADMM(regulariser=rl.Box(-1.0, 2.0))),
        (rl.EXTRA, ["alpha=0.5"], rl.EXTRA(alpha=0.5)),
        (rl.EXTRA, ["alpha=none"], rl.EXTRA()),
        (rl.EXTRA, ["channel=quantised:4"], rl.EXTRA(channel=rl.Quantised(4))),
        (rl.DADMM, ["channel=topk:1"], rl.DADMM(channel=rl.TopK(1))),
        (rl.DADMM, ["channel=plain"], rl.DADMM(channel=rl.Plain())),
        (rl.DADMM, ["channel=rounded:0.001:yes"], rl.DADMM(channel=rl.Rounded(1e-3, dithered=True))),
        (rl.LEAD, ["channel=signs"], rl.LEAD(channel=rl.Signs())),
        (rl.CHOCO, ["channel=randomk:1"], rl.CHOCO(channel=rl.RandomK(1))),
        (rl.COCA, ["compressor=topshare:0.5"], rl.COCA(compressor=rl.TopShare(0.5))),
        (rl.WeightedADMM, ["penalties=2"], rl.WeightedADMM(penalties=2.0)),
    ],
)
def test_settings_are_read_by_the_type_of_the_field(kind: type, words: list[str], expected: object) -> None:
    made = configured(kind, words)
    assert made == expected
    assert [type(getattr(made, name)) for name in options_of(kind)] == [
        type(getattr(expected, name)) for name in options_of(kind)
    ]


@pytest.mark.parametrize(
    ("kind", "words", "sentence"),
    [
        (rl.IADMM, ["rho"], "has no value: write name=value, for example --set rho=10.0"),
        (rl.IADMM, ["rho=fast"], "rho of I-ADMM can't be 'fast': give a number"),
        (rl.IADMM, ["rho=1", "rho=2"], "set twice"),
        (rl.IADMM, ["first_order=perhaps"], "use true or false"),
        (rl.PWADMM, ["walks=2.5"], "give a whole number"),
        (rl.PIADMM2, ["sigma_is=width"], "use deviation or variance"),
        (rl.WADMM, ["walk=drunk"], "use cycle, metropolis, uniform, closed-uniform, least-visited"),
        (rl.WADMM, ["walk=uniform:1"], "uniform takes no values"),
        (rl.IADMM, ["regulariser=l1"], "write l1:weight"),
        (rl.IADMM, ["start=uniform:0:1:true:4"], "takes low:high:printed_sign"),
        (rl.EXTRA, ["alpha=quick"], "alpha of EXTRA can't be 'quick': give a number"),
        (rl.EXTRA, ["alpha"], "for example --set alpha=0.1"),
        (rl.EXTRA, ["channel=zipped"], "use plain, rounded, quantised, signs, topk, randomk, topshare"),
        (rl.EXTRA, ["channel=quantised:40"], "use a whole number from 1 to 32"),
        (rl.WeightedADMM, ["penalties=1;2"], "penalties of weighted ADMM can't be '1;2': give a number"),
        (rl.OnePass, ["rho=3"], "one pass has no options"),
    ],
)
def test_bad_settings_are_refused_in_words(kind: type, words: list[str], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        configured(kind, words)


def test_every_option_of_every_algorithm_can_be_set() -> None:
    words = {bool: "true", int: "3", float: "0.5"}
    for kind in registered(Algorithm).values():
        for name, wanted in options_of(kind).items():
            default = getattr(kind(), name)
            if wanted in words:
                assert read_value(name, wanted, words[wanted]) == wanted(float(words[wanted]) if wanted is float else 3)
            elif isinstance(default, str):
                assert read_value(name, wanted, default) == default
            elif default is None or isinstance(default, float):
                assert read_value(name, wanted, "0.5") == 0.5
                assert default is not None or read_value(name, wanted, "none") is None
            else:
                assert type(default) in parts_for(wanted).values(), (kind, name)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("iadmm", rl.IADMM()),
        ("coca:c=0.2,alpha=1", rl.COCA(c=0.2, alpha=1.0)),
        ("lead:channel=quantised:4,eta=0.1", rl.LEAD(channel=rl.Quantised(4), eta=0.1)),
        ("PI-ADMM1:start=uniform:0:1", rl.PIADMM1(start=rl.UniformStart(0.0, 1.0))),
        ("onepass:", rl.OnePass()),
    ],
)
def test_an_algorithm_with_its_options_is_one_word(text: str, expected: object) -> None:
    assert algorithm_from(text) == expected


def test_what_has_no_words_is_refused() -> None:
    with pytest.raises(ValueError, match="can't be set from the command line: use Python"):
        read_value("censoring of a channel", rl.Censoring | None, "1:0.85")
