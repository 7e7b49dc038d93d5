"""What a tap on the wire sees of a ring: packets, the connections in them, and the tokens, where these are not encrypted."""

from roundelay.agents.capture.sniff import Sniffer
from roundelay.agents.capture.tokens import Captured, EncryptedError, public_of, read_capture

__all__ = ["Captured", "EncryptedError", "Sniffer", "public_of", "read_capture"]
