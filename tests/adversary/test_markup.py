"""What another site says is shown as it stands: no colours, no links, nothing that ends the line of progress."""

from __future__ import annotations

import asyncio
import io
from pathlib import Path

import pytest
from rich.console import Console
from rich.errors import MarkupError

from roundelay.agents.protocol.wire import Kind, pack_frame, pack_sentence
from roundelay.agents.site.status import Watch
from roundelay.cli import agent as command
from tests.agents.test_misbehaviour import RUN_BYTES, SENDER, packed, scene

RECEIVER = 2


class Watched(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("markup", [False, True])
@pytest.mark.parametrize("sentence", ["[link=https://example.org]All is well.[/link]", "It is [/red] closed."])
def test_a_refusal_is_no_markup(sentence: str, markup: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where they are read as markup the words of the other site become a link, or end the line of progress."""
    shown = Watched()
    terminal = Console(file=shown, force_terminal=True, width=300, markup=False, highlight=False, emoji=False)
    if markup:
        monkeypatch.setattr(
            command, "as_it_stands", str
        )  # a spinner reads markup in plain words, whatever the console does
    monkeypatch.setattr(command, "stderr_console", lambda: terminal)

    async def play() -> BaseException | None:
        made = await scene(tmp_path)
        assert made.baton is not None
        await made.agent._deliver(SENDER, packed(made.baton, made.k))
        refusal = pack_frame(Kind.REFUSAL, RUN_BYTES, 1, made.agent.station.standing.sent_k, pack_sentence(sentence))
        await made.agent._deliver(RECEIVER, refusal)
        telling = asyncio.create_task(command._progress([Watch(made.agent)], command.Reading()))
        while not telling.done() and "All is well." not in shown.getvalue() and sentence not in shown.getvalue():
            await asyncio.sleep(0.01)
        telling.cancel()
        (ended,) = await asyncio.gather(telling, return_exceptions=True)
        made.journal.close()
        return ended

    ended = asyncio.run(asyncio.wait_for(play(), 120.0))
    assert (sentence in shown.getvalue()) is not markup
    if markup:
        assert "]8;" in shown.getvalue() or isinstance(ended, MarkupError)
