"""What happens to a message between two agents."""

from roundelay.channels.channel import Censoring, Channel, channel_of
from roundelay.channels.compressors import Compressor, Plain, Quantised, RandomK, Rounded, Signs, TopK, TopShare

__all__ = [
    "Censoring",
    "Channel",
    "Compressor",
    "Plain",
    "Quantised",
    "RandomK",
    "Rounded",
    "Signs",
    "TopK",
    "TopShare",
    "channel_of",
]
