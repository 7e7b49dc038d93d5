"""What the token gives away: what is public, and attacks that are given nothing else but what an observer saw."""

from roundelay.privacy.identifiability import Identifiable, identifiable
from roundelay.privacy.public import Public, load_public, save_public

__all__ = ["Identifiable", "Public", "identifiable", "load_public", "save_public"]
