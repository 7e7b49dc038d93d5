"""The page of an agent that takes part in a real ring: who may look, what is shown, and that it is what happens."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import aiohttp
import numpy as np
import pandas as pd
import pytest
from prometheus_client.parser import text_string_to_metric_families

import roundelay.agents.page.server as live
from roundelay.agents.data.models import FinalResiduals, Model, ModelNotes, StoredModel
from roundelay.agents.page import PageError, PageServer
from roundelay.agents.page.metrics import metrics_text
from roundelay.agents.page.server import status_json
from roundelay.agents.site.status import MeterReading, PrivacyStatus, Progress, Status, usual_rounds
from tests.agents.live_ring import NAMES, TOKEN, LiveRing, live_ring
from tests.agents.regression_rings import hand_overs, holders, regression_of
from tests.shown.examples import binomial

PATHS = ("/", "/page.js", "/page.css", "/live", "/status.json", "/metrics", "/nothing-here")


@pytest.fixture(scope="module")
def ring(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveRing]:
    with live_ring(tmp_path_factory.mktemp("ring")) as ring:
        ring.until(lambda: ring.agents[0].station.holder.held.visits > 3)
        yield ring


def root_of(ring: LiveRing) -> str:
    return ring.address.partition("/?")[0]


def ask(ring: LiveRing, path: str, **options: Any) -> tuple[int, str, Any]:
    """Status, text and headers of an answer; a stream is not read."""

    async def asked() -> tuple[int, str, Any]:
        async with aiohttp.ClientSession() as session, session.get(root_of(ring) + path, **options) as answer:
            streams = answer.content_type == "text/event-stream"
            return answer.status, "" if streams else await answer.text(), answer.headers

    return asyncio.run(asked())


def bearer(token: str = TOKEN) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


async def events(answer: aiohttp.ClientResponse) -> AsyncIterator[dict[str, Any]]:
    """The statuses of a stream."""
    async for line in answer.content:
        if line.startswith(b"data: "):
            yield json.loads(line[6:])


# ------------------------------------------------------------ who may look


@pytest.mark.parametrize("path", PATHS)
def test_without_the_token_nothing_is_shown(ring: LiveRing, path: str) -> None:
    status, text, _ = ask(ring, path)
    assert status == 403
    assert re.fullmatch(r"[A-Z][^.]+\.", text)
    for wrong in ("", "x", TOKEN[:-1], TOKEN + "x", "ключ", "%ff"):
        assert ask(ring, path, params={"token": wrong})[0] == 403
        assert ask(ring, path, cookies={cookie_of(ring): "wrong"})[0] == 403
    assert ask(ring, path, headers=bearer("wrong"))[0] == 403
    assert ask(ring, path, headers={"Authorization": f"Basic {TOKEN}"})[0] == 403


@pytest.mark.parametrize("path", PATHS)
def test_with_the_token_all_is_shown_and_what_is_not_there_is_not(ring: LiveRing, path: str) -> None:
    expected = 404 if path == "/nothing-here" else 200
    for shown in ({"params": {"token": TOKEN}}, {"headers": bearer()}, {"cookies": {cookie_of(ring): TOKEN}}):
        assert ask(ring, path, **shown)[0] == expected


def test_a_token_in_the_address_counts_before_the_cookie(ring: LiveRing) -> None:
    assert ask(ring, "/status.json", params={"token": "wrong"}, cookies={cookie_of(ring): TOKEN})[0] == 403
    assert ask(ring, "/status.json", params={"token": TOKEN}, cookies={cookie_of(ring): "wrong"})[0] == 200


def test_a_foreign_host_is_refused_even_with_the_token(ring: LiveRing) -> None:
    port = root_of(ring).rpartition(":")[2]
    for host in ("example.org", f"example.org:{port}", "127.0.0.1", "127.0.0.1:1", f"127.0.0.1.example.org:{port}", ""):
        for path in PATHS:
            status, text, _ = ask(ring, path, params={"token": TOKEN}, headers={"Host": host})
            assert (status, port in text) == (403, True)
    for host in (f"localhost:{port}", f"LOCALHOST:{port}", f"127.0.0.1:{port}"):
        assert ask(ring, "/status.json", params={"token": TOKEN}, headers={"Host": host})[0] == 200


def test_only_this_machine_is_listened_to(ring: LiveRing) -> None:
    assert ring.page is not None and ring.page._listening is not None
    assert [one.getsockname()[0] for one in ring.page._listening.sockets] == ["127.0.0.1"]


def cookie_of(ring: LiveRing) -> str:
    return f"roundelay-{root_of(ring).rpartition(':')[2]}"


def test_the_first_load_sets_a_cookie_that_is_enough_from_then_on(ring: LiveRing) -> None:
    async def browse() -> None:
        jar = aiohttp.CookieJar(unsafe=True)  # for an address that is no name
        async with aiohttp.ClientSession(root_of(ring), cookie_jar=jar) as session:
            async with session.get(f"/?token={TOKEN}") as answer:
                cookie = answer.headers["Set-Cookie"]
            assert "HttpOnly" in cookie and "SameSite=Strict" in cookie and "Domain" not in cookie
            for path in ("/", "/page.js", "/status.json", "/metrics"):
                async with session.get(path) as answer:
                    assert answer.status == 200

    asyncio.run(browse())
    assert "Set-Cookie" not in ask(ring, "/")[2], "a visitor who is refused is given nothing"


def test_every_answer_has_the_headers_that_keep_it_to_itself(ring: LiveRing) -> None:
    for path in PATHS:
        for options in ({}, {"headers": bearer()}):
            headers = ask(ring, path, **options)[2]
            policy = headers["Content-Security-Policy"]
            assert "default-src 'none'" in policy and "frame-ancestors 'none'" in policy and "unsafe" not in policy
            assert headers["Cache-Control"] == "no-store"
            assert headers["X-Content-Type-Options"] == "nosniff"
            assert headers["Referrer-Policy"] == "no-referrer"
            assert "Access-Control-Allow-Origin" not in headers


def test_a_token_of_its_own_is_drawn_each_time_and_a_useless_one_is_refused() -> None:
    async def addresses() -> list[str]:
        servers = [PageServer(lambda: None) for _ in range(3)]  # type: ignore[arg-type, return-value]
        found = [await server.start() for server in servers]
        for server in servers:
            await server.stop()
            await server.stop()
        return found

    tokens = {address.rpartition("=")[2] for address in asyncio.run(addresses())}
    assert len(tokens) == 3 and min(map(len, tokens)) >= 40
    for useless in ("", "a b", "a;b", "ключ", "a&b"):
        with pytest.raises(ValueError, match="letters, digits"):
            PageServer(lambda: None, token=useless)  # type: ignore[arg-type, return-value]


def test_a_port_that_is_taken_is_said_so(ring: LiveRing) -> None:
    port = int(root_of(ring).rpartition(":")[2])
    with pytest.raises(PageError, match=f"port {port}.*Choose another"):
        asyncio.run(PageServer(ring.watches[0].status, port).start())


# ------------------------------------------------------------ what is shown


def test_events_come_as_the_run_goes_on(ring: LiveRing) -> None:
    async def follow() -> list[dict[str, Any]]:
        async with aiohttp.ClientSession() as session, session.get(f"{root_of(ring)}/live", headers=bearer()) as answer:
            assert answer.content_type == "text/event-stream"
            seen: list[dict[str, Any]] = []
            async for status in events(answer):
                seen.append(status)
                places = {
                    one["token_place"] for one in seen
                }  # an estimate: on a loaded machine two looks may find the same
                if status["hop"] >= seen[0]["hop"] + 20 and len(places) > 1:
                    break
            return seen

    seen = asyncio.run(follow())
    assert seen[0]["site"] == NAMES[0]
    assert [status["hop"] for status in seen] == sorted(status["hop"] for status in seen)
    assert len(seen[-1]["residuals"]) > len(seen[0]["residuals"])
    assert all(one != other for one, other in pairwise(seen)), "only what changed is told"


def test_a_paused_agent_is_quiet_but_for_the_heartbeat(ring: LiveRing, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "HEARTBEAT", 0.0)

    async def follow() -> None:
        async with aiohttp.ClientSession() as session, session.get(f"{root_of(ring)}/live", headers=bearer()) as answer:
            async for line in answer.content:
                if line.startswith(b":"):
                    return

    with paused(ring):
        asyncio.run(follow())
        told = json.loads(ask(ring, "/status.json", headers=bearer())[1])
    assert told["doing"] == "paused"


@contextmanager
def paused(ring: LiveRing) -> Iterator[None]:
    """While the block runs, the token stays at site 0."""
    agent = ring.agents[0]
    ring.call(agent.pause)
    # The token may be back before the agent has told its watch of the visit before.
    ring.until(
        lambda: (
            agent.station.journal.inbox() is not None
            and ring.watches[0].residuals[-1] == agent.station.holder.held.residuals
        )
    )
    try:
        yield
    finally:
        ring.call(agent.resume)


def test_readers_that_go_away_leave_nothing_behind(ring: LiveRing) -> None:
    def handlers() -> int:
        return sum("RequestHandler" in repr(task) or "follow" in repr(task) for task in asyncio.all_tasks(ring.loop))

    async def come_and_go() -> int:
        async with aiohttp.ClientSession() as session:
            answers = [await session.get(f"{root_of(ring)}/live", headers=bearer()) for _ in range(5)]
            for answer in answers:
                await anext(events(answer))
            there = ring.call(handlers)
            for answer in answers:
                answer.close()
            return there

    ring.until(lambda: handlers() == 0)
    assert asyncio.run(come_and_go()) >= 5
    ring.until(lambda: handlers() == 0)


def test_a_server_that_stops_lets_its_readers_go(ring: LiveRing) -> None:
    async def follow() -> None:
        server = PageServer(ring.watches[0].status)
        address = await server.start()
        async with aiohttp.ClientSession() as session, session.get(address.replace("/?", "/live?")) as answer:
            stream = events(answer)
            await anext(stream)
            await server.stop()
            async for _ in stream:
                pass  # until the stream ends
            assert answer.content.at_eof()

    asyncio.run(follow())


def test_metrics_are_those_of_the_agent(ring: LiveRing) -> None:
    with paused(ring):
        agent = ring.agents[0]
        before = replace(agent.counts)  # on a loaded machine more is sent again while this looks
        status, text, headers = ask(ring, "/metrics", headers=bearer())
        told = ring.call(ring.watches[0].status)
        held, counts, size = replace(agent.station.holder.held), replace(agent.counts), agent.station.journal.size
    assert status == 200 and headers["Content-Type"].startswith("text/plain")
    samples = {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
    assert samples[("roundelay_hops",)] == held.hop > 0
    assert samples[("roundelay_visits_total",)] == held.visits
    assert samples[("roundelay_lap_seconds",)] == told.lap_seconds > 0.0
    assert samples[("roundelay_doing", "paused")] == 1.0 and samples[("roundelay_doing", "working")] == 0.0
    for peer, health in agent.links.items():
        name = NAMES[peer]
        assert samples[("roundelay_link_up", name)] == health.up == 1.0
        assert samples[("roundelay_link_broken_total", name)] == health.broken
        # Pings go on while the agent is paused, so the estimate may have moved.
        assert samples.get(("roundelay_round_trip_seconds", name), 1.0) > 0.0
    assert before.resent <= samples[("roundelay_resent_total",)] <= counts.resent
    assert before.duplicates <= samples[("roundelay_duplicates_total",)] <= counts.duplicates
    assert samples[("roundelay_refused_total",)] == counts.refused
    assert samples[("roundelay_journal_bytes",)] == size > 0
    assert held.residuals is not None
    for name, value in (("unrest", "unrest"), ("primal_residual", "primal"), ("dual_residual", "dual")):
        assert samples[(f"roundelay_{name}",)] == getattr(held.residuals, value)


def test_what_is_not_known_is_null_in_json_and_has_no_sample(ring: LiveRing) -> None:
    told = ring.call(ring.watches[0].status)
    strange = replace(
        told,
        tolerance=None,
        lap_seconds=0.0,
        residuals=(replace(told.residuals[-1], unrest=float("nan"), dual=float("inf")),),
        privacy=PrivacyStatus(3, (MeterReading("x", float("-inf"), np.float64(2.0), "none"),), "A sentence."),
        visits=np.int64(7),
    )
    row = json.loads(status_json(strange))
    assert row["residuals"][0]["unrest"] is None and row["residuals"][0]["dual"] is None and row["tolerance"] is None
    assert row["residuals"][0]["primal"] == told.residuals[-1].primal
    assert (row["privacy"]["leaks"][0]["error"], row["privacy"]["leaks"][0]["guess"], row["visits"]) == (None, 2.0, 7)
    for looked_at in (strange, replace(told, residuals=(), links=())):
        families = {family.name: family for family in text_string_to_metric_families(metrics_text(looked_at).decode())}
        assert not families["roundelay_unrest"].samples
    with pytest.raises(TypeError, match="ndarray"):
        status_json(replace(told, outcome=np.zeros(2)))  # type: ignore[arg-type]


def test_hops_are_counted_from_the_beginning_of_the_epoch(ring: LiveRing) -> None:
    told = replace(ring.call(ring.watches[0].status), hop=2**40 + 12, first_hop=2**40)
    families = {family.name: family for family in text_string_to_metric_families(metrics_text(told).decode())}
    assert families["roundelay_hops"].samples[0].value == 12


# ------------------------------------------------------------ what is not shown


def private_numbers(ring: LiveRing) -> np.ndarray[Any, np.dtype[np.float64]]:
    """The coordinates of x, y, the share and the data of the site, and those of the token that it holds."""
    agent, function = ring.agents[0], ring.functions[0]
    held = agent.station.holder.held
    pieces = [held.x[0], held.y[0], held.share[0], function.features[0], function.targets[0]]
    visits = agent.station.journal.passages()[-3:]
    pieces += [np.frombuffer(visit.sent) for visit in visits if visit.sent is not None]
    numbers = np.concatenate([np.ravel(piece) for piece in pieces])
    return np.abs(numbers[np.abs(numbers) > 1e-6])


def shows(text: str, private: np.ndarray[Any, np.dtype[np.float64]]) -> list[str]:
    """The numbers in a text that are a private one to four digits or more; short ones could be anything."""
    written = re.findall(r"\d+\.?\d*(?:[eE][-+]?\d+)?", text)
    long = [number for number in written if len(re.sub(r"[eE].*|\D", "", number).lstrip("0")) >= 4]
    return [number for number in long if np.isclose(float(number), private, rtol=1e-4, atol=0.0).any()]


def test_nothing_private_is_in_the_page_in_the_json_or_in_the_metrics(ring: LiveRing) -> None:
    with paused(ring):
        private = ring.call(lambda: private_numbers(ring))
        texts = {path: ask(ring, path, headers=bearer())[1] for path in ("/", "/page.js", "/status.json", "/metrics")}
        told = ring.call(ring.watches[0].status)
    assert len(private) > 20
    for text in texts.values():
        assert shows(text, private) == []
    for number in private:  # the search would find any of them
        assert shows(status_json(replace(told, outcome=f"It is {number:.5g}.")).decode(), private)
        assert shows(status_json(replace(told, lap_seconds=float(number))).decode(), private)


# ------------------------------------------------------------ trouble and the end


def test_a_refused_message_and_a_broken_link_are_told(tmp_path: Path) -> None:
    with live_ring(tmp_path) as ring:
        ring.forge_a_baton()
        told = json.loads(ask(ring, "/status.json", headers=bearer())[1])
        assert told["journal"]["refused"] == 1
        ring.cables[0].reason = "Nobody answers."
        ring.wait(ring.cables[1].pull())
        told = json.loads(ask(ring, "/status.json", headers=bearer())[1])
        link = next(link for link in told["links"] if link["name"] == NAMES[1])
        assert (link["up"], link["broken"], link["trouble"]) == (False, 1, "Nobody answers.")
        families = text_string_to_metric_families(ask(ring, "/metrics", headers=bearer())[1])
        ups = next(family for family in families if family.name == "roundelay_link_up")
        assert {sample.labels["neighbour"]: sample.value for sample in ups.samples} == {NAMES[1]: 0.0, NAMES[4]: 1.0}


def test_the_outcome_is_told_at_the_end(tmp_path: Path) -> None:
    with live_ring(tmp_path, latency=0.0, rho=3.0, tolerance=1e-6) as ring:
        ring.until(lambda: bool(ring.watches[0].outcome))
        told = json.loads(ask(ring, "/status.json", headers=bearer())[1])
        assert told["doing"] == "finished" and told["outcome"] == ring.watches[0].outcome
        assert all(told["residuals"][-1][name] <= 1e-6 for name in ("unrest", "primal", "dual"))


def test_a_run_goes_from_meeting_to_its_end_and_only_onward(tmp_path: Path) -> None:
    with live_ring(tmp_path, rho=3.0, tolerance=1e-6, begin=False) as ring:
        watch, seen = ring.watches[0], []

        def looked() -> bool:
            seen.append(watch.progress)
            return watch.stage == "finished"

        assert watch.progress == Progress("meeting")
        ring.wait(ring.begin())
        ring.until(looked)
        stages = list(dict.fromkeys(one.stage for one in seen))
        assert (
            stages == [one for one in ("preparing", "fitting", "signing", "finished") if one in stages]
            and "fitting" in stages
        )
        assert seen[-1] == Progress("finished", 1.0)
        assert all(0.0 <= one.part <= 1.0 and (one.seconds_left is None or one.seconds_left >= 0.0) for one in seen)
        watch.failed = "It can't go on."
        assert (watch.status().doing, watch.status().outcome, watch.progress.stage) == (
            "failed",
            "It can't go on.",
            "failed",
        )


@pytest.mark.parametrize(("family", "off"), [("gaussian", 1), ("binomial", 5)])
def test_about_how_many_rounds_there_are_is_known_before(family: str, off: int) -> None:
    rng = np.random.default_rng(3)
    frames = {name: pd.DataFrame({"x": rng.normal(size=40), "y": rng.random(40) < 0.4}).astype(float) for name in NAMES}
    ring = holders(frames, regression_of(frames, "y ~ x", family))
    made = sum(1 for _ in hand_overs(ring)) / len(NAMES)
    expected = usual_rounds(ring[0].plan, len(ring[0].local.sums)) - 2  # keys for masks are not told here
    assert abs(made - expected) <= off


def test_the_model_and_the_report_are_there_when_there_is_something(ring: LiveRing) -> None:
    for path in ("/model.json", "/report.html"):
        assert ask(ring, path)[0] == 403
        assert ask(ring, path, headers=bearer())[0] == 404
    about = ModelNotes("ab" * 16, 0, 10, NAMES, "All were content.", FinalResiduals(0.0, 0.0), None, "c0ffee")
    for result, status in ((None, 404), (binomial(), 200)):
        ring.watches[0].model = StoredModel(Model((("x", 2.0),), 1.0, "least_squares", "y"), about, 5, result)
        shown = json.loads(ask(ring, "/model.json", headers=bearer())[1])
        assert shown["table"]["rows"][0][0] == ("x" if result is None else "Intercept")
        assert shown["has_report"] == (result is not None) == (ask(ring, "/report.html", headers=bearer())[0] == 200)
        assert ask(ring, "/report.html", headers=bearer())[0] == status
    headers = ask(ring, "/report.html", headers=bearer())[2]
    assert (
        "script-src" not in headers["Content-Security-Policy"]
        and "default-src 'none'" in headers["Content-Security-Policy"]
    )
    assert headers["Cache-Control"] == "no-store"
    ring.watches[0].model = None


def test_the_page_is_there_before_the_run_begins(tmp_path: Path) -> None:
    with live_ring(tmp_path, begin=False) as ring:
        told: Status = ring.call(ring.watches[0].status)
        assert json.loads(ask(ring, "/status.json", headers=bearer())[1]) == json.loads(status_json(told))
        assert ask(ring, "/metrics", headers=bearer())[0] == 200
