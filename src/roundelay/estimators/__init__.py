"""Regressions over the rows of several sites, as scikit-learn has its estimators: `fit(X, y, sites=…)` gives the pooled fit."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from roundelay.estimators.linear import (
        RingElasticNet as RingElasticNet,
        RingLasso as RingLasso,
        RingLinearRegression as RingLinearRegression,
        RingPoissonRegressor as RingPoissonRegressor,
        RingRidge as RingRidge,
    )
    from roundelay.estimators.logistic import RingLogisticRegression as RingLogisticRegression
    from roundelay.estimators.sums import Communication as Communication
    from roundelay.estimators.survival import RingCox as RingCox

# Loaded when first used: scikit-learn is an extra.
_LATER = {
    "linear": "RingElasticNet RingLasso RingLinearRegression RingPoissonRegressor RingRidge",
    "logistic": "RingLogisticRegression",
    "sums": "Communication",
    "survival": "RingCox",
}


__all__ = sorted(" ".join(_LATER.values()).split())


def __getattr__(name: str) -> Any:
    """The estimators, whose modules need scikit-learn."""
    for module, names in _LATER.items():
        if name in names.split():
            try:
                return getattr(import_module(f"{__name__}.{module}"), name)
            except ImportError as error:
                if not (error.name or "").startswith("sklearn"):
                    raise
                raise ImportError(
                    f"{name} is an estimator of scikit-learn's kind, which is not installed or is older than 1.6: "
                    "pip install 'roundelay[estimators]'."
                ) from error
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """All names, those that are loaded later too."""
    return sorted({*globals(), *" ".join(_LATER.values()).split()})
