"""Four hospitals with files as files are, from the raw files to a signed report, by six commands of roundelay.

    roundelay ring init     every hospital: keys, a policy, an invitation that says what its columns hold
    roundelay ring plan     one of them: a formula over the columns of all
    roundelay ring accept   every hospital
    roundelay agent         every hospital: the fit
    roundelay model verify  whoever has the model
    roundelay model report  one page that can be published

The files differ in everything that files differ in. What can be told without a doubt is read as it stands; what can't is refused in a
sentence that names the column, the line and what to do. Each of those is provoked here once, and then mended as the sentence says.
"""

from __future__ import annotations

import csv
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

FORMULA = "ill ~ age + bmi + C(smoker) + sex + weight"
COLUMNS = "age,bmi,smoker,sex,weight,ill"
HEADER = ["age [years]", "bmi", "smoker", "sex", "weight [kg]", "ill"]
POUND = 0.45359237
Row = list[str]


def patients(count: int, seed: int) -> list[Row]:
    """Rows as a careful hospital would write them."""
    rng = np.random.default_rng(seed)
    age, bmi, weight = rng.integers(25, 85, count), rng.normal(27.0, 4.0, count), rng.normal(78.0, 12.0, count)
    smoker, sex = rng.choice(["never", "former", "current"], count), rng.choice(["female", "male"], count)
    risk = 0.05 * (age - 55.0) + 0.08 * (bmi - 27.0) + 0.7 * (smoker == "current") + 0.3 * (sex == "male")
    ill = rng.random(count) < 1.0 / (1.0 + np.exp(-risk))
    cells = zip(age, bmi.round(1), smoker, sex, weight.round(1), np.where(ill, "yes", "no"), strict=True)
    return [[str(cell) for cell in row] for row in cells]


@dataclass(frozen=True)
class File:
    """A hospital's file: how it is written, and its rows."""

    header: Sequence[str]
    rows: Sequence[Row]
    delimiter: str = ","
    encoding: str = "utf-8"
    quoting: int = csv.QUOTE_MINIMAL

    def write(self, path: Path) -> None:
        """As a spreadsheet would."""
        with open(path, "w", newline="", encoding=self.encoding) as file:
            writer = csv.writer(file, delimiter=self.delimiter, quoting=self.quoting)
            writer.writerows([self.header, *self.rows])


def bergen() -> File:
    """Semicolons, decimal commas, a mark before the first cell, and two cells without a number."""
    rows = [[cell.replace(".", ",") for cell in row] for row in patients(160, 1)]
    rows[4][1], rows[30][1] = "NA", ""
    return File(HEADER, rows, ";", "utf-8-sig")


def tromso(slip: str = "unknown") -> File:
    """Pounds, everything in quotes, another order, a column of its own, and a word among the numbers."""
    rows = patients(150, 2)
    rows[9][1] = slip
    header = ["sex", "ward", "weight [lb]", "ill", "bmi", "smoker", "age [years]"]
    cells = [
        [sex, "A3", f"{float(weight) / POUND:.1f}", ill, bmi, smoker, age]
        for age, bmi, smoker, sex, weight, ill in rows
    ]
    return File(header, cells, quoting=csv.QUOTE_ALL)


def narvik(slip: str = "former") -> File:
    """Nobody was ill, nobody smokes now; and later one line has a word that nobody has agreed on."""
    rows = [row for row in patients(300, 3) if row[5] == "no" and row[2] != "current"][:80]
    rows[18][2] = slip
    return File(HEADER, rows)


def alta() -> File:
    """Three patients."""
    return File(HEADER, patients(3, 4))


FILES: dict[str, Callable[[], File]] = {"Bergen": bergen, "Tromso": tromso, "Narvik": narvik, "Alta": alta}


@dataclass(frozen=True)
class Hospitals:
    """The hospitals' folders, below one folder of this machine."""

    folder: Path

    def roundelay(self, *words: str, answer: str = "") -> subprocess.CompletedProcess[str]:
        """Run one command, and print it with what it says."""
        command = [sys.executable, "-m", "roundelay.cli", *words]
        done = subprocess.run(command, cwd=self.folder, input=answer, capture_output=True, text=True, timeout=600)
        self.show(words, done.stdout + done.stderr)
        return done

    def show(self, words: Sequence[str], said: str) -> None:
        """The first lines of what was said."""
        print(f"\n$ roundelay {' '.join(word if ' ' not in word else repr(word) for word in words)}")
        lines = [line for line in said.splitlines() if line.strip()]
        print("\n".join(f"  {line[:160]}" for line in lines[:6]) + ("\n  …" if len(lines) > 6 else ""))

    def refused(self, *words: str, because: Sequence[str]) -> None:
        """Run a command that must be refused in a sentence with these words."""
        done = self.roundelay(*words)
        check(done.returncode != 0 and all(word in done.stderr + done.stdout for word in because), done)

    def done(self, *words: str, answer: str = "") -> str:
        """Run a command that must succeed."""
        done = self.roundelay(*words, answer=answer)
        check(done.returncode == 0, done)
        return done.stdout

    # ------------------------------------------------------------ the six commands

    def init(self, name: str, port: int) -> str:
        """Keys, policy and invitation."""
        FILES[name]().write(self.folder / f"{name}.csv")
        return self.done(
            "ring", "init", "--folder", name, "--name", name, "--address", f"127.0.0.1:{port}", "--data", f"{name}.csv", "--columns", COLUMNS
        )  # fmt: skip

    def plan(self, *more: str) -> tuple[str, ...]:
        """The words of the command."""
        invitations = [f"{name}/{name}.invitation.toml" for name in FILES]
        return ("ring", "plan", *invitations, "--folder", "Bergen", "--formula", FORMULA, "--out", "ring.toml", *more)

    def accept(self, *names: str) -> None:
        """Each of these hospitals agrees."""
        for name in names:
            self.done("ring", "accept", "ring.toml", "--folder", name, answer="y\n")

    def agent(self, name: str) -> tuple[str, ...]:
        """The words of the command."""
        return (
            "agent",
            "--ring",
            "ring.toml",
            "--folder",
            name,
            "--data",
            f"{name}.csv",
            "--no-page",
            "--out",
            f"{name}.json",
        )

    def allow(self, name: str, *changes: tuple[str, str]) -> None:
        """Edit a hospital's policy, as its operator would."""
        policy = self.folder / name / "policy.toml"
        text = policy.read_text("utf-8")
        for before, after in changes:
            assert before in text
            text = text.replace(before, after)
        policy.write_text(text, "utf-8")

    def fit(self) -> None:
        """All agents at once, until each has the model."""
        agents = {
            name: subprocess.Popen(
                [sys.executable, "-m", "roundelay.cli", *self.agent(name)],
                cwd=self.folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            )
            for name in FILES
        }  # fmt: skip
        try:
            while all(agent.poll() in (None, 0) for agent in agents.values()) and None in {
                agent.poll() for agent in agents.values()
            }:
                time.sleep(0.1)
        finally:
            for agent in agents.values():
                agent.terminate()
        for name, agent in agents.items():
            said, _ = agent.communicate()
            self.show(self.agent(name), said)
            if agent.returncode != 0:
                raise SystemExit(said)


def check(holds: bool, done: subprocess.CompletedProcess[str]) -> None:
    """Stop where a command did something else."""
    if not holds:
        raise SystemExit(f"{done.args} ended with {done.returncode}: {done.stdout}{done.stderr}")


def free_ports(count: int) -> list[int]:
    """Ports of this machine that nobody listens at."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def main(folder: Path) -> Path:
    """From the raw files to the report, which is returned."""
    here = Hospitals(folder)
    for name, port in zip(FILES, free_ports(len(FILES)), strict=True):
        said = here.init(name, port)
        if name == "Tromso":  # where the slip is, while there is time to mend it
            assert 'The column "bmi" has numbers, but for line 11' in said

    print("\nA word among the numbers of one hospital. It corrects the cell, and offers its data anew.")
    here.refused(*here.plan(), because=("bmi", "numbers at", "words at Tromso", "offer it anew"))
    tromso(slip="26.5").write(folder / "Tromso.csv")
    here.done("ring", "offer", "--folder", "Tromso", "--data", "Tromso.csv", "--columns", COLUMNS)

    print("\nPounds at one, kilograms at the others. The plan says how one becomes the other.")
    here.refused(*here.plan(), because=("weight", '"kg" at', '"lb" at Tromso', "--convert"))
    agreed = ("--convert", f"weight: lb -> kg * {POUND}", "--reference", "smoker=never")
    here.done(*here.plan(*agreed))
    here.accept("Bergen")

    print("\nCells without a number. All agree to leave such rows out.")
    here.refused(*here.agent("Bergen"), because=("bmi", "line 6", "line 32", 'missing = "drop"'))
    here.done(*here.plan(*agreed, "--missing", "drop"))
    here.accept(*FILES)

    print("\nA word that is in no invitation. The hospital corrects it.")
    narvik(slip="cigars").write(folder / "Narvik.csv")
    here.refused(*here.agent("Narvik"), because=("Line 20", "smoker", "never, current, former"))
    narvik().write(folder / "Narvik.csv")

    print(
        "\nThree rows. The hospital knows what that means, wants to take part all the same, and says so in its policy."
    )
    here.refused(*here.agent("Alta"), because=("3 rows", "least_rows", "policy.toml"))
    here.allow("Alta", ("least_rows = 10", "least_rows = 3"), ("least_rows_a_level = 5", "least_rows_a_level = 1"))

    print("\nNumbers of one hospital are converted as the plan says. It has looked whether the plan says so rightly.")
    here.refused(*here.agent("Tromso"), because=("weight [kg] from lb", "conversions", "policy.toml"))
    here.allow("Tromso", ("conversions = false", "conversions = true"))

    here.fit()
    here.done("model", "verify", "Alta.json", "--ring", "ring.toml")
    here.done("model", "report", "Alta.json", "--ring", "ring.toml", "--out", "report.html")
    return folder / "report.html"


if __name__ == "__main__":
    print(f"\nThe report is {main(Path(tempfile.mkdtemp(prefix='hospitals-')))}.")
