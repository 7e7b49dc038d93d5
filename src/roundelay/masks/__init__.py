"""Masks that cancel: secrets that two agents share, and what is hidden by them.

| | what it is | who can lift it |
|---|---|---|
| `SeededPairs`, `AgreedPairs` | a 128-bit key for every pair of agents, of a seed or of real key agreement | the pair |
| `zero_sum_masks`, `my_mask` | numbers that sum to exactly 0 over all agents | all other agents together |
| `seals`, `my_seal` | the same with uniform words | all other agents together |
| `MaskedLink` | a one-time pad for the messages between two agents | the pair |
| `discrete_gaussian` | noise in whole grid steps, from words that are an agent's own | nobody: it stays in the sum |

`FixedPoint` turns numbers into words modulo 2⁶⁴ and back, `WideFixedPoint` modulo 2¹²⁸.
"""

from roundelay.masks.agreement import (
    AgreedPairs as AgreedPairs,
    BadKeyError as BadKeyError,
    new_private_key as new_private_key,
    public_key_of as public_key_of,
)
from roundelay.masks.discrete_gaussian import (
    Steps as Steps,
    discrete_gaussian as discrete_gaussian,
    own_words as own_words,
)
from roundelay.masks.fixed_point import (
    FixedPoint as FixedPoint,
    Grid as Grid,
    PlainNumbers as PlainNumbers,
    WideFixedPoint as WideFixedPoint,
)
from roundelay.masks.pairs import (
    LINK as LINK,
    MASK as MASK,
    SEAL as SEAL,
    MaskedLink as MaskedLink,
    MaskGrid as MaskGrid,
    PairSecrets as PairSecrets,
    SeededPairs as SeededPairs,
    mask_grid as mask_grid,
    my_mask as my_mask,
    my_seal as my_seal,
    others as others,
    pads as pads,
    seal_with as seal_with,
    seals as seals,
    zero_sum_masks as zero_sum_masks,
)
