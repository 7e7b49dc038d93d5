"""A result as one file of HTML that needs nothing else: no script, no picture beside it, no address. It can be read aloud and printed."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files
from typing import Literal

from roundelay.regression.regression import Regression
from roundelay.regression.result import Result
from roundelay.regression.shown.drawing import Picture
from roundelay.regression.shown.pictures import pictures_of
from roundelay.regression.shown.tables import columns_table, facts, tables_of
from roundelay.regression.sums import AFTER, sums_of
from roundelay.shown.document import section, table_in_html, whole_page
from roundelay.shown.markup import Markup, tag
from roundelay.shown.numbers import plural
from roundelay.shown.table import Table

_LAST_WORDS = "Made by Roundelay. Nobody saw a row of another site: all numbers here follow from sums over all sites."
Signed = Literal["verified", "in part", "not checked", "none"]
_SIGNED = {
    "verified": ("has signed, verified", "good"),
    "in part": ("has signed the end", "partly"),
    "not checked": ("signature not checked", "partly"),
    "none": ("", ""),
}


@dataclass(frozen=True)
class Origin:
    """Where a result comes from: the run, the digest of the plan that all sites signed, and what became of their signatures.

    `reason` says why the run ended, and `doubt` what of it was not as agreed.
    """

    run: str
    epoch: int
    digest: str
    reason: str = ""
    doubt: str = ""
    signed: Signed = "not checked"


def report(result: Result, regression: Regression | None = None, origin: Origin | None = None) -> str:
    """The whole document; `regression` and `origin` as far as they are known."""
    parts = [
        _head(result, regression, origin),
        section("Coefficients", table_in_html(tables_of(result)[0], hidden=True)),
        section("In pictures", _pictures(result, ("forest", "calibration", "roc", "residuals", "survival", "penalty"))),
        *(
            section(one.title, table_in_html(one, hidden=True))
            for one in (*_of_columns(regression), *tables_of(result)[1:])
        ),
        section("How it was fitted", *_course(result, origin)),
        section("Who took part", *_who(result, origin)),
        *([section("What was disclosed", *_disclosed(regression))] if regression is not None else []),
        tag("footer", {}, tag("p", {}, _LAST_WORDS)),
    ]
    return whole_page(f"Regression of {result.response}", parts, _resource("pictures.css"))


def _of_columns(regression: Regression | None) -> tuple[Table, ...]:
    return () if regression is None else (columns_table(regression.columns),)


def _resource(name: str) -> str:
    return (files(__package__) / name).read_text(encoding="utf-8")


def _head(result: Result, regression: Regression | None, origin: Origin | None) -> Markup:
    what = (
        regression.in_words
        if regression is not None
        else f"a regression of the family {result.family}: {result.formula}"
    )
    said = f"{what[:1].upper()}{what[1:].partition(': ')[0]}, over {plural(result.rows, 'row')} of {plural(len(result.sites), 'site')}."
    pairs = [tag("div", {}, tag("dt", {}, name), tag("dd", {}, value)) for name, value in facts(result)]
    warned = (
        [tag("p", {"class": "note bad"}, f"Not as agreed: {origin.doubt}")]
        if origin is not None and origin.doubt
        else []
    )
    if not result.converged:
        warned.append(tag("p", {"class": "note bad"}, "The fit has not converged: do not use these numbers."))
    notes = [tag("p", {"class": "note"}, note) for note in result.notes]
    return tag(
        "header", {}, tag("h1", {}, f"Regression of {result.response}"), tag("p", {}, said),
        tag("p", {"class": "formula"}, tag("code", {}, result.formula)), *warned, *notes, tag("dl", {"class": "facts"}, *pairs),
    )  # fmt: skip


def _pictures(result: Result, names: tuple[str, ...]) -> Markup:
    drawn = [_figure(one) for one in pictures_of(result) if one.name in names]
    return tag("div", {"class": "pictures part"}, *drawn) if drawn else Markup()


def _figure(picture: Picture) -> Markup:
    caption = tag("p", {"class": "caption"}, picture.caption)
    return tag("figure", {}, tag("h3", {}, picture.title), picture.drawing, tag("figcaption", {}, caption))


def _course(result: Result, origin: Origin | None) -> list[Markup]:
    said = (
        f"The fit took {plural(result.questions, 'question')} to all sites, and sums before and after it. Each site added its answer under a "
        "mask, so that only the sum over all sites was ever seen."
    )
    parts = [tag("p", {}, said)]
    if origin is not None and origin.reason:
        parts.append(tag("p", {}, origin.reason))
    return [*parts, _pictures(result, ("convergence",))]


def _who(result: Result, origin: Origin | None) -> list[Markup]:
    signed, look = _SIGNED[origin.signed] if origin is not None else ("", "")
    badge = tag("span", {"class": f"badge {look}"}, signed) if signed else Markup()
    sites = tag("ul", {"class": "sites"}, *(tag("li", {}, site, badge) for site in result.sites))
    if origin is None:
        return [sites, tag("p", {}, "Fitted in one process, from data that lay side by side: nothing was signed.")]
    what = {
        "verified": "Every site has signed the end from which these numbers follow, by the keys in the ring file; that was checked when this report was made.",
        "in part": "Every site has signed the end of this run, by the keys in the ring file; that was checked when this report was made. Whether "
        "these numbers follow from it was not checked: that takes the sums that the sites told each other, which each of them has beside its model.",
        "not checked": "Whether the sites have signed was not checked when this report was made: roundelay model verify does it, with the ring file.",
        "none": "The file of the model has no signatures.",
    }[origin.signed]
    about = [
        tag("p", {}, what),
        tag(
            "p",
            {},
            "Run ",
            tag("code", {}, origin.run),
            f", epoch {origin.epoch}. Digest of the plan: ",
            tag("code", {}, origin.digest),
            ".",
        ),
    ]
    return [sites, *about]


def _disclosed(regression: Regression) -> list[Markup]:
    tells = dict.fromkeys(one.tells for one in sums_of(regression))  # the same is told by several
    told = [tag("li", {}, f"{one[:1].upper()}{one[1:]}.") for one in tells]
    asked = [
        "The slope, and for most families the curvature, of the loss over all rows at each point that was asked for."
    ]
    if regression.folds:
        asked.append(f"The same of the rows outside each of {regression.folds} folds, by which the penalty was chosen.")
    fit, before = [tag("li", {}, one) for one in asked], len(told) - len(AFTER)
    return [
        tag(
            "p", {}, "Everybody who took part knows these sums over the rows of all sites, from which each can take what it has added itself. What a "
            "single other site has added is known only where all others work together.",
        ),
        tag("ol", {"class": "told"}, *told[:before], *fit, *told[before:]),
    ]  # fmt: skip
