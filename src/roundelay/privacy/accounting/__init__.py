"""Differential privacy: what a run costs each record, and how much noise a wanted ε asks for."""

from roundelay.privacy.accounting.budget import PrivacyBudget
from roundelay.privacy.accounting.calibration import sigma_for, sigma_for_problem
from roundelay.privacy.accounting.guarantee import Guarantee, epsilon
from roundelay.privacy.accounting.monitor import PrivacyLoss
from roundelay.privacy.accounting.none import NoGuarantee
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
