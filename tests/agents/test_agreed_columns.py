"""What sites say of their columns, what they keep to themselves, and what is agreed on before a regression."""

import json
import tempfile
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st
from typer.testing import CliRunner

from roundelay.agents.agreement.agreed_columns import UnitChange, agreed_columns, lone_levels, unit_change
from roundelay.agents.agreement.identity import load_identity
from roundelay.agents.agreement.invitations import (
    Invitation,
    agreed_from,
    agreed_table,
    check_fits_task,
    read_invitation,
)
from roundelay.agents.agreement.plan import Task
from roundelay.agents.agreement.policy import POLICY, read_policy
from roundelay.agents.agreement.signed_text import parsed, signed_text, split_signature
from roundelay.agents.data.offering import Offer, offer
from roundelay.agents.data.reading import read_frame
from roundelay.cli.app import app
from roundelay.regression.columns import Column, Conversion
from roundelay.tables import Fields

LEAST = 3


def offered(tmp_path: Path, columns: dict[str, list[object]], *names: str, least: int = LEAST) -> Offer:
    path = tmp_path / "oslo.csv"
    pd.DataFrame(columns).to_csv(path, index=False, sep=";")
    return offer(path, least, names)


def one(tmp_path: Path, values: list[object], least: int = LEAST) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    """What is said of a single column: its kind and its levels; and the notes."""
    found = offered(tmp_path, {"a": values, "b": list(range(len(values)))}, "a", least=least)
    (column,) = found.columns
    return column.values, column.levels, found.notes


# ---------------------------------------------------------------- what a site says


def test_a_site_says_what_kind_of_values_a_column_has(tmp_path: Path) -> None:
    assert one(tmp_path, [1.5, 2.5, None] * 3) == ("number", (), ())
    assert one(tmp_path, ["1,5", "NA", "2,75"] * 3) == ("number", (), ())
    assert one(tmp_path, ["2024-01-31", "2024-02-01", "-"] * 3) == ("date", (), ())
    assert one(tmp_path, ["f", "m", "", " m "] * 3) == ("levels", ("f", "m"), ())
    assert one(tmp_path, ["No", "YES", "n/a"] * 3) == ("levels", ("no", "yes"), ())
    assert one(tmp_path, [True, False, None]) == ("levels", ("false", "true"), ())


def test_parquet_says_the_same(tmp_path: Path) -> None:
    days = pd.date_range("2024-01-01", periods=4).tolist() * 3
    frame = pd.DataFrame(
        {"age": [30.5, 40.0, None, 50.0] * 3, "sex": ["f", "m", "m", None] * 3, "stage": [1, 2, 2, 1] * 3, "seen": days, "ill": [True, False] * 6}
    )  # fmt: skip
    for name in ("oslo.csv", "oslo.parquet"):
        path = tmp_path / name
        frame.to_csv(path, index=False) if name.endswith("csv") else frame.to_parquet(path, index=False)
        found = offer(path, LEAST)
        assert [(column.name, column.values, column.levels) for column in found.columns] == [
            ("age", "number", ()), ("sex", "levels", ("f", "m")), ("stage", "number", ("1", "2")), ("seen", "date", ()),
            ("ill", "levels", ("false", "true")),
        ]  # fmt: skip
        assert not found.notes


def test_codes_are_told_as_words_are_and_measurements_are_not(tmp_path: Path) -> None:
    assert one(tmp_path, [1, 2, 3, 10] * 3 + [9]) == ("number", ("1", "2", "3", "10"), ())
    assert one(tmp_path, [1.0, 2.0, None] * 3) == ("number", ("1", "2"), ())
    assert one(tmp_path, list(range(11)) * 3) == ("number", (), ())
    assert one(tmp_path, [1, 2.5] * 3) == ("number", (), ())


def test_what_few_rows_have_is_not_told(tmp_path: Path) -> None:
    kind, levels, notes = one(tmp_path, ["common"] * 5 + ["so so"] * 3 + ["rare secret"] * 2)
    assert (kind, levels) == ("levels", ("common", "so so"))
    assert (
        len(notes) == 1
        and "1 of the 3 levels" in notes[0]
        and "fewer than 3 rows" in notes[0]
        and "join it" in notes[0]
    )
    assert "secret" not in notes[0]


@pytest.mark.parametrize("least", [1, 3])
def test_names_numbers_of_patients_and_free_text_are_not_told(tmp_path: Path, least: int) -> None:
    names = [f"patient {number}" for number in range(30)]
    kind, levels, notes = one(tmp_path, names, least)
    assert (kind, levels) == ("levels", ()) and "none of them is told" in notes[0] and "patient" not in notes[0]
    assert one(tmp_path, list(range(1001, 1009)), least)[:2] == ("number", ())
    many = [f"{number % 51:02d}th street" for number in range(51 * 4)]
    assert one(tmp_path, many, least)[:2] == ("levels", ())
    assert len(one(tmp_path, [text for text in many if text != "07th street"], least)[1]) == 50
    long = ["x" * 101] * 3 + ["y"] * 3
    kind, levels, notes = one(tmp_path, long, least)
    assert levels == ("y",) and "at most 100 letters" in notes[0]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.sampled_from(["a", "b", "c", "d e", "NA", "7", "7.5", "2024-01-01", "yes"]), min_size=1, max_size=40),
    st.integers(1, 5),
)
def test_no_word_is_told_that_fewer_rows_have(values: list[str], least: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "oslo.csv"
        path.write_text("x;y\n" + "".join(f"{value};1\n" for value in values))
        for column in offer(path, least, ["x"]).columns:
            truths = {value for value in values if value != "NA"} <= {"yes"}
            for level in column.levels:
                assert truths or values.count(level) >= least


def test_slips_and_doubts_are_said_to_the_site_itself(tmp_path: Path) -> None:
    _, _, notes = one(tmp_path, [1.5, 2.5, 3.5, "unclear 77", 4.5])
    assert any("line 5" in note and "offered as words" in note for note in notes) and not any(
        "77" in note for note in notes
    )
    kind, _, notes = one(tmp_path, ["03/04/2024", "05/06/2024"])
    assert kind == "date" and "the day and what the month" in notes[0]
    kind, _, notes = one(tmp_path, ["1,234", "5,678"])
    assert kind == "number" and "may be a fraction or thousands" in notes[0]
    found = offered(tmp_path, {"a": [None, "NA"], "b": [1, 2]})
    assert [column.name for column in found.columns] == ["b"] and "nothing but empty cells" in found.notes[0]


def test_only_what_is_named_is_offered(tmp_path: Path) -> None:
    found = offered(tmp_path, {"a [kg]": [1, 2], "b": [1, 2], "c": [1, 2]}, "c", "a")
    assert found.columns == (Column("a", "kg"), Column("c"))
    with pytest.raises(ValueError, match=r"There is no column 'd' in .*oslo\.csv: its columns are a, b, c"):
        offered(tmp_path, {"a [kg]": [1, 2], "b": [1, 2], "c": [1, 2]}, "d")
    (tmp_path / "twice.csv").write_text("a,a [kg]\n1,2\n")
    with pytest.raises(ValueError, match="'a' is twice"):
        offer(tmp_path / "twice.csv", LEAST)
    (tmp_path / "empty.csv").write_text("a,b\n")
    with pytest.raises(ValueError, match="has no rows"):
        offer(tmp_path / "empty.csv", LEAST)


def test_init_and_offer_say_what_the_invitation_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    frame = pd.DataFrame(
        {
            "who": [f"patient{n}" for n in range(12)],
            "sex": ["f", "m"] * 6,
            "age": range(40, 52),
            "area": ["N"] * 10 + ["S"] * 2,
        }
    )
    frame.to_csv("oslo.csv", index=False)

    def run(*words: str) -> str:
        said = CliRunner().invoke(app, ["ring", *words])
        assert said.exit_code == 0, said.output
        return said.stdout

    out = run(
        "init",
        "--folder",
        "oslo",
        "--name",
        "Oslo",
        "--data",
        "oslo.csv",
        "--columns",
        "sex, area,age",
        "--target",
        "age",
    )
    assert "sex: the words f, m" in out and "area: the words N\n" in out and "age: numbers" in out and "who" not in out
    assert "! 1 of the 2 levels" in out
    assert read_policy(Path("oslo")).allowed_columns == ("sex", "area", "age")
    path = Path("oslo/Oslo.invitation.toml")
    first = read_invitation(path.read_bytes(), "it")
    assert [column.levels for column in first.columns] == [
        ("f", "m"),
        (),
        ("N",),
    ] and b"patient" not in path.read_bytes()
    # The policy goes on to say what is offered; after the data have changed they are offered anew, with the same keys.
    frame.assign(area=["N"] * 6 + ["S"] * 6).to_csv("oslo.csv", index=False)
    told = json.loads(run("offer", "--folder", "oslo", "--data", "oslo.csv", "--json"))
    assert told["notes"] == [] and [column["name"] for column in told["offered"]] == ["sex", "age", "area"]
    again = read_invitation(path.read_bytes(), "it")
    assert again.certificate == first.certificate and again.columns[2].levels == ("N", "S")
    # One of an earlier release has an address all the same.
    tables = parsed(split_signature(path.read_bytes(), "it")[0], "it")["invitation"]
    path.write_bytes(
        signed_text(
            {"invitation": {**tables, "format": 2, "address": "oslo.example.org:7443"}}, load_identity(Path("oslo"))
        )
    )
    with pytest.raises(ValueError, match="roundelay ring offer"):
        read_invitation(path.read_bytes(), "it")
    run("offer", "--folder", "oslo", "--data", "oslo.csv")
    assert read_invitation(path.read_bytes(), "it").address == "oslo.example.org:7443"
    said = CliRunner().invoke(app, ["ring", "offer", "--folder", "oslo", "--data", "oslo.csv", "--columns", "who"])
    assert said.exit_code == 2 and "allowed_columns" in said.stderr
    text = (Path("oslo") / POLICY).read_text().replace("least_rows_a_level = 5", "least_rows_a_level = 7")
    (Path("oslo") / POLICY).write_text(text)
    assert "words, none of which is told" in run("offer", "--folder", "oslo", "--data", "oslo.csv", "--columns", "sex")


# ---------------------------------------------------------------- what is agreed on


def site(name: str, *columns: Column) -> Invitation:
    return Invitation(name, "", "", columns)


def words(name: str, *levels: str) -> Column:
    return Column(name, values="levels", levels=levels)


OSLO = site(
    "Oslo",
    words("area", "North", "South"),
    Column("age", "years"),
    words("ill", "no", "yes"),
    Column("stage", levels=("2", "10")),
)
BERGEN = site(
    "Bergen",
    Column("stage", levels=("1", "10")),
    words("ill", "false", "true"),
    Column("age", "years"),
    words("area", "East", "South"),
)


def everything(columns: tuple[Column, ...]) -> list[tuple[object, ...]]:
    return [(one.name, one.unit, one.values, one.levels, one.conversions) for one in columns]


def test_levels_are_those_of_all_sites_in_an_order_of_their_own() -> None:
    for invitations, order in (
        ([OSLO, BERGEN], ("area", "age", "ill", "stage")),
        ([BERGEN, OSLO], ("stage", "ill", "age", "area")),
    ):
        agreed = agreed_columns(invitations, ["age", "area", "ill", "stage"], factors=["stage"])
        assert tuple(column.name for column in agreed) == order
        levels = {column.name: column.levels for column in agreed}
        assert levels == {
            "area": ("East", "North", "South"),
            "ill": ("no", "yes"),
            "stage": ("1", "2", "10"),
            "age": (),
        }
    (area, stage) = agreed_columns([OSLO, BERGEN], ["stage", "area"], references={"area": "South"})
    assert area.levels == ("South", "East", "North") and (stage.values, stage.levels) == ("number", ())
    (area,) = agreed_columns(
        [OSLO, BERGEN], ["area"], levels={"area": ["South", "North", "East", "West"]}, references={"area": "West"}
    )
    assert area.levels == ("West", "South", "North", "East")


def test_yes_and_no_may_be_one_and_zero_where_they_are_levels() -> None:
    ill = site("Narvik", Column("ill", levels=("0", "1")))
    with pytest.raises(ValueError, match=r"words at Oslo and Bergen and numbers at Narvik: .*--levels ill=no,yes"):
        agreed_columns([OSLO, BERGEN, ill], ["ill"])
    for levels, said in ((("no", "yes"), {}), (("yes", "no"), {"ill": ["yes", "no"]})):
        (agreed,) = agreed_columns([OSLO, BERGEN, ill], ["ill"], factors=["ill"], levels=said)
        assert (agreed.values, agreed.levels) == ("levels", levels)


@pytest.mark.parametrize(
    ("invitations", "options", "said"),
    [
        ((OSLO, site("Narvik", Column("age"))), {}, "without a unit at Narvik: let one of them convert"),
        ((OSLO, site("Narvik", Column("age", "months"))), {}, 'in "years" at Oslo and in "months" at Narvik'),
        ((OSLO, site("Narvik", words("age", "old", "young"))), {}, "is in \"years\" at Oslo"),
        ((OSLO, site("Narvik", Column("age", "years", "date"))), {}, "has numbers at Oslo and dates at Narvik: let all sites write it alike"),
        ((OSLO, site("Narvik", Column("AGE", "years"))), {}, "Narvik lacks age: let the sites name the same columns"),
        ((site("Narvik", Column("age", "", "date")),) * 2, {"factors": ["age"]}, "dates at all sites, which are no levels"),
        ((OSLO, BERGEN), {"references": {"age": "30"}}, "has numbers and no levels"),
        ((OSLO, BERGEN), {"references": {"area": "North"}}, "said of the column 'area', which is not fitted"),
        ((OSLO, BERGEN), {"factors": ["age"]}, r"tell of 0 levels of the column 'age': .*--levels age=no,yes"),
        ((OSLO, BERGEN), {"levels": {"age": ["30"]}}, "name from 2 to 1000, each once"),
        ((OSLO, BERGEN), {"conversions": [unit_change("age: days -> months * 0.03")]}, 'in "years" at Oslo and Bergen: let one'),
        ((OSLO, BERGEN), {"conversions": [unit_change("age: a -> years * 1"), unit_change("age: b -> c * 1")]}, "to two units"),
        ((OSLO, BERGEN), {"conversions": [unit_change("age: a -> years * 1"), unit_change("age: a -> years * 2")]}, "twice from one"),
    ],
)  # fmt: skip
def test_what_can_not_be_agreed_on_is_refused_in_words(
    invitations: tuple[Invitation, ...], options: dict[str, object], said: str
) -> None:
    with pytest.raises(ValueError, match=said):
        agreed_columns(invitations, ["age"], **options)  # type: ignore[arg-type]


def test_refusals_of_levels_name_the_site_and_the_word() -> None:
    odd = site("Narvik", words("area", "north", "Up"))
    with pytest.raises(
        ValueError, match="the level 'North' at Oslo and 'north' at Narvik: let all sites spell it alike"
    ):
        agreed_columns([OSLO, odd], ["area"])
    with pytest.raises(
        ValueError,
        match="Bergen has the level 'East' in the column 'area', which is not among those given, North, South",
    ):
        agreed_columns([OSLO, BERGEN], ["area"], levels={"area": ["North", "South"]})
    with pytest.raises(
        ValueError, match="no level 'West', which is to be its reference: the levels are East, North, South"
    ):
        agreed_columns([OSLO, BERGEN], ["area"], references={"area": "West"})
    with pytest.raises(ValueError, match="tell of 0 levels of the column 'note'"):
        agreed_columns([site("Oslo", words("note"))] * 2, ["note"])


def test_whoever_plans_hears_of_levels_that_one_site_tells_of() -> None:
    columns = agreed_columns([OSLO, BERGEN], ["area", "ill", "age", "stage"], factors=["stage"])
    said = lone_levels([OSLO, BERGEN], columns)
    assert sorted(one.split(" of ")[1] for one in said) == [
        "the level '1'",
        "the level '2'",
        "the level 'East'",
        "the level 'North'",
    ]
    assert any(
        one.startswith("Only Bergen tells of the level 'East' of area.") and "(lone_levels)" in one for one in said
    )
    assert lone_levels([OSLO, BERGEN, OSLO, BERGEN], columns) == ()


def test_conversions_are_read_and_stand_in_the_plan() -> None:
    assert unit_change("weight: lb -> kg * 0.45359237") == UnitChange("weight", Conversion("lb", 0.45359237), "kg")
    assert unit_change("heat :K->°C * 1 - 273.15") == UnitChange("heat", Conversion("K", 1.0, -273.15), "°C")
    assert unit_change("heat: °F -> °C * .5e0 + 1e1").conversion == Conversion("°F", 0.5, 10.0)
    assert unit_change("dose:  -> mg * 1000") == UnitChange("dose", Conversion("", 1000.0), "mg")
    for text in ("", "weight: lb -> kg", "weight: lb -> kg * 0", "weight: lb -> kg * nan", "weight: kg -> kg * 1", "weight lb -> kg * 1", "w: a -> b * 1 + inf"):  # fmt: skip
        with pytest.raises(ValueError, match="can't be read: write the column"):
            unit_change(text)
    pounds = site("Narvik", Column("age", "months"))
    (age,) = agreed_columns([pounds, OSLO], ["age"], conversions=[unit_change("age: months -> years * 0.08333")])
    assert age.in_words == "age [years]: numbers; from months by 0.08333·x"
    assert words("sex", "f", "m").in_words == "sex: f (the reference), m"
    assert age == Column("age", "years") and age.conversions == (Conversion("months", 0.08333),)
    assert agreed_from(Fields(agreed_table(age), "it")) == age
    check_fits_task(Task("least_squares", (age,), Column("y")), site("Narvik", Column("age", "months"), Column("y")))
    with pytest.raises(ValueError, match="not one of numbers at all sites"):
        agreed_columns([OSLO, BERGEN], ["area"], conversions=[unit_change("area: m -> km * 1000")])


def test_a_fit_without_a_formula_takes_numbers() -> None:
    task = Task("logistic", (Column("age", "years"), Column("area")), Column("ill"))
    with pytest.raises(
        ValueError,
        match="Oslo has words or dates in the column area, and a fit without a formula takes numbers: plan one with --formula",
    ):
        check_fits_task(task, OSLO)
    check_fits_task(replace(task, features=task.features[:1]), OSLO)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"levels": ["1", "2"]}, "name the levels of a column that has levels, and of no other"),
        ({"values": "levels"}, "name the levels of a column that has levels, and of no other"),
        ({"values": "date"}, "convert numbers alone"),
        ({"conversions": [{"unit": "kg", "factor": 1.0, "offset": 0.0}]}, "from every other unit once"),
        ({"conversions": [{"unit": "lb", "factor": 0.0, "offset": 0.0}]}, "a factor other than 0"),
        ({"conversions": [{"unit": "lb", "factor": float("inf"), "offset": 0.0}]}, "finite"),
        ({"conversions": [{"unit": "lb\n", "factor": 1.0, "offset": 0.0}]}, "letters that can be printed"),
        ({"conversions": [{"unit": "lb", "factor": 1.0}]}, "has no field offset"),
        ({"conversions": [{"unit": str(n), "factor": 1.0, "offset": 0.0} for n in range(21)]}, "at most 20"),
    ],
)
def test_an_agreed_column_of_a_liar_is_refused(change: dict[str, object], said: str) -> None:
    table = agreed_table(Column("weight", "kg", conversions=(Conversion("lb", 0.45359237),)))
    with pytest.raises(ValueError, match=said):
        agreed_from(Fields({**table, **change}, "the plan"))


def test_what_sites_tell_is_enough_to_read_their_files(tmp_path: Path) -> None:
    """From raw files to the same numbers: other orders, separators and units, a level that one site lacks, yes and true."""
    texts = {
        "Oslo": "area,weight [kg],ill\n" + "North,70,yes\nSouth,80.5,no\n" * 3,
        "Bergen": "\ufeffill;weight [lb];area\r\n" + "TRUE;100,5;East\r\nFALSE;;South\r\n" * 3,
    }
    invitations = []
    for name, text in texts.items():
        (tmp_path / f"{name}.csv").write_bytes(text.encode())
        invitations.append(site(name, *offer(tmp_path / f"{name}.csv", LEAST).columns))
    columns = agreed_columns(
        invitations, ["ill", "weight", "area"], conversions=[unit_change("weight: lb -> kg * 0.45359237")]
    )
    frames = {name: read_frame(tmp_path / f"{name}.csv", columns, "drop") for name in texts}
    assert [tuple(frame["area"].cat.categories) for frame, _ in frames.values()] == [("East", "North", "South")] * 2
    assert [tuple(frame["ill"].cat.categories) for frame, _ in frames.values()] == [("no", "yes")] * 2
    frame, gaps = frames["Bergen"]
    assert frame["ill"].tolist() == ["yes"] * 3
    assert gaps[:3] == (3, (0, 3, 0), ("weight [kg] from lb by 0.453592·x",))
    assert frame["weight"].tolist() == [100.5 * 0.45359237] * 3
