"""The protocols that are known, as their authors have published them: what a site sends, and how it is read as sums."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from roundelay.privacy.protocols.known import Descent, Known, Products, SumsAt
from roundelay.privacy.protocols.recorded import FederatedProtocol, Message, RecordedMessages
from roundelay.registry import register

# v6-glm begins a binomial fit at the chances (y + 1/2)/2, which are 3/4 and 1/4: every row then has the weight 3/16 and
# z = ±(log 3 + 4/3).
_WEIGHT, _WORKING = 3.0 / 16.0, math.log(3.0) + 4.0 / 3.0


@register(FederatedProtocol, "ds.glm")
@dataclass(frozen=True)
class DataShieldGLM:
    """DataSHIELD's ds.glm: per site and iteration the score, the information, the deviance, and the number of rows.

    The first point is 0. There a binomial fit says S = X'(y − 1/2) and I = X'X/4, so that X'X and X'y follow, and n by the
    constant column; a Gaussian one says X'X and X'y at every point, and y'y by the deviance.
    """

    title: ClassVar[str] = "ds.glm"
    seen_by: ClassVar[str] = "the analyst"
    source: ClassVar[str] = (
        "dsBase and dsBaseClient of DataSHIELD: glmDS2 and ds.glm (Gaye et al., IJE 43(6), 1929–1944, 2014)"
    )
    values: ClassVar[Mapping[str, str]] = {
        "beta": "p", "score.vect": "p", "info.matrix": "p p", "dev": "", "numsubs": "",
    }  # fmt: skip

    def known(self, recorded: RecordedMessages, site: str) -> Known:
        """The sums as they stand."""
        messages = recorded.of_site(site)
        sums = [
            SumsAt(one.get("beta"), one.get("score.vect"), one.get("info.matrix"), one.number("dev"))
            for one in messages
        ]
        return Known(site, recorded.family, recorded.columns, messages[0].rows("numsubs"), tuple(sums))


@register(FederatedProtocol, "v6-glm")
@dataclass(frozen=True)
class Vantage6GLM:
    """vantage6's v6-glm: per site and iteration X'WX and X'Wz with z = η + (y − μ)/w, the rows, Σy and the dispersion.

    S = X'Wz − X'WXβ. The first iteration has no β: a binomial fit begins at the chances (y + 1/2)/2, so that X'WX is 3/16 X'X, and
    X'Wz is 3/16 (log 3 + 4/3) X'(2y − 1): that is S and I at 0, too. A Gaussian fit says X'X and X'y in every iteration.
    """

    title: ClassVar[str] = "v6-glm"
    seen_by: ClassVar[str] = "the node that runs the central part"
    source: ClassVar[str] = "v6-glm-py (Cellamare et al., Algorithms 15(7), 243, 2022)"
    values: ClassVar[Mapping[str, str]] = {
        "beta": "p", "XTX": "p p", "XTz": "p", "dispersion": "", "num_observations": "", "sum_y": "",
        "deviance": "",
    }  # fmt: skip

    def known(self, recorded: RecordedMessages, site: str) -> Known:
        """The sums that X'WX and X'Wz are."""
        messages = recorded.of_site(site)
        sums = [self._sums(one, recorded.family) for one in messages]
        return Known(site, recorded.family, recorded.columns, messages[0].rows("num_observations"), tuple(sums))

    def _sums(self, one: Message, family: str) -> SumsAt:
        curvature, working = one.get("XTX"), one.get("XTz")
        if family == "gaussian":
            at = one.values.get("beta", np.zeros(len(working)))
            spread = one.number("dispersion")
            if "beta" in one.values:
                return SumsAt(at, working - curvature @ at, curvature, spread)
            # It begins half-way between y and its mean, so that a quarter of Σ(y − ȳ)² is left: with Σy that is y'y.
            total, rows = one.number("sum_y"), one.rows("num_observations")
            return SumsAt(at, working, curvature, 4.0 * spread + total**2 / rows)
        if "beta" in one.values:
            at = one.get("beta")
            return SumsAt(at, working - curvature @ at, curvature)
        at = np.zeros(len(working))
        return SumsAt(at, working / (2.0 * _WEIGHT * _WORKING), curvature / (4.0 * _WEIGHT))


@register(FederatedProtocol, "pda.odal")
@dataclass(frozen=True)
class OneShotLogistic:
    """ODAL of R's pda: once a site's own estimate, its variances and its rows, once mean gradient and Hessian at one point.

    At the own estimate the score is 0, and the variances are the diagonal of the inverse information there. At the common point S and
    I are n times what was sent. No point is 0, so that no total follows in closed form.
    """

    title: ClassVar[str] = "pda ODAL"
    seen_by: ClassVar[str] = "all sites, and the lead"
    source: ClassVar[str] = "ODAL of R's pda (Duan et al., JAMIA 27(3), 376–385, 2020)"
    values: ClassVar[Mapping[str, str]] = {
        "site_size": "", "bhat_i": "p", "Vhat_i": "p", "bbar": "p", "logL_D1": "p", "logL_D2": "p p",
    }  # fmt: skip

    def known(self, recorded: RecordedMessages, site: str) -> Known:
        """Two points, of the first of which the score and the variances are known."""
        messages = recorded.of_site(site)
        if recorded.family != "binomial":
            raise ValueError("ODAL is for logistic regression: its family is binomial.")
        rows = messages[0].rows("site_size")
        sums = [
            SumsAt(one.get("bbar"), rows * one.get("logL_D1"), -rows * one.get("logL_D2"))
            for one in messages
            if "logL_D1" in one.values
        ]
        own = [one for one in messages if "bhat_i" in one.values]
        sums += [SumsAt(one.get("bhat_i"), np.zeros(len(recorded.columns))) for one in own]
        variances = (own[0].get("bhat_i"), own[0].get("Vhat_i")) if own else None
        return Known(site, recorded.family, recorded.columns, rows, tuple(sums), variances)


@register(FederatedProtocol, "fedavg")
@dataclass(frozen=True)
class FederatedAveraging:
    """Federated averaging of a linear or logistic model: the weights a site received, and those after its own steps on all its rows.

    With one local step the change is rate·S(w)/n: a score at every round's point. With several it is what those make of the rows.
    """

    learning_rate: float
    local_steps: int = 1

    title: ClassVar[str] = "federated averaging"
    seen_by: ClassVar[str] = "the server"
    source: ClassVar[str] = "FedAvg with whole batches (McMahan et al., AISTATS 2017)"
    values: ClassVar[Mapping[str, str]] = {"received": "p", "returned": "p", "rows": ""}

    def __post_init__(self) -> None:
        if not self.learning_rate > 0.0 or not (
            1 <= self.local_steps <= 10_000 and self.local_steps == int(self.local_steps)
        ):
            raise ValueError("The learning rate is a number above 0, and local_steps a whole number from 1 to 10000.")

    def known(self, recorded: RecordedMessages, site: str) -> Known:
        """Scores, or what several steps lead to."""
        messages = recorded.of_site(site)
        rows = messages[0].rows("rows")
        received = np.array([one.get("received") for one in messages])
        returned = np.array([one.get("returned") for one in messages])
        if self.local_steps == 1:
            scores = rows / self.learning_rate * (returned - received)
            sums = tuple(SumsAt(at, score) for at, score in zip(received, scores, strict=True))
            return Known(site, recorded.family, recorded.columns, rows, sums)
        descent = Descent(self.learning_rate, int(self.local_steps), received, returned)
        return Known(site, recorded.family, recorded.columns, rows, descent=descent)


@register(FederatedProtocol, "ds.cov")
@dataclass(frozen=True)
class DataShieldCovariance:
    """DataSHIELD's ds.cov of a hidden column and, request after request, a column that the analyst has made there and knows.

    Every request says Σh, and Σ h·c. The columns c and the constant are equations in the n values of h.
    """

    title: ClassVar[str] = "ds.cov"
    seen_by: ClassVar[str] = "an analyst who makes columns at the site"
    source: ClassVar[str] = "covDS of dsBase; the attack: Huth et al., Bioinformatics 39(9), btad531, 2023"
    values: ClassVar[Mapping[str, str]] = {
        "column": "n", "sum": "", "sum.of.products": "", "complete.counts": "",
    }  # fmt: skip

    def known(self, recorded: RecordedMessages, site: str) -> Known:
        """Equations in the hidden column, that of the constant first."""
        messages = recorded.of_site(site)
        rows = messages[0].rows("complete.counts")
        if any(one.get("column").shape != (rows,) for one in messages):
            raise ValueError(f"A column that is known at {site} has not {rows} numbers, as many as there are rows.")
        if rows * len(messages) > 10**8:
            raise ValueError(f"{site} has {rows} rows and {len(messages)} requests: that is more than is solved here.")
        known = np.vstack([np.ones(rows), *(one.get("column") for one in messages)])
        products = np.array([messages[0].number("sum"), *(one.number("sum.of.products") for one in messages)])
        return Known(site, recorded.family, recorded.columns, rows, products=Products(known, products))


@register(FederatedProtocol, "sealed laps")
@dataclass(frozen=True)
class SumOverSites:
    """What an observer of sealed laps has: sums over all sites, or over those that he is not made of, at the points asked.

    A message is of the sum: `site` names all who stand in it.
    """

    title: ClassVar[str] = "sealed laps"
    seen_by: ClassVar[str] = "all sites"
    source: ClassVar[str] = "this project: docs/design.md"
    values: ClassVar[Mapping[str, str]] = {"point": "p", "score": "p", "information": "p p", "rows": ""}

    def known(self, recorded: RecordedMessages, site: str) -> Known:
        """The sums as they stand."""
        messages = recorded.of_site(site)
        sums = [SumsAt(one.get("point"), one.values.get("score"), one.values.get("information")) for one in messages]
        # Every site's numbers are rounded to a grid of 2⁻⁴⁴ before they are added up.
        rows = messages[0].rows("rows")
        return Known(site, recorded.family, recorded.columns, rows, tuple(sums), rounding=1e-11)
