"""What other federated protocols tell of each site, beside sealed laps: the tables and the figure of docs/protocols.md.

Every protocol fits the same kind of rows: a small site of n rows, which is attacked, and three of 60. A number is how many of the fits gave every
row of the small site away, right to a hundredth of how far rows are apart; "wrong" counts rows that an attack vouched for and that are none.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

import roundelay as rl
from roundelay.privacy.protocols import sites as simulated
from roundelay.privacy.protocols.audit import held_against
from roundelay.privacy.protocols.sites import DATASHIELD, VANTAGE6, Played, Site

COEFFICIENTS = (0.3, 0.8, -0.6, 0.5, 0.4, -0.3)
Fit = Callable[[list[Site]], Played]
FITS: tuple[tuple[str, Fit], ...] = (
    ("ds.glm", lambda sites: simulated.datashield_glm(sites, "binomial")),
    ("v6-glm", lambda sites: simulated.vantage6_glm(sites, "binomial")),
    ("pda ODAL", lambda sites: simulated.pda_odal(sites, lead=1)),
    ("FedAvg, 1 local step, 30 rounds", lambda sites: simulated.federated_averaging(sites, "binomial", 0.5, 1, 30)),
    ("**sealed laps**, any one site", lambda sites: simulated.sealed_laps(sites, "binomial")),
    ("**sealed laps**, N − 2 sites together", lambda sites: simulated.sealed_laps(sites, "binomial", len(sites) - 2)),
)


def main(rows: Sequence[int], columns: int, repeats: int, figure: Path | None = None, save: Path | None = None) -> None:
    if save is not None:
        save_examples(save)
    tables_of_counts(repeats)
    who_is_alone(repeats)
    covariances()
    two_small_sites(columns, repeats)
    controls(repeats)
    shares = single_rows(rows, columns, repeats)
    members(columns, repeats)
    if figure is not None:
        draw(rows, columns, shares, repeats, figure)


def drawn(name: str, count: int, columns: int, seed: int, binary: bool = False) -> Site:
    random = np.random.default_rng([seed, count, columns, *name.encode()])
    free = random.standard_normal((count, columns - 1))
    design = np.column_stack([np.ones(count), free > 0.5 if binary else free])
    chance = 1.0 / (1.0 + np.exp(-design @ COEFFICIENTS[:columns]))
    return Site(name, design, (random.random(count) < chance).astype(float))


def four(count: int, columns: int, seed: int, binary: bool = False) -> list[Site]:
    return [drawn("A", count, columns, seed, binary), *(drawn(name, 60, columns, seed, binary) for name in "BCD")]


def records_of(site: Site) -> np.ndarray:
    return np.column_stack([site.X[:, 1:], site.y])


def audited(played: Played, records: object = None) -> rl.ProtocolAudit:
    """The small site where a protocol names it, else the one sum that there is."""
    sites = played.recorded.sites
    return rl.audit_protocol(played.recorded, "A" if "A" in sites else sites[0], records)


def single_rows(rows: Sequence[int], columns: int, repeats: int) -> dict[str, list[float]]:
    print(
        f"All rows of a site of n found, of {repeats} fits; {columns} columns with the constant (rows claimed and wrong)",
        flush=True,
    )
    print("| protocol | totals | " + " | ".join(f"n = {count}" for count in rows) + " |")
    print("|---|---|" + "---:|" * len(rows), flush=True)
    shares: dict[str, list[float]] = {}
    for name, fit in FITS:
        cells, totals = [], "exact"
        for count in rows:
            whole = wrong = 0
            for seed in range(repeats):
                sites = four(count, columns, seed)
                found = audited(fit(sites)).sites[0]
                right, false = held_against(found.single, records_of(sites[0]))
                whole, wrong = whole + (right == count), wrong + false
                if found.site != "A":
                    totals = "of the sum"
                elif not found.exact_totals:
                    totals = "weighted"
            shares.setdefault(name, []).append(whole / repeats)
            cells.append(f"{whole} ({wrong})" if wrong else f"{whole}")
        print(f"| {name} | {totals} | " + " | ".join(cells) + " |", flush=True)
    return shares


def two_small_sites(columns: int, repeats: int) -> None:
    """The limit of sealed laps: where those who do not collude have few rows together, the rows of their sum are found, not whose."""
    print(
        "\nSealed laps, all but two collude, each of the two has n rows: fits in which the rows of the two were found, unnamed",
        flush=True,
    )
    for count in (1, 2, 4, 8):
        whole = 0
        for seed in range(repeats):
            sites = four(count, columns, seed)
            sites[1] = drawn("B", count, columns, seed)
            found = audited(simulated.sealed_laps(sites, "binomial", 2)).sites[0]
            both = np.vstack([records_of(sites[0]), records_of(sites[1])])
            whole += held_against(found.single, both)[0] == 2 * count
        print(f"n = {count}: {whole} of {repeats}", flush=True)


def tables_of_counts(repeats: int) -> None:
    print(
        "\nColumns of 0 and 1: of how many combinations ds.glm tells the number of rows, of how many by outcome, and how many of both are wrong"
    )
    for columns in (3, 4, 5):
        for count in (20, 200, 2000):
            known, wrong, size = np.zeros(2, dtype=int), 0, 0
            for seed in range(repeats):
                sites = four(count, columns, seed, binary=True)
                counts = audited(simulated.datashield_glm(sites, "binomial")).sites[0].learned["table of counts"].counts
                assert counts is not None
                same = (sites[0].X[:, None, 1:] == counts.kinds).all(axis=2).astype(int)
                truth = np.column_stack([same.sum(axis=0), same.T @ (1 - sites[0].y), same.T @ sites[0].y])
                sure = counts.least == counts.most
                known, wrong, size = (
                    known + counts.exact,
                    wrong + (counts.least != truth)[sure].sum(),
                    size + len(counts.kinds),
                )
            words = f"{columns - 1} columns, n = {count}: {known[0]} of {size}, by outcome {known[1]} of {2 * size}"
            print(f"{words}, wrong {wrong}", flush=True)


def who_is_alone(repeats: int) -> None:
    print("\nOne case among n rows: fits in which its whole record was found, and with nfilter.tab = 3", flush=True)
    for count in (20, 2000):
        whole = stopped = 0
        for seed in range(repeats):
            sites = four(count, 4, seed)
            outcomes = np.zeros(count)
            outcomes[seed] = 1.0
            sites[0] = Site("A", sites[0].X, outcomes)
            found = audited(simulated.datashield_glm(sites, "binomial")).sites[0]
            whole += held_against(found.single, records_of(sites[0])[seed : seed + 1])[0]
            stopped += "A" in simulated.datashield_glm(sites, "binomial", DATASHIELD).refused
        print(f"n = {count}: {whole} of {repeats}; refused in {stopped} of {repeats}", flush=True)


def members(columns: int, repeats: int) -> None:
    print(
        "\nIs this record among the site's rows? Of its own rows, and of as many that are not: yes / no / undecided",
        flush=True,
    )
    for name, fit in (FITS[0], FITS[-2]):
        for count in (2, 4, 7, 15, 60):
            said = np.zeros((2, 3))
            for seed in range(repeats):
                sites = four(count, columns, seed)
                records = np.vstack([records_of(sites[0]), records_of(drawn("elsewhere", count, columns, seed))])
                for place, member in enumerate(audited(fit(sites), records).sites[0].members):
                    said[place // count, ("yes", "no", "undecided").index(member.verdict)] += 100.0 / count / repeats
            own, other = (" / ".join(f"{part:.0f} %" for part in line) for line in said)
            print(f"| {name} | {count} | {own} | {other} |", flush=True)


def covariances() -> None:
    print(
        "\nds.cov of a hidden column with columns that the analyst makes at the site: error of the column", flush=True
    )
    for count in (20, 200, 1000):
        site = drawn("A", count, 3, 0)
        for requests in (count // 2, count - 1):
            played = simulated.datashield_covariances(site, 1, requests, controls=DATASHIELD)
            one = rl.audit_protocol(played.recorded).sites[0]
            found = one.learned.get("hidden column")
            error = (
                "not found: " + one.left_out["hidden column"]
                if found is None
                else f"{np.abs(found.rows[:, 0] - site.X[:, 1]).max():.0e}"
            )
            print(f"n = {count}, {requests} requests: {error}", flush=True)


def controls(repeats: int) -> None:
    print(
        "\nAt the fewest rows that the defaults let through: fits in which all rows were found (rows claimed and wrong)",
        flush=True,
    )
    for name, own, fit in (
        ("DataSHIELD", DATASHIELD, simulated.datashield_glm),
        ("vantage6", VANTAGE6, simulated.vantage6_glm),
    ):
        for columns in (2, 3, 4):
            count = next(
                count for count in range(1, 100) if columns <= own.parameters_a_row * count and count >= own.least_rows
            )
            whole = wrong = done = seed = 0
            while done < repeats:
                sites = four(count, columns, 1000 + seed)
                seed += 1
                if own.refusal(sites[0].X, sites[0].y):  # an outcome in fewer rows than are asked for
                    continue
                found = audited(fit(sites, "binomial", own)).sites[0]
                right, false = held_against(found.single, records_of(sites[0]))
                done, whole, wrong = done + 1, whole + (right == count), wrong + false
            print(f"{name}, {columns} columns, n = {count}: {whole} of {repeats} ({wrong})", flush=True)


def draw(rows: Sequence[int], columns: int, shares: dict[str, list[float]], repeats: int, path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7.2, 3.6), layout="constrained")
    places = np.arange(len(rows))
    width = 0.8 / len(shares)
    for place, (name, share) in enumerate(shares.items()):
        label = name.replace("*", "")
        bars = axes.bar(places + (place - (len(shares) - 1) / 2) * width, 100.0 * np.array(share), width, label=label)
        for bar, one in zip(bars, share, strict=True):
            if one == 0.0:  # that nothing was found is seen as well
                axes.plot(bar.get_x() + width / 2, 1.0, ".", color=bar.get_facecolor(), markersize=3)
    axes.set_xticks(places, [str(count) for count in rows])
    axes.set(xlabel="rows of the site", ylabel="fits that gave all its rows away (%)", ylim=(0, 105))
    axes.set_title(f"Single rows from what each protocol sends: {columns} columns, {repeats} fits each", fontsize=10)
    axes.legend(fontsize=7, loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
    plt.close(figure)


def save_examples(folder: Path) -> None:
    """Messages of each protocol in files, as `roundelay audit --protocol` reads them, with the truth beside them."""
    import pandas as pd

    sites = four(7, 3, 0)
    for name, fit in FITS:
        word = name.replace("*", "").replace(",", "").replace("−", "-").replace(" ", "-").lower()
        rl.save_messages(fit(sites).recorded, folder / f"{word}.jsonl")
    names = ["x1", "x2", "outcome"]
    truth = pd.concat([pd.DataFrame(records_of(one), columns=names).assign(site=one.name) for one in sites])
    truth.to_csv(folder / "truth.csv", index=False)
    truth[names].iloc[:1].to_csv(folder / "record.csv", index=False)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[1, 2, 4, 7, 10, 15])
    parser.add_argument("--columns", type=int, default=3)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--figure", type=Path)
    parser.add_argument("--save", type=Path, help="write messages of each protocol to this folder")
    options = parser.parse_args()
    main(options.rows, options.columns, options.repeats, options.figure, options.save)
