"""
For a consortium: five hospitals, a fit, and one of them drops out
==================================================================

Ten minutes, from five raw files to one signed report. Five hospitals want to know what
makes people ill. No row may leave a hospital. On the way one of them stops, and the other
four must decide whether they may go on without it.

Everything here is real: each hospital is a folder, a file of data and a process of its
own, with its own keys and mutual TLS between them. The commands are those that operators
type, on hosts of their own; here they happen to share a machine. To do it yourself:

.. code-block:: sh

    python3 -m venv .venv && .venv/bin/pip install ".[ring]"
    .venv/bin/python examples/tutorials/plot_consortium.py
"""

import atexit
import csv
import json
import os
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import roundelay as rl

HOME = Path(tempfile.mkdtemp(prefix="hospitals-"))
atexit.register(shutil.rmtree, HOME, ignore_errors=True)
WIDE, OUT = 84, Path("out/consortium")

# %%
# The files, as files are
# -----------------------
#
# Oslo writes numbers as a programmer would. Bergen's spreadsheet has semicolons, decimal commas and two empty cells; Tromsø weighs in pounds and has a column of its own; Narvik
# says *true* for *yes*. Nobody has to tidy up: what can be told without a doubt is read as it stands.

SITES = {"Oslo": 220, "Bergen": 180, "Tromso": 160, "Narvik": 140, "Alta": 128}
FOUR = ("Oslo", "Bergen", "Tromso", "Narvik")
HEADER = ["age [years]", "bmi", "weight [kg]", "smoker", "sex", "ill"]
POUND = 0.45359237


def patients(count, seed):
    rng = np.random.default_rng(seed)
    age, bmi = rng.integers(25, 85, count), rng.normal(27.0, 4.0, count).round(1)
    weight = rng.normal(78.0, 12.0, count).round(1)
    smoker = rng.choice(["never", "former", "current"], count)
    sex = rng.choice(["female", "male"], count)
    risk = 0.05 * (age - 55.0) + 0.08 * (bmi - 27.0) + 0.3 * (sex == "male")
    chance = 1.0 / (1.0 + np.exp(-risk - 0.7 * (smoker == "current")))
    ill = np.where(rng.random(count) < chance, "yes", "no")
    rows = zip(age, bmi, weight, smoker, sex, ill, strict=True)
    return [[str(cell) for cell in row] for row in rows]


def write(name, header, rows, **how):
    with (HOME / f"{name}.csv").open(
        "w", newline="", encoding=how.pop("encoding", "utf-8")
    ) as file:
        csv.writer(file, **how).writerows([header, *rows])


rows = {name: patients(count, seed) for seed, (name, count) in enumerate(SITES.items())}
commas = [[cell.replace(".", ",") for cell in row] for row in rows["Bergen"]]
commas[4][1], commas[30][0] = "NA", ""
pounds = [
    [sex, "A3", f"{float(kg) / POUND:.1f}", ill, bmi, smoker, age]
    for age, bmi, kg, smoker, sex, ill in rows["Tromso"]
]
truths = [[*row[:5], "true" if row[5] == "yes" else "false"] for row in rows["Narvik"]]

write("Oslo", HEADER, rows["Oslo"])
write("Bergen", HEADER, commas, delimiter=";", encoding="utf-8-sig")
write(
    "Tromso",
    ["sex", "ward", "weight [lb]", "ill", "bmi", "smoker", "age [years]"],
    pounds,
    quoting=csv.QUOTE_ALL,
)
write("Narvik", HEADER, truths, delimiter="\t")
write("Alta", HEADER, rows["Alta"])

for name in SITES:
    print(
        f"{name:8}",
        *(HOME / f"{name}.csv").read_text("utf-8-sig").splitlines()[:2],
        sep="\n    ",
    )

# %%
# Each hospital: keys, a policy, an invitation
# --------------------------------------------
#
# ``roundelay ring init`` makes a folder for the site: keys that never leave it, a policy to read and edit, and an invitation for the others, which has no secret and no row. Below, what a
# command says is shortened to the lines that matter here.


def run(command, fails=False):
    """Run a command of roundelay as an operator does; what it says."""
    words = [sys.executable, "-m", "roundelay.cli", *shlex.split(command)]
    done = subprocess.run(words, cwd=HOME, capture_output=True, text=True, timeout=600)
    said = done.stdout + done.stderr
    if (done.returncode != 0) is not fails:
        raise RuntimeError(f"{command} ended with {done.returncode}: {said}")
    return said


def wrapped(line, indent="", hang=""):
    """A line as wide as the page."""
    wide = {"initial_indent": indent, "subsequent_indent": indent + hang}
    return textwrap.fill(line.strip(), WIDE, break_on_hyphens=False, **wide)


def roundelay(command, shows=("",), fails=False):
    """The same, printed: the command, and the lines that have one of these words."""
    said = run(command, fails)
    print(wrapped(f"$ roundelay {command}", "", " " * 6))
    for line in filter(str.strip, said.splitlines()):
        if any(word in line for word in shows):
            print(wrapped(line, "  "))


free = [socket.create_server(("127.0.0.1", 0)) for _ in SITES]
for name, one in zip(SITES, free, strict=True):
    address = f"127.0.0.1:{one.getsockname()[1]}"
    one.close()
    own = f"--folder {name} --name {name} --address {address} --data {name}.csv"
    columns = "age,bmi,weight,smoker,sex,ill"
    roundelay(f"ring init {own} --columns {columns}", shows=("Fingerprint", "weight ["))

# %%
# One of them plans
# -----------------
#
# The invitations go round by mail, the fingerprints are read aloud over the telephone. Oslo plans: a formula, as in R. What could be understood in two ways is refused, in a sentence that says what to do.

invitations = " ".join(f"{name}/{name}.invitation.toml" for name in SITES)
formula = "ill ~ age + bmi + weight + C(smoker) + sex"
plan = f"ring plan {invitations} --folder Oslo --out ring.toml --formula '{formula}'"
plan += " --missing drop --reference smoker=never"
roundelay(plan, fails=True)

# %%
# Pounds are to become kilograms, and by which factor is part of the plan, which all of them see.

convert = f" --convert 'weight: lb -> kg * {POUND}'"
roundelay(plan + convert, shows=("The baton", "It fits", "from lb"))

# %%
# Each hospital accepts, or not
# -----------------------------
#
# Each holds the plan against its own **policy**, a file that it edits: how many must take part, what may be fitted, what may be asked. Tromsø must allow that its numbers are
# converted. Alta's board is careful: of a thousand rows it allows five unknowns, not a hundred.


def allow(name, before, after):
    policy = HOME / name / "policy.toml"
    text = policy.read_text("utf-8")
    assert before in text, before
    policy.write_text(text.replace(before, after), "utf-8")


allow("Tromso", "conversions = false", "conversions = true")
allow("Alta", "most_parameters_per_row = 0.1", "most_parameters_per_row = 0.005")
for name in SITES:
    shown = ("can learn nothing", "is accepted") if name == "Oslo" else ("is accepted",)
    roundelay(f"ring accept ring.toml --folder {name} --yes", shows=shown)

# %%
# Accepting shows all of the plan, and asks; ``--yes`` has read it before. :doc:`The officer's page </tutorials/plot_officer>` goes through it line by line.
#
# The fit
# -------
#
# Each hospital starts its agent, and goes home. Nobody runs a server.


def agent(name):
    command = (
        f"agent --ring ring.toml --folder {name} --data {name}.csv --out {name}.json"
    )
    with (HOME / f"{name}.out").open("w", encoding="utf-8") as output:
        return subprocess.Popen(
            [sys.executable, "-m", "roundelay.cli", *command.split(), "--no-page"],
            cwd=HOME,
            env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )


agents = {name: agent(name) for name in SITES}
for process in agents.values():
    atexit.register(process.kill)


def wait_for(name, code):
    """Until the agent has ended, which it must in this way; what it said."""
    ended, said = agents[name].wait(600), (HOME / f"{name}.out").read_text("utf-8")
    if ended != code:
        raise RuntimeError(f"{name} ended with {ended}: {said}")
    return said


# %%
# Alta stops
# ----------
#
# How many rows all have together is only known when the agents have summed them up, under masks. Then Alta's agent looks into its policy, says why, and ends. It would have been the same had its machine died: the others lack one, and wait.

print(wrapped(wait_for("Alta", code=4)))
print()
roundelay("ring status --folder Oslo", shows=("waits for the baton", "link to Alta"))

# %%
# Four telephone calls later: Alta will not change its policy, and asks to be left out. (Had its machine died, the same command on it would go on from its journal, with nothing lost.)
#
# Going on with four
# ------------------
#
# A change of members is a new ring file, of the next *epoch*, signed by one who stays.

drop = "ring drop ring.toml Alta --folder Oslo --out ring-1.toml"
roundelay(drop, shows=("The baton goes", "Alta", "--despite"))

# %%
# That is a warning, and a site's own **ledger** makes it a refusal: a file in which each site notes every sum that it adds to. The sum over five is in it, and five less four is one.

accept = "ring accept ring-1.toml --folder {} --yes"
roundelay(accept.format("Oslo"), shows=("not accepted",), fails=True)

# %%
# What would be told, exactly? The ledger reckons with the worst, that all totals of five are known, since a line is written before the first word leaves. Here the agents came as far as
# the first sum: how many rows there are, and how many lack a cell. The second lacks Alta's part, so its masks never cancel. Five less four is then how many patients Alta has, and how many
# of them lack a cell; had Alta stopped in the middle of the fit, it would be as much as the refusal says. So Alta is asked whether that may be known. It says yes, and each site that stays gives
# its consent in so many words.

for name in FOUR:
    consent = accept.format(name) + " --despite-difference"
    roundelay(consent, shows=("is accepted",))

# %%
# The agents have been waiting all the time. They see the new ring file by themselves, make new keys for their masks, and begin anew; with four in each sum.

said = {name: wait_for(name, code=0) for name in FOUR}
for words in ("have found", "rows of this site"):
    lines = (line for line in said["Oslo"].splitlines() if words in line)
    print(*map(wrapped, lines))

# %%
# What the consent gave away can be read from Oslo's ledger, which keeps it, and the words *OVERRULED* with it:

ledger = "ring ledger --folder Oslo --json"
five, four = json.loads(run(ledger))["sums"]
print(wrapped(f"OVERRULED: {four['overruled'][0]}"))
assert four["overruled"] and not five["overruled"]
of_five, of_four = five["all_rows"], four["all_rows"]
alta = of_five - of_four
print(f"{of_five} rows of five, {of_four} of four: so Alta has {alta}.")
assert alta == SITES["Alta"]

# %%
# The model
# ---------
#
# All four have signed it, and whoever has the ring file can check that.

roundelay("model verify Oslo.json --ring ring-1.toml")
roundelay("model report Oslo.json --ring ring-1.toml --out report.html")
OUT.mkdir(parents=True, exist_ok=True)
shutil.copy(HOME / "report.html", OUT / "report.html")

model = rl.load_model(HOME / "Oslo.json")
found = pd.DataFrame(model.tidy()).set_index("term")
shown = found[["estimate", "std.error", "conf.low", "conf.high", "p.value"]]
print(shown.round(4).to_string())

# %%
# The report is one file of HTML that needs nothing beside it, and can be published: tables, pictures, who took part, what was disclosed, who has signed. That of another study looks like this:
#
# .. image:: /figures/report.png
#    :alt: The report of a regression: who took part, the coefficients with a picture, Table 1, calibration and residuals
#    :width: 480px

# %%
# Is it the pooled fit?
# ---------------------
#
# Only here, where all files are on one machine, can it be checked: the four files read by pandas, each in its way, and a logistic regression by Newton's method in NumPy, which shares
# nothing with the ring.

read = {name: pd.read_csv(HOME / f"{name}.csv") for name in ("Oslo", "Tromso", "Alta")}
read["Bergen"] = pd.read_csv(HOME / "Bergen.csv", sep=";", decimal=",")
read["Narvik"] = pd.read_csv(HOME / "Narvik.csv", sep="\t")
read["Narvik"]["ill"] = np.where(read["Narvik"]["ill"], "yes", "no")
read["Tromso"]["weight [kg]"] = read["Tromso"]["weight [lb]"] * POUND


def pooled(names):
    table = pd.concat([read[name][HEADER] for name in names]).dropna()
    numbers = table[["age [years]", "bmi", "weight [kg]"]].to_numpy(float)
    words = [table.smoker == "current", table.smoker == "former", table.sex == "male"]
    X = np.column_stack([np.ones(len(table)), numbers, *words]).astype(float)
    t = (table.ill == "yes").to_numpy(float)
    beta = np.zeros(X.shape[1])
    for _ in range(30):
        chance = 1.0 / (1.0 + np.exp(-X @ beta))
        information = (X.T * (chance * (1.0 - chance))) @ X
        beta += np.linalg.solve(information, X.T @ (t - chance))
    return beta, np.sqrt(np.diag(np.linalg.inv(information)))


estimates, errors = pooled(said)
difference = np.abs(found["estimate"] - estimates).max()
print(f"Largest difference from the fit to all rows of the four: {difference:.0e}")
assert difference < 1e-9 and np.allclose(found["std.error"], errors, rtol=1e-6)

# %%
# And what did it cost to lose Alta? Nothing of the four's, and a little of what they know: every interval is about as much wider as rows are missing.

_, with_alta = pooled(SITES)
wider = found["std.error"] / with_alta
low, high = 100 * (wider.min() - 1), 100 * (wider.max() - 1)
print(f"Intervals are {low:.0f} to {high:.0f} % wider than with Alta.")
assert (wider > 1.0).all()

places, shown = np.arange(6), found.iloc[1:]
figure, axis = plt.subplots(figsize=(5.4, 3.6), layout="constrained")
middle, low, high = (
    np.exp(shown[name]) for name in ("estimate", "conf.low", "conf.high")
)
bars = {
    "xerr": [middle - low, high - middle],
    "fmt": "o",
    "color": "#0072B2",
    "capsize": 3,
}
axis.errorbar(middle, places, **bars, label="ring of four, 95 %")
rings = {"ms": 11, "mfc": "none", "mec": "#D55E00"}
axis.plot(
    np.exp(estimates[1:]), places, "o", **rings, label="all their rows in one place"
)
axis.axvline(1.0, color="#888888", lw=0.8)
ticks = [0.5, 0.7, 1, 1.5, 2]
axis.set(xscale="log", xticks=ticks, xticklabels=map(str, ticks), xlabel="odds ratio")
axis.set_yticks(places, shown.index)
axis.minorticks_off()
axis.invert_yaxis()
axis.spines[["top", "right"]].set_visible(False)
axis.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), frameon=False)
figure.savefig(OUT / "coefficients.png", dpi=150)

# %%
# What next
# ---------
#
# - The report of this run is ``out/consortium/report.html``.
# - Where *two* sites come or go at a time nobody needs to be asked: five less three is a sum of two. ``policy.toml`` says so by ``least_change``.
# - Sites that nobody can dial, keys that expire, disks that fill, other faults in files: :doc:`/ring`. A longer story of messy files: ``examples/messy_hospitals.py``.
# - Who can learn what, and by which proof: :doc:`/privacy`. What the hostile can do: :doc:`/threats`.
