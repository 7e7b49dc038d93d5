"""A pipeline whose model is fitted over sites, and a search for its penalty that holds out whole sites."""

import numpy as np
import sklearn
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import GridSearchCV, LeaveOneGroupOut
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures

from roundelay.estimators import RingLogisticRegression

SITES = np.array(["Oslo", "Bergen", "Hamar", "Voss"])


def main() -> GridSearchCV:
    features, tumour = load_breast_cancer(return_X_y=True, as_frame=True)
    features, sites = features[["mean radius", "mean texture", "mean smoothness"]], SITES[np.arange(len(tumour)) % 4]

    with sklearn.config_context(
        enable_metadata_routing=True
    ):  # so that each row's site goes with it, wherever it is asked for
        model = make_pipeline(
            PolynomialFeatures(2, include_bias=False), RingLogisticRegression().set_fit_request(sites=True)
        )
        penalties = {"ringlogisticregression__C": [0.01, 1.0, 100.0]}
        search = GridSearchCV(model, penalties, cv=LeaveOneGroupOut()).fit(features, tumour, sites=sites, groups=sites)

    best = search.best_estimator_[-1]
    print(f"C = {best.C:g} is right for {search.best_score_:.1%} of the rows of a site that had no part in the fit.")
    print(best.run_.outcome)
    sent = best.communication_
    print(
        f"Four sites sent {sent.bytes:,} bytes in {sent.hops} hops of {sent.laps} laps, sums of all sites and nothing else."
    )

    plain = RingLogisticRegression(C=np.inf).fit(features, tumour, sites=sites)
    print(plain.summary())
    return search


if __name__ == "__main__":
    main()
