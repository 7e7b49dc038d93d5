"""What crossed the links, and nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from roundelay.kernels import Matrix

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class Transcript:
    """Row k: at hop k, `sender` passed the token `tokens[k]` on to `receiver`."""

    hop: NDArray[np.int64]
    sender: NDArray[np.int64]
    receiver: NDArray[np.int64]
    tokens: Matrix

    def __len__(self) -> int:
        """How many messages there were."""
        return len(self.hop)

    def received_by(self, agent: int) -> Matrix:
        """The tokens that an agent received, in order."""
        return self.tokens[self.receiver == agent]

    def frame(self) -> pd.DataFrame:
        """The transcript as a DataFrame: hop, sender, receiver, and the token's coordinates z0, z1, …"""
        import pandas as pd

        columns = {"hop": self.hop, "sender": self.sender, "receiver": self.receiver}
        return pd.DataFrame(columns | {f"z{d}": self.tokens[:, d] for d in range(self.tokens.shape[1])})
