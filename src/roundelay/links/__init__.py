"""What happens to a message between two agents."""

from roundelay.links.channel import (
    channel_of as channel_of,
)
from roundelay.links.compressors import (
    Compressor as Compressor,
)
