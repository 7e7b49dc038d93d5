"""What each agent minimises."""

from roundelay.problems.callables import (
    CallableProblem as CallableProblem,
)
from roundelay.problems.least_squares import (
    LeastSquares as LeastSquares,
    paper_least_squares as paper_least_squares,
)
from roundelay.problems.logistic import (
    Logistic as Logistic,
    paper_logistic as paper_logistic,
)
from roundelay.problems.losses import (
    Huber as Huber,
    Poisson as Poisson,
    SmoothedHinge as SmoothedHinge,
)
from roundelay.problems.moved import (
    MovedProblem as MovedProblem,
    begun_at as begun_at,
    size_of as size_of,
)
from roundelay.problems.problem import (
    OwnProblem as OwnProblem,
    Problem as Problem,
    has_optimum as has_optimum,
    total_gradient as total_gradient,
    total_value as total_value,
)
from roundelay.problems.regularisers import (
    Regulariser as Regulariser,
    composite_optimum as composite_optimum,
)
from roundelay.problems.row_problem import (
    RowProblem as RowProblem,
)
from roundelay.problems.torch_modules import (
    TorchProblem as TorchProblem,
)
from roundelay.problems.with_corners import (
    Hinge as Hinge,
    Quantile as Quantile,
)
