"""What becomes of a message between two agents: what they make of it, and what the network does to it.

| | what it is | whose choice |
|---|---|---|
| `Channel`, `Censoring` | when a gossip message is sent, whole or as a difference | the method's |
| `Plain`, `Rounded`, `Quantised`, `Signs`, `TopK`, `RandomK`, `TopShare` | how a vector is written down, and what it then weighs | the method's |
| `NetworkConditions`, `BernoulliLoss`, `GilbertElliott` | loss, noise, latency, and agents that take their time | nobody's |

The kernel functions stand with the first two; those of the conditions are in `crossing`.
"""

from roundelay.links.channel import (
    channel_of as channel_of,
)
from roundelay.links.compressors import (
    Compressor as Compressor,
)
