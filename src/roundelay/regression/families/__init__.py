"""What the distribution of the response is: a family is one small file."""

from roundelay.regression.families.binomial import Binomial
from roundelay.regression.families.family import Family, family_named
from roundelay.regression.families.gamma import Gamma
from roundelay.regression.families.gaussian import Gaussian
from roundelay.regression.families.poisson import Poisson

__all__ = ["Binomial", "Family", "Gamma", "Gaussian", "Poisson", "family_named"]
