"""What crossed the links: the transcript, who may see how much of it, and how it is stored.

This is all that an attack may ever be given. It knows nothing of the agents' states, nor of what runs a method.
"""

from roundelay.transcripts.groups import GroupHops, GroupVisits
from roundelay.transcripts.observers import Colluders, Eavesdropper, Link, Neighbours, Observer, Seen, Visits
from roundelay.transcripts.storage import load_transcript, save_transcript
from roundelay.transcripts.transcript import SealedLap, Transcript, joined, sealed_lap

__all__ = [
    "Colluders",
    "Eavesdropper",
    "GroupHops",
    "GroupVisits",
    "Link",
    "Neighbours",
    "Observer",
    "SealedLap",
    "Seen",
    "Transcript",
    "Visits",
    "joined",
    "load_transcript",
    "save_transcript",
    "sealed_lap",
]
