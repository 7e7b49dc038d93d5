"""What each agent minimises."""

from roundelay.problems.callables import CallableProblem
from roundelay.problems.least_squares import LeastSquares
from roundelay.problems.logistic import Logistic
from roundelay.problems.paper import paper_least_squares, paper_logistic
from roundelay.problems.problem import OwnProblem, Problem, total_gradient, total_value
from roundelay.problems.regularisers import L1, Box, NonNegative, NoRegulariser, Regulariser, composite_optimum

__all__ = [
    "L1",
    "Box",
    "CallableProblem",
    "LeastSquares",
    "Logistic",
    "NoRegulariser",
    "NonNegative",
    "OwnProblem",
    "Problem",
    "Regulariser",
    "composite_optimum",
    "paper_least_squares",
    "paper_logistic",
    "total_gradient",
    "total_value",
]
