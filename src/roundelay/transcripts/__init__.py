"""What crossed the links: the transcript, who may see how much of it, and how it is stored.

This is all that an attack may ever be given. It knows nothing of the agents' states, nor of what runs a method.
"""

from roundelay.transcripts.groups import (
    GroupHops as GroupHops,
    GroupVisits as GroupVisits,
)
from roundelay.transcripts.lap_parts import (
    LapPart as LapPart,
    LapParts as LapParts,
    answer_in as answer_in,
    parts_of_laps as parts_of_laps,
)
from roundelay.transcripts.observers import (
    Colluders as Colluders,
    Eavesdropper as Eavesdropper,
    Link as Link,
    Neighbours as Neighbours,
    Observer as Observer,
    Seen as Seen,
    Visits as Visits,
)
from roundelay.transcripts.storage import (
    load_transcript as load_transcript,
    save_transcript as save_transcript,
)
from roundelay.transcripts.transcript import (
    SealedLap as SealedLap,
    Transcript as Transcript,
    joined as joined,
    sealed_lap as sealed_lap,
)
