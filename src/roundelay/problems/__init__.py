"""What each agent minimises."""

from roundelay.problems.callables import CallableProblem
from roundelay.problems.least_squares import LeastSquares, paper_least_squares
from roundelay.problems.logistic import Logistic, paper_logistic
from roundelay.problems.problem import LogisticRows, OwnProblem, Problem, ProblemBase, total_gradient, total_value
from roundelay.problems.regularisers import L1, Box, NonNegative, NoRegulariser, Regulariser, composite_optimum
from roundelay.problems.row_problem import Loss, RowProblem

__all__ = [
    "L1",
    "Box",
    "CallableProblem",
    "LeastSquares",
    "Logistic",
    "LogisticRows",
    "Loss",
    "NoRegulariser",
    "NonNegative",
    "OwnProblem",
    "Problem",
    "ProblemBase",
    "Regulariser",
    "RowProblem",
    "composite_optimum",
    "paper_least_squares",
    "paper_logistic",
    "total_gradient",
    "total_value",
]
