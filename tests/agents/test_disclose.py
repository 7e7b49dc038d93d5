"""What is said to leave a site is what leaves it: the page against every message of real runs, and what it says of plans that are bad."""

from __future__ import annotations

import json
import math
import re
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from typer.testing import CliRunner

import roundelay as rl
from roundelay.agents.agreement.epochs import plan_ring
from roundelay.agents.agreement.plan import RingPlan, Stopping, Task
from roundelay.agents.agreement.policy import POLICY, Policy, text_of
from roundelay.agents.agreement.ringfile import SignedPlan
from roundelay.agents.data.fitting import own_sums_of, sums_of
from roundelay.agents.data.regressing import RegressionFit
from roundelay.agents.links.transport import MemoryTransport
from roundelay.agents.protocol.baton import Baton, Phase, pack_baton, unpack_baton
from roundelay.agents.protocol.holder import STATISTICS, Holder, layout_of
from roundelay.agents.protocol.signing import MaskKey
from roundelay.agents.protocol.wire import Kind, unpack_frame
from roundelay.agents.site import taking_part
from roundelay.agents.site.disclosure import Disclosure, disclosure, document_of
from roundelay.agents.site.leaving import Message, Told, also_answered, messages_of, named_sums, told_of
from roundelay.algorithms.sealed.questions import Asked, asked_in, numbers_told
from roundelay.algorithms.sealed.shared_noise import gaussian_delta
from roundelay.cli.app import app
from roundelay.masks import new_private_key
from roundelay.regression.pooled import rows_of
from roundelay.shown.document import as_html
from tests.agents.conftest import COLUMNS, invited, site
from tests.agents.hospitals import SEALED, TASK, Hospitals
from tests.agents.regression_rings import Drawn, Frames, hand_overs, plan_of, regression_of
from tests.agents.test_private_ring import plan_of as private_plan, task_of

NOW = datetime(2026, 3, 4, 5, 6, tzinfo=UTC)
NAMES = ("Oslo", "Bergen", "Tromso", "Narvik", "Alta")
TOKEN = rl.PIADMM1(rho=1.0, start=rl.SealedStart())


class Left(NamedTuple):
    """A frame that has left a site."""

    kind: Kind
    phase: Phase | None
    purpose: int
    words: int
    beside: int


def left_by(baton: Baton) -> Left:
    return Left(Kind.BATON, baton.phase, baton.purpose, len(baton.numbers), len(baton.beside))


def fits(message: Message, one: Left) -> bool:
    return (one.kind, one.phase) == (message.kind, message.phase) and (
        one.purpose in message.purposes or not message.purposes
    )


def held_against(plan: RingPlan, frames: dict[int, list[Left]]) -> set[Message]:
    """Every frame stands on its site's page with its size, and each line leaves as often as it says; the lines of which there was one."""
    seen = set()
    for me, left in frames.items():
        messages, counts = messages_of(plan, me), Counter[int]()
        for one in left:
            places = [place for place, message in enumerate(messages) if fits(message, one)]
            assert len(places) == 1, (one, places)
            message = messages[places[0]]
            assert one.words in message.words and one.beside in message.beside, (one, message)
            counts[places[0]] += 1
        for place, message in enumerate(messages):
            assert counts[place] in message.times, (counts[place], message)
            seen |= {message} if counts[place] else set()
    return seen


def never_left(plan: RingPlan, seen: set[Message]) -> list[tuple[str, str]]:
    """The lines of the page, but for what is sent as needed, of which nothing has left any site."""
    lines = {message for me in range(plan.agents) for message in messages_of(plan, me)} - seen
    seen_anywhere = {(message.phase, message.purposes) for message in seen}
    return [
        (message.phase.name, message.says)
        for message in lines
        if message.phase is not None and (message.phase, message.purposes) not in seen_anywhere
    ]


def own_numbers(plan: RingPlan, left: Iterable[Left]) -> dict[str, set[int]]:
    """How many numbers of a site went into what: counted in the words themselves."""
    found: dict[str, set[int]] = {}
    names = [name for name, _, _ in named_sums(plan)]
    own = own_sums_of(plan.task)
    for one in left:
        if one.phase == Phase.SUM and one.purpose < len(names):
            found.setdefault(names[one.purpose], set()).add(one.words // STATISTICS.words - 1)
        elif one.phase == Phase.SUM:
            found.setdefault("start", set()).add(one.words)
        elif one.phase == Phase.ITERATE:
            found.setdefault("token", set()).add(one.words)
        elif one.phase == Phase.ASK and asked_in(one.purpose) != Asked.NOTHING:
            words = one.words - numbers_told(one.purpose, plan.dim, own)
            found.setdefault(f"{asked_in(one.purpose).name}", set()).add(words // plan.algorithm.grid.words - 1)
    return found


def check_told(plan: RingPlan, left: Iterable[Left]) -> None:
    """The numbers that are told of are those that the words have."""
    counted, told = own_numbers(plan, left), told_of(plan)
    by_name = {one.name: one.numbers for one in told}
    for name, numbers in counted.items():
        if name in by_name:
            assert numbers == {by_name[name]}, name
    fit: list[Told] = [
        one for one in told if one.stage == "the fit" and one.name not in by_name.keys() & counted.keys()
    ]
    asked = sorted(
        next(iter(one))
        for name, one in counted.items()
        if name not in by_name and name not in ("FIRST_LOOK", "SECOND_LOOK")
    )
    assert asked == sorted(one.numbers for one in fit)
    looks = [one.numbers for one in told if one.stage == "after the fit" and plan.choice is not None]
    assert looks == [next(iter(counted[name])) for name in ("FIRST_LOOK", "SECOND_LOOK") if name in counted]


# ---------------------------------------------------------------- regressions, member by member

FORMULAS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("length ~ age + C(sex)", "gaussian", {"errors": "hc3"}),
    ("ill ~ age * C(sex) + site", "binomial", {"by": "sex", "heterogeneity": True}),
    ("Surv(time, died) ~ age + sex", "cox", {}),
    ("ill ~ age + dose + C(sex)", "binomial", {"ridge": 1.0, "folds": 3}),
    ("visits ~ age + offset(dose)", "poisson", {"table_one": False, "diagnostics": False}),
)


def played(frames: Frames, formula: str, family: str, **planned: Any) -> tuple[RingPlan, dict[int, list[Left]]]:
    """Every hand-over of a run with real keys for masks, by who has sent it."""
    regression = regression_of(frames, formula, family, **planned)
    plan = plan_of(tuple(frames), regression)
    own = [RegressionFit(plan.task, rows_of(regression, frame, name, "drop")) for name, frame in frames.items()]
    ring = [Holder(plan, me, one, 1, MaskKey(new_private_key()), ring="ab" * 32) for me, one in enumerate(own)]
    sent: dict[int, list[Left]] = {me: [] for me in range(plan.agents)}
    sender = plan.order[0]
    for move in hand_overs(ring):
        pieces = pack_baton(move.baton, plan.agents)
        arrived = unpack_baton(memoryview(b"".join(bytes(piece) for piece in pieces)), ring[sender].layout)
        sent[sender].append(left_by(arrived))
        sender = move.receiver
    return plan, sent


@pytest.mark.parametrize(
    ("formula", "family", "planned"), FORMULAS, ids=lambda one: one if isinstance(one, str) else ""
)
def test_what_leaves_a_regression_is_on_the_page_and_nothing_else(
    formula: str, family: str, planned: dict[str, Any]
) -> None:
    plan, sent = played(Drawn().frames(), formula, family, **planned)
    assert never_left(plan, held_against(plan, sent)) == []
    check_told(plan, [one for left in sent.values() for one in left])


# ---------------------------------------------------------------- real agents, frame by frame


@pytest.fixture
def hospitals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Hospitals:
    return Hospitals(tmp_path, monkeypatch, NAMES[:4])


def tapped(hospitals: Hospitals, ring: SignedPlan, monkeypatch: pytest.MonkeyPatch) -> dict[int, list[Left]]:
    """All frames that real agents have handed to their links, as they were packed."""
    frames: dict[int, list[bytes]] = {me: [] for me in range(ring.plan.agents)}

    class Tapped(MemoryTransport):
        async def send(self, peer: int, data: bytes) -> bool:
            frames[self.me].append(data)
            return await super().send(peer, data)

    def plug(plan: RingPlan, me: int, *_: object) -> MemoryTransport:
        return Tapped(hospitals.switch, me, plan.neighbours[me])

    monkeypatch.setattr(taking_part, "GrpcTransport", plug)
    hospitals.finish(hospitals.accept(ring))
    # What is sent again is the same to the byte: anything else would count as one more.
    return {me: [read(ring.plan, data) for data in dict.fromkeys(sent)] for me, sent in frames.items()}


def read(plan: RingPlan, data: bytes) -> Left:
    """A frame by its own header; of a baton all behind the numbers is what its phase has there."""
    frame = unpack_frame(data, plan.run_bytes)
    if frame.kind != Kind.BATON:
        return Left(frame.kind, None, 0, 0, len(frame.body))
    phase, purpose = Phase(frame.body[0]), frame.body[1]
    beside = next(message.beside.least for message in messages_of(plan) if message.phase == phase)
    head = 24 + 8
    return Left(frame.kind, phase, purpose, (len(frame.body) - head - beside) // 8, beside)


@pytest.mark.parametrize("kind", ["sums", "labels", "token", "noise"])
def test_what_leaves_real_agents_is_on_the_page_and_nothing_else(
    kind: str, hospitals: Hospitals, monkeypatch: pytest.MonkeyPatch
) -> None:
    ring = ring_to_tap(kind, hospitals)
    plan = ring.plan
    sent = tapped(hospitals, ring, monkeypatch)
    assert never_left(plan, held_against(plan, sent)) == []
    left = [one for sent_by in sent.values() for one in sent_by]
    assert {Kind.HELLO, Kind.BATON, Kind.ACK, Kind.RECEIPT} <= {one.kind for one in left}
    check_told(plan, left)


def ring_to_tap(kind: str, hospitals: Hospitals) -> SignedPlan:
    if kind == "labels":
        for table in hospitals.tables.values():
            table[:, 2] = 2.0 * (table[:, 2] > table[:, 2].mean()) - 1.0
        return hospitals.plan(task=replace(TASK, kind="logistic", ridge=1e-3))
    if kind == "token":
        return hospitals.plan(algorithm=TOKEN)
    if kind == "sums":
        return hospitals.plan()
    task = replace(task_of("least_squares"), features=COLUMNS[:2], target=COLUMNS[2])
    plan = private_plan(task, 4)
    return hospitals.signed(replace(hospitals.plan().plan, algorithm=plan.algorithm, task=task), "Oslo")


# ---------------------------------------------------------------- what the page says


def page_of(ring: SignedPlan, folder: Path | None = None, local: Any = None) -> Disclosure:
    return disclosure(ring, NOW, folder, local)


def by_who(found: Disclosure, words: str) -> Any:
    (one,) = (reader for reader in found.readers if words in reader.who)
    return one


def usual(hospitals: Hospitals, name: str) -> Path:
    """The folder of a site that has changed nothing of its policy."""
    folder = hospitals.folder / name
    (folder / POLICY).write_text(text_of(Policy()))
    return folder


def test_sealed_laps_tell_nothing_of_one_site_but_to_all_others(hospitals: Hospitals) -> None:
    found = page_of(hospitals.plan(), usual(hospitals, "Oslo"))
    whole = sum(one.numbers for one in found.told)
    assert [(one.name, one.numbers) for one in found.told] == [
        ("rows and sums", 4), ("spreads", 3), ("slope, curvature", 5), ("slope", 2),
    ]  # fmt: skip
    known = {reader.who: (reader.known, reader.of) for reader in found.readers if reader.of}
    nothing = [who for who, numbers in known.items() if numbers == (0, whole)]
    assert any("your neighbours Bergen and Narvik together" in who and "N − 2 = 2" in who for who in nothing)
    assert by_who(found, "all 3 others together").known == by_who(found, "while the run goes on").known == whole
    assert by_who(found, "after the run").learns == "nothing"
    assert not found.is_refused and found.broken == () and found.earlier == ()
    assert {one.name: one.state for one in found.entries}["least_rows"] == "looked at with the data"


def test_with_its_rows_a_site_is_held_against_what_only_they_tell(hospitals: Hospitals) -> None:
    ring, folder = hospitals.plan(), usual(hospitals, "Oslo")
    assert not page_of(ring, folder, hospitals.local("Oslo", TASK)).is_refused
    hospitals.tables["Oslo"] = hospitals.tables["Oslo"][:6]
    found = page_of(ring, folder, hospitals.local("Oslo", TASK))
    assert [one.name for one in found.broken] == ["least_rows"] and found.rows == 6 and found.is_refused


def test_a_token_tells_the_neighbours_the_curvature(hospitals: Hospitals) -> None:
    found = page_of(hospitals.plan(algorithm=TOKEN), usual(hospitals, "Oslo"))
    neighbours, others = by_who(found, "your neighbours Bergen and Narvik together"), by_who(found, "all 3 others")
    assert (neighbours.learns, neighbours.known) == ("much", 3) and "X't" not in neighbours.works_out
    assert others.learns == "all of it" and others.known == others.of == 2 + 3 + 2 + 7
    assert by_who(found, "thief who takes the folders").known == 3
    assert not found.is_refused


def test_a_plan_that_hides_nothing_names_every_entry_that_it_breaks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three members, one of them on both sides of the others, and masks that are rounded to nothing."""
    hospitals = Hospitals(tmp_path, monkeypatch, NAMES[:3])
    voided = rl.PIADMM1(rho=1e13, start=rl.SealedStart(bits=0))
    star = [("Bergen", "Oslo"), ("Bergen", "Tromso")]
    members = [invited(site(name)) for name in NAMES[:3]]
    ring = hospitals.signed(plan_ring(members, star, voided, TASK, Stopping(None, 300)), "Oslo")
    found = page_of(ring, usual(hospitals, "Oslo"))
    assert {one.name for one in found.broken} == {"least_members", "least_bits", "hub_beside_me"}
    hub = by_who(found, "Bergen, who stands alone on both sides of you")
    assert "X't" in hub.works_out and hub.known == 7
    html = as_html(document_of(found))
    for words in ("Not as the site allows", "hub_beside_me", "unless both others work together", "X&#x27;t"):
        assert words in html, words
    # Whoever plans it sees the same without a folder, by the policy that sites have who have changed nothing.
    assert {one.name for one in page_of(ring).broken} == {"least_members", "least_bits", "hub_beside_me"}


def test_one_site_more_than_in_an_earlier_sum_is_told_of_before_it_is_summed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hospitals = Hospitals(tmp_path, monkeypatch, NAMES)
    first = hospitals.accept(hospitals.plan(*NAMES[:4]))
    hospitals.finish(first)
    again = page_of(first, usual(hospitals, "Oslo"))
    assert again.begun and again.earlier == () and "has begun to leave" in as_html(document_of(again))
    found = page_of(hospitals.plan(), usual(hospitals, "Oslo"))
    assert [one.name for one in found.broken] == ["least_change"] and len(found.earlier) == 1
    assert "what Alta's data alone gave: its X'X and X't" in found.refused[0] and found.refused[0] in as_html(
        document_of(found)
    ).replace("&#x27;", "'")
    fine = page_of(hospitals.plan(*NAMES[:4]), usual(hospitals, "Oslo"))
    assert not fine.is_refused and len(fine.earlier) == 1 and not fine.begun


def test_noise_keeps_its_promise_against_as_many_as_it_is_made_for(hospitals: Hospitals) -> None:
    ring = ring_to_tap("noise", hospitals)
    found = page_of(ring, usual(hospitals, "Oslo"))
    assert [one.cover for one in found.told] == ["masks and noise"]
    assert "the promised ε = 1 at" in by_who(found, "any one of the other").works_out
    # Against all others there is this site's own share alone: by its deviations, as the noise has them, and by the definition.
    noise = ring.plan.noise
    assert noise is not None
    own = [[one / math.sqrt(noise.honest) for one in noise.promised(lap)] for lap in range(len(noise.laps))]
    records = noise.clip_row * noise.clip_slope, noise.most_curvature * noise.clip_row**2
    mu = math.sqrt(sum((most / sigma) ** 2 for lap in own for most, sigma in zip(records, lap, strict=True)))
    said = re.search(r"ε = ([0-9.]+) at", by_who(found, "all 3 others").works_out)
    assert said is not None and float(said[1]) > 1.5
    assert gaussian_delta(1.0 / mu, float(said[1])) == pytest.approx(1e-6, rel=0.1)


def test_a_formula_around_one_person_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    frames = Drawn(rows=30).frames()
    hospitals = Hospitals(tmp_path, monkeypatch, NAMES[:4])
    oldest = sorted(frames["site0"]["age"])[-2]
    regression = regression_of(frames, f"length ~ age + I(age > {oldest!r})")
    ring = hospitals.signed(
        replace(hospitals.plan().plan, task=Task("regression", missing="drop", regression=regression)), "Oslo"
    )
    local = RegressionFit(ring.plan.task, rows_of(regression, frames["site0"], "Oslo", "drop"))
    assert [one.name for one in page_of(ring, usual(hospitals, "Oslo")).broken] == ["allowed_calculations"]
    found = page_of(ring, hospitals.folder / "Oslo", local)
    assert [one.name for one in found.broken] == ["allowed_calculations", "least_rows_a_level"]


# ---------------------------------------------------------------- the command


def run(*words: object) -> Any:
    return CliRunner().invoke(app, ["disclose", *map(str, words)])


def test_the_command_says_it_writes_it_and_ends_by_it(hospitals: Hospitals) -> None:
    good, bad = hospitals.folder / "good.toml", hospitals.folder / "bad.toml"
    good.write_bytes(hospitals.plan().text)
    bad.write_bytes(hospitals.plan("Oslo", "Bergen").text)
    folder = usual(hospitals, "Oslo")
    said = run(good, "--folder", folder)
    assert said.exit_code == 0, said.output
    for words in (
        "What Oslo discloses",
        "Digest of the ring file",
        "WHO LEARNS WHAT",
        "WHAT REMAINS, AND IS NOT PROMISED",
        "least_members",
    ):
        assert words in said.stdout, words
    said = run(bad, "--folder", folder, "--json")
    told = json.loads(said.stdout)
    assert said.exit_code == 1 and told["is_refused"] and told["site"] == "Oslo"
    assert [one["name"] for one in told["entries"] if one["state"] == "broken"] == ["least_members"]
    assert {one["kind"] for one in told["messages"]} == {kind.name for kind in Kind}
    for words, why in (((good, "--data", "x.csv"), "name its folder, too"), ((folder / "none.toml",), "can't be used")):
        refused = run(*words)
        assert refused.exit_code == 2 and why in refused.stderr, refused.output
    outsider = run(bad, "--folder", hospitals.folder / "Tromso")
    assert outsider.exit_code == 2 and "no member 'Tromso'" in outsider.stderr


def test_the_files_are_whole_by_themselves(hospitals: Hospitals) -> None:
    pypdf = pytest.importorskip("pypdf")
    ring, html, pdf = (hospitals.folder / name for name in ("ring.toml", "page.html", "page.pdf"))
    signed = hospitals.plan()
    ring.write_bytes(signed.text)
    said = run(ring, "--folder", usual(hospitals, "Oslo"), "--html", html, "--pdf", pdf)
    assert said.exit_code == 0, said.output
    text, read = html.read_text(), pypdf.PdfReader(pdf)
    printed = "\n".join(page.extract_text() for page in read.pages)
    assert read.metadata.title == "What Oslo discloses"
    for words in (
        signed.digest,
        rl.__version__,
        "Bergen",
        "Narvik",
        "least_members",
        "BATON ASK",
        "a tap on the links",
    ):
        assert words in text, words
        assert words in printed.replace("\n", ""), words
    assert "<script" not in text and "http" not in text.replace("http-equiv", "") and "src=" not in text


def test_a_pdf_without_its_package_is_named_in_a_sentence(
    hospitals: Hospitals, monkeypatch: pytest.MonkeyPatch
) -> None:
    ring = hospitals.folder / "ring.toml"
    ring.write_bytes(hospitals.plan().text)
    monkeypatch.setitem(sys.modules, "fpdf", None)
    said = run(ring, "--pdf", hospitals.folder / "page.pdf")
    assert said.exit_code == 2 and "pip install 'roundelay[pdf]'" in said.stderr
    assert not (hospitals.folder / "page.pdf").exists()


# ---------------------------------------------------------------- plans of every kind

KINDS: tuple[tuple[str, Any, dict[str, Any]], ...] = (
    ("least squares", SEALED, {}),
    ("labels", SEALED, {"task": replace(TASK, kind="logistic")}),
    ("directions", rl.SealedLaps("conjugate-gradients"), {}),
    ("many unknowns", rl.SealedLaps(), {"task": Task("custom", dim=5000)}),
    ("own objective", rl.SealedLaps(), {"task": Task("custom", dim=3)}),
    ("later epoch", SEALED, {"epoch": 2, "previous": "ab" * 32}),
    ("token", rl.IADMM(rho=1.0), {}),
    ("token of labels", TOKEN, {"task": replace(TASK, kind="logistic")}),
    ("token, later epoch", TOKEN, {"epoch": 1, "previous": "ab" * 32}),
    ("token, warm", TOKEN, {"warm": True}),
    ("random walk", rl.WADMM(rho=1.0), {}),
    ("no shares", rl.WPG(alpha=0.1), {}),
)


@pytest.mark.parametrize(("name", "algorithm", "changes"), KINDS, ids=lambda one: one if isinstance(one, str) else "")
@pytest.mark.parametrize("agents", [2, 5])
def test_whatever_a_member_would_take_is_on_the_page(
    name: str, algorithm: Any, changes: dict[str, Any], agents: int
) -> None:
    """Every baton that fits the ring's agreement has a line, with its size, or is said to be answered besides."""
    members = [invited(site(one)) for one in NAMES[:agents]]
    plan = replace(plan_ring(members, None, algorithm, TASK, Stopping(1e-9)), **changes)
    layout, messages = layout_of(plan, sums_of(plan.task)), messages_of(plan)
    besides = {*also_answered(plan)} if plan.choice is not None else set()
    for phase in Phase:
        for purpose in range(256):
            numbers = layout.numbers(phase, purpose)
            statistics = phase == Phase.SUM and purpose < len(sums_of(plan.task))
            unused = (phase == Phase.SUM and purpose >= len(sums_of(plan.task)) and not any(one.name == "start" for one in told_of(plan))) or (
                statistics and plan.choice is None and plan.epoch > 0
            ) or (phase == Phase.ITERATE and purpose > 0)  # fmt: skip
            if numbers is None or unused or (phase == Phase.ASK and asked_in(purpose) in besides):
                continue
            fitting = [one for one in messages if one.phase == phase and purpose in one.purposes]
            assert len(fitting) == 1, (phase, purpose)
            assert numbers in fitting[0].words or (phase == Phase.FROZEN and plan.choice is not None), (
                phase,
                purpose,
                numbers,
            )
            assert layout.beside(phase) in fitting[0].beside
    signed = SignedPlan(plan, NAMES[0], "ab" * 32, b"")
    found = page_of(signed)
    whole = found.readers[-2 if plan.choice is not None else -3 + (agents == 2)]
    assert all(0 <= one.known <= one.of for one in found.readers) and whole.known == whole.of
    assert as_html(document_of(found)).count("<section>") == 8
