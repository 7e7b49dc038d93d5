"""Differential privacy: what a run costs each record, and how much noise a wanted ε asks for."""

from roundelay.privacy.accounting.budget import PrivacyBudget, PrivacyLoss
from roundelay.privacy.accounting.guarantee import Guarantee, epsilon, sigma_for, sigma_for_problem
from roundelay.privacy.accounting.reasons import NoGuarantee
from roundelay.privacy.accounting.sensitivities import Sensitivity, sensitivity

__all__ = [
    "Guarantee",
    "NoGuarantee",
    "PrivacyBudget",
    "PrivacyLoss",
    "Sensitivity",
    "epsilon",
    "sensitivity",
    "sigma_for",
    "sigma_for_problem",
]
