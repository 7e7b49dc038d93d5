"""Masks that cancel: secrets that two agents share, and what is hidden by them.

| | what it is | who can lift it |
|---|---|---|
| `SeededPairs`, `AgreedPairs` | a 128-bit key for every pair of agents, of a seed or of real key agreement | the pair |
| `zero_sum_masks`, `my_mask` | numbers that sum to exactly 0 over all agents | all other agents together |
| `seals`, `my_seal` | the same with uniform words modulo 2⁶⁴ | all other agents together |
| `MaskedLink` | a one-time pad for the messages between two agents | the pair |

`FixedPoint` turns numbers into words modulo 2⁶⁴ and back.
"""

from roundelay.masks.agreement import AgreedPairs, new_private_key, public_key_of
from roundelay.masks.fixed_point import FixedPoint
from roundelay.masks.pairs import (
    LINK,
    MASK,
    SEAL,
    MaskedLink,
    MaskGrid,
    PairSecrets,
    SeededPairs,
    mask_grid,
    my_mask,
    my_seal,
    pads,
    seals,
    zero_sum_masks,
)

__all__ = [
    "LINK",
    "MASK",
    "SEAL",
    "AgreedPairs",
    "FixedPoint",
    "MaskGrid",
    "MaskedLink",
    "PairSecrets",
    "SeededPairs",
    "mask_grid",
    "my_mask",
    "my_seal",
    "new_private_key",
    "pads",
    "public_key_of",
    "seals",
    "zero_sum_masks",
]
