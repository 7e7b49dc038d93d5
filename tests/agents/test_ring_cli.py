import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from roundelay.agents.agreement.folder import accepted_plans
from roundelay.agents.agreement.identity import load_identity
from roundelay.agents.agreement.invitations import read_invitation
from roundelay.agents.agreement.plan import Column
from roundelay.agents.agreement.policy import ANYTHING, POLICY, write_policy
from roundelay.cli.app import app

COMMANDS = ("init", "identity", "rekey", "plan", "show", "accept", "drop", "join", "renew", "ledger", "status")
Ring = Callable[..., Any]


@pytest.fixture
def ring(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ring:
    """`roundelay ring …` in a folder where each of three sites has made its identity; the answers go to stdin."""
    monkeypatch.chdir(tmp_path)
    Path("data.csv").write_text("age [years],length [cm],outcome\n1,2,3\n")

    def run(*words: str, answers: str = "") -> Any:
        return CliRunner().invoke(app, ["ring", *words], input=answers)

    for name in ("Oslo", "Bergen", "New York"):
        made = run(*init(name))
        assert made.exit_code == 0, made.output
        lax(name)
    return run


def lax(name: str) -> None:
    """What a site refuses by its policy is in tests/adversary."""
    path = Path(name, POLICY)
    path.unlink()
    write_policy(path.parent, ANYTHING)


def init(name: str, folder: str | None = None) -> tuple[str, ...]:
    return ("init", "--folder", folder or name, "--name", name, "--address", "host.example.org:7443",
            "--data", "data.csv", "--target", "outcome")  # fmt: skip


def invitations(*names: str) -> list[str]:
    return [f"{name}/{name.replace(' ', '-')}.invitation.toml" for name in names or ("Oslo", "Bergen", "New York")]


def planned(ring: Ring, *more: str) -> dict[str, Any]:
    """What `plan` says of the ring file that it wrote."""
    said = ring("plan", *invitations(), *PLAN, *more, "--json")
    assert said.exit_code == 0, said.output
    told: dict[str, Any] = json.loads(said.stdout)
    return told


PLAN = ("--folder", "Oslo", "--task", "logistic", "--target", "outcome", "--out", "ring.toml")


def refused(said: Any, words: str) -> None:
    assert said.exit_code == 2, said.output
    assert words in said.stderr, said.stderr
    assert said.stdout == "" and "Traceback" not in said.stderr


def test_the_whole_way(ring: Ring) -> None:
    told = planned(ring)
    assert told["algorithm"]["kind"] == "SealedLaps" and told["algorithm"]["wide"] is True
    assert told["algorithm"]["optimiser"] == {"kind": "Auto"}
    assert (
        told["signed_by"] == "Oslo" and told["epoch"] == 0 and sorted(told["order"]) == ["Bergen", "New York", "Oslo"]
    )
    shown = ring("show", "ring.toml")
    for name in ("Oslo", "Bergen", "New York"):
        who = json.loads(ring("identity", "--folder", name, "--json").stdout)
        assert who["name"] == name and who["fingerprint"] in shown.stdout
        said = ring("accept", "ring.toml", "--folder", name, answers="y\n")
        assert said.exit_code == 0 and who["fingerprint"] in said.stdout
        assert "a logistic model of outcome from age [years], length [cm]" in said.stdout
        assert [one.digest for one in accepted_plans(Path(name))] == [told["digest"]]


def test_an_operator_may_say_no(ring: Ring) -> None:
    planned(ring)
    for answers in ("n\n", ""):
        said = ring("accept", "ring.toml", "--folder", "Oslo", answers=answers)
        assert said.exit_code == 130 and "Nothing was accepted." in said.stderr
    assert accepted_plans(Path("Oslo")) == ()
    refused(ring("accept", "ring.toml", "--folder", "Oslo", "--json"), "With --json nothing is asked")
    said = ring("accept", "ring.toml", "--folder", "Oslo", "--json", "--yes")
    assert json.loads(said.stdout)["new"] == [] and len(accepted_plans(Path("Oslo"))) == 1


def test_new_keys_are_made_in_place(ring: Ring) -> None:
    planned(ring)
    for name in ("Oslo", "Bergen", "New York"):
        ring("accept", "ring.toml", "--folder", name, "--yes")
    old = json.loads(ring("identity", "--folder", "Bergen", "--json").stdout)["fingerprint"]
    assert ring("plan", *invitations(), *PLAN[:-1], "again.toml").exit_code == 0
    shutil.copy(invitations("Bergen")[0], "old.toml")
    said = ring("rekey", "--folder", "Bergen")
    assert said.exit_code == 0 and old not in said.stdout, said.output
    (invitation,) = invitations("Bergen")
    read = read_invitation(Path(invitation).read_bytes(), invitation)
    assert read.address == "host.example.org:7443" and len(read.columns) == 3
    # It signs with the key that the ring knows, also now; not its own renewal, which nobody could check.
    assert ring("drop", "ring.toml", "New York", "--folder", "Bergen", "--out", "dropped.toml").exit_code == 0
    renewal = ("renew", "ring.toml", invitation, "--out", "ring-1.toml")
    refused(ring(*renewal, "--folder", "Bergen"), "can't sign its own change, so let another member sign it")
    assert ring(*renewal, "--folder", "Oslo").exit_code == 0
    for name in ("Oslo", "Bergen", "New York"):
        told = ring("accept", "ring-1.toml", "--folder", name, "--yes")
        assert told.exit_code == 0 and "Bergen has a new certificate" in told.stdout, told.output
    # The old key does not come back, neither in this run nor in another.
    assert ring("renew", "ring-1.toml", "old.toml", "--folder", "Oslo", "--out", "ring-2.toml").exit_code == 0
    refused(
        ring("accept", "ring-2.toml", "--folder", "Bergen", "--yes"), "certificate of Bergen in the ring file is not"
    )
    refused(
        ring("accept", "again.toml", "--folder", "Bergen", "--yes"), "certificate of Bergen in the ring file is not"
    )
    refused(ring("rekey", "--folder", "nowhere"), "has no whole identity")
    Path(invitation).unlink()
    refused(ring("rekey", "--folder", "Bergen"), "are taken, is not there: restore it")
    assert len(list(Path("Bergen").glob("keys-*"))) == 1


def test_an_edited_file_is_refused(ring: Ring) -> None:
    planned(ring)
    text = Path("ring.toml").read_bytes()
    Path("ring.toml").write_bytes(text.replace(b"bits = 44", b"bits = 43"))
    for command in (("show", "ring.toml"), ("accept", "ring.toml", "--folder", "Bergen", "--yes")):
        refused(ring(*command), "The signature of Oslo does not fit ring.toml")


def test_changes_are_shown_before_they_are_accepted(ring: Ring) -> None:
    planned(ring)
    for name in ("Oslo", "Bergen", "New York"):
        ring("accept", "ring.toml", "--folder", name, "--yes")
    assert ring(*init("Tromso")).exit_code == 0
    lax("Tromso")
    assert ring(*init("Bergen", "new")).exit_code == 0
    steps = (
        ("join", ("ring.toml", *invitations("Tromso")), "Tromso joins."),
        ("renew", ("ring-1.toml", "new/Bergen.invitation.toml"), "Bergen has a new certificate: compare its"),
        ("drop", ("ring-2.toml", "New York"), "New York leaves."),
    )
    for epoch, (command, words, told) in enumerate(steps, start=1):
        made = ring(command, *words, "--folder", "Oslo", "--out", f"ring-{epoch}.toml")
        assert made.exit_code == 0 and f"epoch {epoch}, signed by Oslo" in made.stdout, made.output
        said = ring("accept", f"ring-{epoch}.toml", "--folder", "Oslo", answers="y\n")
        assert said.exit_code == 0, said.output
        assert f"New against epoch {epoch - 1}:\n  {told}" in said.stdout
    said = ring("accept", "ring-3.toml", "--folder", "Tromso", "--yes")
    assert said.exit_code == 2 and "This ring has run before Tromso came." in said.stderr
    assert ring("accept", "ring-3.toml", "--folder", "Tromso", "--yes", "--despite-difference").exit_code == 0
    refused(ring("accept", "ring-3.toml", "--folder", "New York", "--yes"), "New York is not a member of this ring")
    shown = json.loads(ring("show", "ring-3.toml", "--json").stdout)
    assert sorted(member["name"] for member in shown["members"]) == ["Bergen", "Oslo", "Tromso"]


def test_a_change_is_signed_by_an_old_member_that_stays(ring: Ring) -> None:
    planned(ring)
    ring(*init("Tromso"))
    ring(*init("Bergen", "new"))
    refused(
        ring("join", "ring.toml", *invitations("Tromso"), "--folder", "Tromso", "--out", "x.toml"),
        "signed by Tromso with a certificate that no member had in epoch 0",
    )
    for folder, words in (
        ("new", "signed by Bergen with a certificate"),
        ("Bergen", "Bergen can't sign this ring file"),
    ):
        renewal = ring("renew", "ring.toml", "new/Bergen.invitation.toml", "--folder", folder, "--out", "x.toml")
        refused(renewal, words)
    refused(ring("drop", "ring.toml", "Oslo", "--folder", "Oslo", "--out", "x.toml"), "Oslo can't sign this ring file")
    assert not Path("x.toml").exists()


def test_the_invitation_has_the_header(ring: Ring) -> None:
    (path,) = invitations("New York")
    read = read_invitation(Path(path).read_bytes(), path)
    assert read.columns == (Column("age", "years"), Column("length", "cm"), Column("outcome"))
    assert read.address == "host.example.org:7443" and read.certificate == load_identity(Path("New York")).certificate


def test_init_refuses_in_words_and_writes_nothing(ring: Ring) -> None:
    start = ("init", "--folder", "more", "--name")
    refused(ring(*start, "a/b"), "A site can't be called 'a/b'")
    refused(ring(*start, "Paris", "--address", "x"), "The address 'x' can't be dialled")
    refused(ring(*start, "Paris", "--days", "0"), "days is 0")
    refused(ring(*start, "Paris", "--target", "age"), "there is no --data")
    refused(ring(*start, "Paris", "--data", "data.csv", "--target", "x"), "There is no column 'x' in data.csv")
    refused(ring(*start, "Paris", "--data", "none.csv"), "none.csv")
    assert not Path("more").exists()
    refused(ring(*init("Oslo")), "has an identity already, and it is never overwritten")


def test_plan_refuses_in_words(ring: Ring) -> None:
    def plan(*more: str) -> Any:
        return ring("plan", *invitations(), *PLAN, *more)

    refused(plan("--target", "weight"), "There is no column 'weight' in the invitations")
    refused(plan("--algorithm", "extra"), "is neither sealed laps nor a method with one token")
    refused(plan("--algorithm", "pwadmm"), "is neither sealed laps nor a method with one token")
    refused(plan("--algorithm", "nothing"), "There is no algorithm called 'nothing'")
    refused(plan("--set", "x=1"), "has no option 'x'")
    refused(plan("--tolerance", "-1"), "tolerance is -1.0")
    refused(plan("--algorithm", "siadmm"), "The ring can't stop by itself within 1e-09: its steps shrink")
    refused(plan("--folder", "data.csv"), "data.csv")
    refused(plan("--out", "nowhere/ring.toml"), "There is no folder nowhere for the ring file")
    refused(plan("--first", "Paris"), "There is no site 'Paris'")
    refused(ring("plan", *invitations("Bergen", "New York"), *PLAN), "Oslo can't sign this ring file")
    refused(ring("plan", "data.csv", *PLAN), "data.csv does not end with a signature")
    for links, words in (("Oslo\n", "Line 1 of links.txt"), ("\n# x\nOslo, x, y\n", "Line 3 of"), ("\x00", "Line 1")):
        Path("links.txt").write_text(links)
        refused(plan("--links", "links.txt"), words)
    ring("init", "--folder", "bare", "--name", "Paris")
    refused(ring("plan", *invitations(), "bare/Paris.invitation.toml", *PLAN), "which Paris lacks")
    assert not Path("ring.toml").exists()


def test_plan_takes_its_options(ring: Ring) -> None:
    Path("links.txt").write_text("# the sites\nOslo Bergen\nOslo, New York\n")
    told = planned(
        ring, "--algorithm", "piadmm1", "--rho", "3", "--set", "start=zero", "--set", "defence=contribution-noise", "--tolerance", "0", "--hops", "9",
        "--ridge", "0.5", "--missing", "drop", "--no-standardise", "--no-intercept", "--links", "links.txt",
        "--first", "New York",
    )  # fmt: skip
    assert told["algorithm"]["rho"] == 3.0 and told["algorithm"]["start"]["kind"] == "ZeroStart"
    assert told["algorithm"]["defence"]["kind"] == "ContributionNoise"
    assert told["stopping"] == {"tolerance": None, "hops": 9, "questions": 200}
    task = told["task"]
    assert (task["ridge"], task["missing"], task["standardise"], task["intercept"]) == (0.5, "drop", False, False)
    assert told["order"] == ["New York", "Oslo", "Bergen", "Oslo"]
    assert told["links"] == [["New York", "Oslo"], ["Oslo", "Bergen"]]
    assert planned(ring, "--algorithm", "wadmm")["algorithm"]["kind"] == "WADMM"
    usual = planned(ring, "--algorithm", "PIADMM1")["algorithm"]
    assert usual["rho"] == 1.0 and usual["start"] == {"kind": "SealedStart", "bits": 40}
    sealed = planned(ring, "--set", "optimiser=lbfgs", "--questions", "50", "--lasso", "0.1", "--no-intercept")
    assert sealed["algorithm"]["optimiser"] == {"kind": "LBFGS"} and sealed["stopping"]["questions"] == 50
    assert sealed["algorithm"]["regulariser"] == {"kind": "L1", "weight": pytest.approx(0.3)}
    assert sealed["stopping"]["tolerance"] == 1e-11


@pytest.mark.parametrize("command", COMMANDS)
def test_every_help_shows_an_example(command: str) -> None:
    said = CliRunner().invoke(app, ["ring", command, "--help"])
    assert said.exit_code == 0
    assert said.stdout.partition("Example:\n")[2].splitlines()[0].strip().startswith(f"roundelay ring {command}")


def test_the_help_waits_for_nothing_heavy() -> None:
    code = (
        "import sys, roundelay.cli\n"
        "sys.argv = ['roundelay', 'ring', 'plan', '--help']\n"
        "try:\n    roundelay.cli.main()\n"
        "except SystemExit as done:\n    assert done.code == 0, done\n"
        "heavy = {'pandas', 'numba', 'cryptography', 'tomli_w', 'roundelay.agents'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


@pytest.mark.parametrize("package", ["cryptography", "tomli_w"])
def test_a_missing_package_is_named(tmp_path: Path, package: str) -> None:
    code = (
        f"import sys\nsys.modules[{package!r}] = None\nimport roundelay.cli\n"
        f"sys.argv = ['roundelay', 'ring', 'init', '--folder', {str(tmp_path / 'x')!r}, '--name', 'Oslo']\n"
        "roundelay.cli.main()\n"
    )
    said = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert said.returncode == 2 and "Traceback" not in said.stderr
    assert package.replace("_", "-") in said.stderr and "pip install 'roundelay[ring]'" in said.stderr
