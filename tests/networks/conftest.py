from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from roundelay.networks.tours import covering, hamiltonian, improvement, rotation, tour


@pytest.fixture(autouse=True, scope="module")
def own_time() -> Iterator[None]:
    """The limits of the searches count what this process works, so that they find as much on a loaded machine."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (covering, hamiltonian, improvement, rotation, tour):
            patch.setattr(module, "monotonic", time.process_time)
        yield
