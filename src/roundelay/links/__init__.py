"""What happens to a message between two agents."""

from roundelay.links.channel import Censoring, Channel, channel_of
from roundelay.links.compressors import Compressor, Plain, Quantised, RandomK, Rounded, Signs, TopK, TopShare

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
