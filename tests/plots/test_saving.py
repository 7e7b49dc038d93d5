from pathlib import Path

import pytest
from matplotlib.image import imread

import roundelay as rl
from roundelay.plots import plot_convergence, save_figure


def test_a_png_has_at_least_150_dots_an_inch(run: rl.Run, tmp_path: Path) -> None:
    figure = plot_convergence({"a": run})
    path = save_figure(figure, tmp_path / "new" / "folder" / "a.png")
    height, width, _ = imread(path).shape
    assert width >= 150 * figure.get_figwidth() and height >= 150 * figure.get_figheight()


@pytest.mark.parametrize(("suffix", "head"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("PDF", b"%PDF")])
def test_the_suffix_chooses_the_format(run: rl.Run, tmp_path: Path, suffix: str, head: bytes) -> None:
    path = save_figure(plot_convergence({"a": run}), tmp_path / f"a.{suffix}")
    assert path.read_bytes().startswith(head)


@pytest.mark.parametrize("suffix", ["png", "svg", "pdf"])
def test_the_same_figure_gives_the_same_file(run: rl.Run, tmp_path: Path, suffix: str) -> None:
    first, second = (
        save_figure(plot_convergence({"a": run}), tmp_path / f"{name}.{suffix}").read_bytes() for name in "ab"
    )
    assert first == second


@pytest.mark.parametrize(("name", "words"), [("a.txt", "ends in '.txt'"), ("a", "has no suffix")])
def test_other_suffixes_are_refused(run: rl.Run, tmp_path: Path, name: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        save_figure(plot_convergence({"a": run}), tmp_path / name)
    assert not list(tmp_path.iterdir())
