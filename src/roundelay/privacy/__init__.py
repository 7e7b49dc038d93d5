"""What the token gives away: what is public, attacks that are given nothing else but what an observer saw, and accounting."""

from roundelay.privacy.accounting import (
    Guarantee as Guarantee,
    LinearView as LinearView,
    NetworkPrivacy as NetworkPrivacy,
    NoGuarantee as NoGuarantee,
    PrivacyBudget as PrivacyBudget,
    PrivacyLoss as PrivacyLoss,
    Sensitivity as Sensitivity,
    epsilon as epsilon,
    linear_view as linear_view,
    network_privacy as network_privacy,
    sensitivity as sensitivity,
    sigma_for as sigma_for,
    sigma_for_problem as sigma_for_problem,
)
from roundelay.privacy.determined import (
    Identifiable as Identifiable,
)
from roundelay.privacy.identifiability import (
    identifiable as identifiable,
)
from roundelay.privacy.public import (
    Public as Public,
    load_public as load_public,
    save_public as save_public,
)
