"""Differential privacy: what a run costs each record, and how much noise a wanted ε asks for."""

from roundelay.privacy.accounting.budget import (
    PrivacyBudget as PrivacyBudget,
    PrivacyLoss as PrivacyLoss,
)
from roundelay.privacy.accounting.guarantee import (
    Guarantee as Guarantee,
    epsilon as epsilon,
    sigma_for as sigma_for,
    sigma_for_problem as sigma_for_problem,
)
from roundelay.privacy.accounting.linear_view import (
    LinearView as LinearView,
    linear_view as linear_view,
)
from roundelay.privacy.accounting.network import (
    NetworkPrivacy as NetworkPrivacy,
    network_privacy as network_privacy,
)
from roundelay.privacy.accounting.sensitivities import (
    NoGuarantee as NoGuarantee,
    Sensitivity as Sensitivity,
    sensitivity as sensitivity,
)
