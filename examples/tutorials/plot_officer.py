"""
For a privacy officer: what does this plan disclose, and to whom?
=================================================================

Ten minutes, without a formula. Your hospital is asked to take part in a study with
three others. No row will leave the house, they say. What will leave it, who sees it, and
what could somebody work out of it? Here you ask the plan itself, attack it, and see what
is proven and what is not.

Everything below is made by the commands that your hospital would run, and by measurement
on rows of which we have all. To do it yourself:

.. code-block:: sh

    python3 -m venv .venv && .venv/bin/pip install ".[ring,privacy]"
    .venv/bin/python examples/tutorials/plot_officer.py
"""

import atexit
import contextlib
import json
import shlex
import shutil
import tempfile
import textwrap
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from typer.testing import CliRunner

import roundelay as rl
from roundelay.cli.app import app

WIDE = 84
OUT = Path("out/officer")
OUT.mkdir(parents=True, exist_ok=True)
HOME = Path(tempfile.mkdtemp(prefix="officer-"))
atexit.register(shutil.rmtree, HOME, ignore_errors=True)


def run(command, fails=False):
    """Run a command of roundelay as in a terminal; what it says."""
    with contextlib.chdir(HOME):
        done = CliRunner().invoke(app, shlex.split(command))
    if (done.exit_code != 0) is not fails:
        raise RuntimeError(f"{command} ended with {done.exit_code}: {done.output}")
    return done.output


def wrapped(line, indent, hang=""):
    """A line as wide as the page."""
    wide = {"initial_indent": indent, "subsequent_indent": indent + hang}
    return textwrap.fill(line.strip(), WIDE, break_on_hyphens=False, **wide)


def roundelay(command, begins="", ends="\n\n\n", fails=False):
    """The same, printed: the command, and what it says between two marks."""
    said = run(command, fails)
    assert begins in said, said
    print(wrapped(f"$ roundelay {command}", "", " " * 6))
    part = (begins + said.partition(begins)[2] if begins else said).partition(ends)[0]
    for line in part.splitlines():
        print(wrapped(line, " " * (2 + len(line) - len(line.lstrip()))))


# %%
# Four hospitals want to know what raises blood pressure. You are at Tromsø. Each has made its keys and said what its columns hold, and Oslo has planned.

rng = np.random.default_rng(0)
rows = {}
for place, name in enumerate(("Oslo", "Bergen", "Tromso", "Narvik")):
    count = 120 + 20 * place
    age, bmi = rng.integers(25, 85, count), rng.normal(27.0, 4.0, count).round(1)
    smoker = rng.choice(["never", "former", "current"], count)
    effects = 0.6 * age + 0.8 * bmi + 6 * (smoker == "current")
    pressure = (90 + effects + rng.normal(0, 9, count)).round()
    rows[name] = (age, bmi, smoker, pressure)
    lines = [f"{a},{b},{s},{p:.0f}" for a, b, s, p in zip(*rows[name], strict=True)]
    header = "age [years],bmi,smoker,pressure [mmHg]"
    (HOME / f"{name}.csv").write_text("\n".join([header, *lines]), "utf-8")
    address = f"192.0.2.{place + 1}:7443"
    own = f"--folder {name} --name {name} --data {name}.csv --address {address}"
    run(f"ring init {own}")

invited = [f"{name}/{name}.invitation.toml" for name in rows]
four, three = " ".join(invited), " ".join(invited[:3])
study = "--folder Oslo --formula 'pressure ~ age + bmi + C(smoker)'"
roundelay(f"ring plan {four} {study} --out ring.toml", "The baton goes", "\n\n")

# %%
# The verdict
# -----------
#
# You can leave the code alone: what matters is what stands below it. The plan is one file, ``ring.toml``, and nothing is sent before your operator has accepted it. ``roundelay ring accept`` says what the others learn of your site. This is the part to read, all of it:

verdict = {"begins": "What others learn", "ends": "\n\nThe ring file"}
roundelay("ring accept ring.toml --folder Tromso --yes", **verdict)

# %%
# So what is told are *sums over all four*, by *sealed laps*: a question goes round, each site adds its answer under a mask, the masks cancel in the total, and nobody sees less than the total
# (:doc:`/concepts` has drawings). What the words say is proven; whom it is proven against is below.
#
# What you take part in
# ---------------------
#
# It is not for you to find the flaw in each plan. Your site's ``policy.toml`` says what it takes part in, every plan is held against it, and its words are for you to edit. Some entries:

policy = (HOME / "Tromso" / "policy.toml").read_text("utf-8")
for entry in policy.split("\n\n"):
    *why, value = entry.strip().splitlines()
    if value.partition(" ")[0] in (
        "least_members",
        "least_rows_a_level",
        "most_epsilon",
    ):
        words = " ".join(line.removeprefix("# ") for line in why)
        print(wrapped(words, "# "), value, "", sep="\n")

# %%
# The same study with three hospitals is refused, and the sentence says why:

roundelay(f"ring plan {three} {study} --out three.toml", "The baton goes", "\n")
roundelay("ring accept three.toml --folder Tromso --yes", "Only 3 members", fails=True)

# %%
# Another way to fit the same
# ---------------------------
#
# Most methods of the literature have no sums. A token goes round, each site changes it, and so **two neighbours see it before and after your visit**. That looks harmless: what they see is a step of a
# model. The verdict on such a plan, though, with the best start that there is:

for name in rows:
    own = f"--folder {name} --data {name}.csv --columns age,bmi,pressure"
    run(f"ring offer {own}")
token = "--task least_squares --target pressure --algorithm PIADMM1"
run(f"ring plan {four} --folder Oslo {token} --out token.toml")
roundelay("ring accept token.toml --folder Tromso --yes", **verdict)

# %%
# Who learns what, counted
# ------------------------
#
# The verdict is for the operator. For you there is a page: which numbers leave the site, who can see them, who could work out what, what your policy and your ledger say of it, what is not promised, and every message by
# its size. It is counted from the ring file and the program before anything runs; ``--html`` and ``--pdf`` make a file to attach to a data-protection impact assessment.

page = "disclose ring.toml --folder Tromso --data Tromso.csv --html disclosed.html"
roundelay(page, "The page is in")

# %%
# Its answer to *who learns what*, of the sums and of the token:

shutil.copy(HOME / "disclosed.html", OUT / "disclosed.html")
readers = {}
for plan in ("ring.toml", "token.toml"):
    disclosed = json.loads(run(f"disclose {plan} --folder Tromso --json"))
    readers[plan] = disclosed["readers"]
    print(f"{plan}: so many of the numbers of Tromso alone are known to")
    for one in readers[plan]:
        if one["of"]:
            line = f"{one['known']:5} of {one['of']:3}   {one['who']}"
            print(textwrap.fill(line, WIDE, subsequent_indent=" " * 15))

# %%
# And in words, what your two neighbours would have of you:

for plan, several in readers.items():
    two = next(one for one in several if one["who"].startswith("your neighbours"))
    print(wrapped(f"{plan}: {two['works_out']}", "", "  "))
    assert (two["known"] == 0) == (plan == "ring.toml")

# %%
# Attack it
# ---------
#
# Words are cheap. Here all rows are ours, so that we can play the neighbours, run every known attack on what they see of Tromsø, and compare with the truth. An error of 1 is a guess; one of
# 1e-10 is knowledge to ten digits.


def standard(column, everybody):
    return (column - everybody.mean()) / everybody.std()


everybody = [
    np.concatenate([one[column] for one in rows.values()]).astype(float)
    for column in (0, 1, 3)
]
features = [
    np.column_stack([standard(age, everybody[0]), standard(bmi, everybody[1])])
    for age, bmi, *_ in rows.values()
]
targets = [standard(pressure, everybody[2]) for *_, pressure in rows.values()]
problem, network = rl.LeastSquares(features, targets, scale="mean"), rl.ring(4)
TROMSO = list(rows).index("Tromso")


def errors(method, laps, quantity, observer="neighbours"):
    """How far the best attack is off after so many laps, and how far a guess."""
    run = rl.simulate(
        method,
        problem,
        network,
        hops=4 * laps + TROMSO,
        transcript=True,
        progress=False,
    )
    leaks = [
        leak
        for leak in rl.audit(run, observer, TROMSO).leaks
        if leak.quantity == quantity
    ]
    return min(leak.at_end for leak in leaks), min(leak.guess for leak in leaks)


methods = {
    "token (I-ADMM)": rl.IADMM(rho=1.0),
    "token, sealed start (PI-ADMM1)": rl.PIADMM1(rho=1.0, start=rl.SealedStart()),
    "sealed laps": rl.SealedLaps(),
}
quantities = {
    "Hessian H": "your columns with each other (X'X)",
    "slope g": "your columns with the outcome (X't)",
}
looks = (("o-", "#D55E00"), ("s--", "#009E73"), ("D-", "#0072B2"))
laps = range(2, 13)

figure, panels = plt.subplots(2, figsize=(5, 6.4), sharex=True, layout="constrained")
known = {}
for panel, (quantity, title) in zip(panels, quantities.items(), strict=True):
    for (name, method), (mark, colour) in zip(methods.items(), looks, strict=True):
        found = [errors(method, lap, quantity) for lap in laps]
        best = [min(attack, guess) for attack, guess in found]  # anybody can guess
        known[name, quantity] = best[-1]
        panel.semilogy(laps, best, mark, color=colour, label=name)
    panel.set(title=title, ylim=(1e-16, 3), ylabel="error of the best attack")
    panel.grid(color="#dddddd", lw=0.7)
    panel.spines[["top", "right"]].set_visible(False)
panels[-1].set(xlabel="laps", xticks=laps[::2])
labels = panels[0].get_legend_handles_labels()
figure.legend(*labels, loc="outside lower center", frameon=False)
figure.savefig(OUT / "attacks.png", dpi=150)

for name in methods:
    print(
        f"{name:32}"
        + ", ".join(
            f"{quantity} within {known[name, quantity]:.0e}" for quantity in quantities
        )
    )
assert (
    known["token (I-ADMM)", "Hessian H"] < 1e-6
    and known["token (I-ADMM)", "slope g"] < 1e-6
)
assert (
    known["token, sealed start (PI-ADMM1)", "Hessian H"] < 1e-6
    and known["token, sealed start (PI-ADMM1)", "slope g"] > 0.01
)
assert (
    known["sealed laps", "Hessian H"] > 0.01 and known["sealed laps", "slope g"] > 0.01
)

# %%
# The three numbers that the page has counted are those of X'X, and here they are found. For some laps the neighbours have fewer equations than unknowns; then, from one lap to the next, they know everything. Of sealed laps the neighbours
# know no more than at the start: what the sum over all four says of each.
#
# An agent runs these attacks **on itself** while it runs, and shows the result on its page as the privacy meter; ``--privacy-limit 0.1 --past-limit stop`` ends the run before somebody knows more than that.
#
# Who works together?
# -------------------
#
# Two neighbours are not the worst case. Let others pool all that they see, all that they know of masks, and their own answers:

others = {
    "Bergen and Narvik": rl.Colluders(TROMSO, honest=(list(rows).index("Oslo"),)),
    "all three others": rl.Colluders(TROMSO),
}
for who, observer in others.items():
    attack, guess = errors(rl.SealedLaps(), 2, "Hessian H", observer)
    print(f"{who:18} know X'X of Tromso within {min(attack, guess):.0e}")
    assert (attack < 1e-6) == (who == "all three others")
print()
for colluders in (2, 3):
    learned = rl.identifiable(rl.SealedLaps(), agents=4, colluders=colluders)
    print(wrapped(learned.words, ""), "\n")

# %%
# The first line is proven for any computer and any attack: two who are honest could have exchanged their data, and every word on every link would be the same. The second is the limit of any method that gives the
# true sum: whoever knows the sum and all other parts has yours. It is why ``least_members`` is 4, and why it matters *who* the others are.
#
# What was told before
# --------------------
#
# A sum over four is harmless, and so is one over three. Their difference is not:

with_us = sum(one.T @ one for one in features)
without_us = sum(one.T @ one for place, one in enumerate(features) if place != TROMSO)
assert np.allclose(with_us - without_us, features[TROMSO].T @ features[TROMSO])
print(
    "X'X of four less X'X of three is X'X of Tromso:",
    (with_us - without_us).round(1).tolist(),
)

# %%
# So each site keeps a **ledger** of every sum it has added to, signed by itself and sent to nobody, and refuses a plan that would give a single site away together with the old ones.
# :doc:`The consortium's page </tutorials/plot_consortium>` runs into that refusal, and says what consent means.

roundelay("ring ledger --folder Tromso")

# %%
# A promise for every single patient
# ----------------------------------
#
# All this is about sites. Sums of many say little of one patient, but *little* is no promise: who knows all rows but one can subtract them. Only noise promises something against everybody, and differential privacy
# says how much: by ε, which is small where one row more or less hardly changes what anybody sees. The sites draw the noise together, under the masks, so that it is hardly more than one trusted office would need.
# What it costs depends on how many rows there are. Here is how exactly the effect of age comes out, in mmHg for ten years:


def deviation_of_age(count, epsilon):
    """By sampling alone, and by noise; all numbers in [−1, 1] by public bounds."""
    rng = np.random.default_rng(1)
    age, bmi = rng.uniform(-1, 1, count), rng.uniform(-1, 1, count)
    pressure = np.clip((18 * age + 8 * bmi + rng.normal(0, 9, count)) / 50, -1, 1)
    blocks = (
        np.array_split(np.column_stack([age, bmi, np.ones(count)]), 4),
        np.array_split(pressure, 4),
    )
    problem = rl.LeastSquares(*blocks, weights="rows")
    budget = rl.PrivacyBudget(epsilon=epsilon, delta=1e-6)
    run = rl.simulate(
        rl.SealedLaps(clip_row=3**0.5, leave_out=1),
        problem,
        network,
        budget=budget,
        progress=False,
    )
    mmhg = 50 * 10 / 30  # a feature of 1 is 30 years, a target of 1 is 50 mmHg
    return 9 / 50 / np.sqrt(count / 3) * mmhg, run.privacy.deviations[0] * mmhg


print("  rows     by chance    ε = 3    ε = 1  ε = 0.3")
for count in (600, 6_000, 60_000):
    (chance, three), (_, one), (_, less) = (
        deviation_of_age(count, epsilon) for epsilon in (3.0, 1.0, 0.3)
    )
    print(f"{count:6,}   ± {chance:8.3f} {three:8.3f} {one:8.3f} {less:8.3f}")
    assert (one < chance) == (count == 60_000)

# %%
# The effect itself is 6 mmHg. With six hundred rows a promise of ε = 1 costs some six times what chance does, with sixty thousand about half of that: noise falls with the number of rows, chance with its root.
# A plan with ``--epsilon`` says what it costs, and ``most_epsilon`` in your policy limits what all runs together may: :doc:`/differential-privacy`.
#
# What to write down
# ------------------
#
# The page of ``roundelay disclose`` has it in words that can be signed. In short:
#
# - *What leaves*: words under masks; what they add up to, sum by sum; the model. *To whom*: the four, and whoever they hand the model to.
# - *Proven*: up to two of the others together learn the sum over the rest, and nothing else. *Not hidden*: that sum; anything from three who work together.
# - *Not promised*: anything for a single patient, without ``--epsilon``; that others give true data.
# - *Kept*: your policy, your ledger, the ring file that your operator accepted, and the signatures of all under the model.
#
# The proofs and the tests that attack them: :doc:`/privacy`. What a hostile planner, member, neighbour or stranger can do: :doc:`/threats`.
