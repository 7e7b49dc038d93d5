"""The estimators are scikit-learn's kind: its own checks, pipelines, searches, routing of sites, and frames."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_wine
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, LeaveOneGroupOut, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from roundelay.estimators import (
    RingCox,
    RingElasticNet,
    RingLasso,
    RingLinearRegression,
    RingLogisticRegression,
    RingPoissonRegressor,
    RingRidge,
)

ALL = [
    RingLinearRegression(), RingRidge(), RingLasso(), RingElasticNet(), RingLogisticRegression(), RingPoissonRegressor(), RingCox(),
]  # fmt: skip


# What a check says of packages that are not here is no matter of the estimator.
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks(ALL)
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def test_sites_are_routed_through_a_pipeline_and_a_search(routing):
    """Each fold's fit is told the sites of its own rows: were it told others, or none, the labels would not have the rows' number."""
    features, target = load_wine(return_X_y=True)
    sites = np.arange(len(target)) % 4
    model = make_pipeline(StandardScaler(), RingLogisticRegression().set_fit_request(sites=True))
    search = GridSearchCV(model, {"ringlogisticregression__C": [0.01, 1.0]}, cv=3).fit(features, target, sites=sites)
    assert search.best_params_ == {"ringlogisticregression__C": 1.0}
    assert len(search.best_estimator_[-1].run_.x) == 4
    unasked = make_pipeline(StandardScaler(), RingLogisticRegression())
    with pytest.raises(sklearn.exceptions.UnsetMetadataPassedError, match="sites"):
        unasked.fit(features, target, sites=sites)


def test_whole_sites_are_held_out(routing):
    """The sites are the groups of the folds as well, so that each model is tried on a site that it has not seen."""
    features, target = load_diabetes(return_X_y=True)
    sites = np.arange(len(target)) % 4
    model = RingRidge().set_fit_request(sites=True)
    scores = cross_val_score(model, features, target, params={"sites": sites, "groups": sites}, cv=LeaveOneGroupOut())
    expected = [
        RingRidge()
        .fit(features[sites != one], target[sites != one])
        .score(features[sites == one], target[sites == one])
        for one in range(4)
    ]
    np.testing.assert_allclose(scores, expected, rtol=1e-9)


@pytest.mark.parametrize("estimator", ALL, ids=lambda one: type(one).__name__)
def test_frames_clones_and_pickles(estimator):
    """Column names are known, labels of sites may be a column, and what was fitted stays what it was."""
    frame = load_diabetes(as_frame=True).frame
    features, target = frame.drop(columns="target"), frame["target"].round(-2).astype(int)
    sites = pd.Series(np.where(np.arange(len(frame)) % 3, "Oslo", "Bergen"), index=frame.index)
    fitted = clone(estimator).fit(features, target, sites=sites)
    assert list(fitted.feature_names_in_) == list(features.columns) and fitted.n_features_in_ == 10
    assert len(fitted.run_.x) == 2
    again = pickle.loads(pickle.dumps(fitted))
    assert (again.predict(features) == fitted.predict(features)).all()
    with pytest.raises(NotFittedError):
        clone(fitted).predict(features)
    with pytest.raises(ValueError, match="feature names"):
        fitted.predict(features[features.columns[::-1]])


def test_without_scikit_learn_the_extra_is_named():
    import subprocess
    import sys

    code = "import sys; sys.modules['sklearn'] = None; from roundelay.estimators import RingRidge"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False).stderr
    assert "pip install 'roundelay[estimators]'" in told.splitlines()[-1]


def test_roundelay_does_not_wait_for_scikit_learn():
    import subprocess
    import sys

    code = "import sys, roundelay, roundelay.estimators; print('sklearn' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"
