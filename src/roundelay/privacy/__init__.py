"""What the token gives away: what is public, attacks that are given nothing else but what an observer saw, and accounting."""

from roundelay.privacy.accounting import (
    Guarantee,
    NoGuarantee,
    PrivacyBudget,
    PrivacyLoss,
    Sensitivity,
    epsilon,
    sensitivity,
    sigma_for,
    sigma_for_problem,
)
from roundelay.privacy.identifiability import Identifiable, identifiable
from roundelay.privacy.public import Public, load_public, save_public

__all__ = [
    "Guarantee",
    "Identifiable",
    "NoGuarantee",
    "PrivacyBudget",
    "PrivacyLoss",
    "Public",
    "Sensitivity",
    "epsilon",
    "identifiable",
    "load_public",
    "save_public",
    "sensitivity",
    "sigma_for",
    "sigma_for_problem",
]
