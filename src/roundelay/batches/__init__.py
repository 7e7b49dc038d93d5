"""More rows than memory: a site's rows are read in batches, and what is asked of it is summed over them."""

from roundelay.batches.folder import (
    Folder as Folder,
    Part as Part,
    PassError as PassError,
    open_folder as open_folder,
    rows_of_query as rows_of_query,
)
from roundelay.batches.passes import Passes as Passes
from roundelay.batches.problem import by_batches as by_batches
