"""A symmetric matrix as a vector of unknowns, and the quadratic that an attack has found."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from roundelay.kernels import Matrix, Vector


def unknowns(dim: int) -> int:
    """How many numbers a symmetric matrix and a vector have: p(p + 3)/2."""
    return dim * (dim + 3) // 2


def times(vectors: Matrix) -> NDArray[np.float64]:
    """(R, p, p(p+1)/2): the matrices D_r for which D_r·vech(Q) = Q·v_r."""
    rounds, dim = vectors.shape
    row, column = np.triu_indices(dim)
    place = np.arange(len(row))
    design = np.zeros((rounds, dim, len(row)))
    design[:, row, place] = vectors[:, column]
    beside = row != column
    design[:, column[beside], place[beside]] = vectors[:, row[beside]]
    return design


def split(theta: Vector, dim: int) -> tuple[Matrix, Vector]:
    """The symmetric matrix and the vector that θ = (vech Q, h) holds."""
    row, column = np.triu_indices(dim)
    matrix = np.empty((dim, dim))
    matrix[row, column] = matrix[column, row] = theta[: len(row)]
    return matrix, theta[len(row) :]


def joined(matrix: Matrix, vector: Vector) -> Vector:
    """θ again."""
    return np.concatenate([matrix[np.triu_indices(len(vector))], vector])


def gradient_of(hessian: Matrix, slope: Vector) -> Callable[[Vector], Vector]:
    """∇f of f = ½x'Hx + g'x, at one point or at several rows."""
    return lambda x: np.asarray(x) @ hessian + slope
