"""SIGKILL anywhere in a release, and the next run ends with the bytes of an undisturbed one."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from release_kit import NAME, TinySteps, release_run, tree_of, two_targets
from transfer_kit import python, was_killed

STATEMENTS = ("sbom.json",)
IN_STEP = """
    import sys
    from pathlib import Path
    from release_kit import TinySteps, release_run, two_targets

    steps = TinySteps(statements=("sbom.json",), killed_at=int(sys.argv[2]))
    release_run(Path(sys.argv[1]), steps, wanted=two_targets(statements=("sbom.json",))).make()
"""
AT_POINT = """
    import os, signal, sys
    from pathlib import Path
    from llamawright.release import assemble, run, staging
    from release_kit import TinySteps, release_run, two_targets

    room, name, count = sys.argv[2], sys.argv[3], int(sys.argv[4])
    before = sys.argv[5] == "before"
    module = {"run": run, "staging": staging, "assemble": assemble}[room]
    inner, seen = getattr(module, name), []

    def killing(*arguments, **named):
        seen.append(name)
        if before and len(seen) == count:
            os.kill(os.getpid(), signal.SIGKILL)
        result = inner(*arguments, **named)
        if len(seen) == count:
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    setattr(module, name, killing)
    steps = TinySteps(statements=("sbom.json",))
    release_run(Path(sys.argv[1]), steps, wanted=two_targets(statements=("sbom.json",))).make()
"""


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    return finished(tmp_path_factory.mktemp("undisturbed"))


def finished(root: Path) -> dict[str, bytes]:
    steps = TinySteps(statements=STATEMENTS)
    released = release_run(root, steps, wanted=two_targets(statements=STATEMENTS)).make()
    assert [p.name for p in (root / "dist").iterdir()] == [NAME]
    return tree_of(released.folder)


def nothing_public(root: Path) -> None:
    """What stands at the release's place is whole, or there is nothing."""
    assert not (root / "dist" / NAME).exists()


@pytest.mark.parametrize("number", range(1, 12))
def test_killed_in_the_middle_of_a_step(
    tmp_path: Path, undisturbed: dict[str, bytes], number: int
) -> None:
    """1 source; 2-5 and 6-9 build, reopen, prove, attest of a target; 10-11 the last check."""
    done = python(IN_STEP, tmp_path, number)
    assert was_killed(done), done.stderr
    nothing_public(tmp_path)
    assert finished(tmp_path) == undisturbed


@pytest.mark.parametrize(
    "point",
    [
        ("staging", "flush_tree", 1, "before"),
        ("staging", "move", 1, "before"),
        ("staging", "move", 1, "after"),
        ("staging", "kept_files", 3, "after"),
        ("assemble", "link_or_copy", 5, "before"),
        ("assemble", "release_notes", 1, "after"),
        ("run", "assemble", 1, "after"),
        ("run", "recheck", 1, "after"),
        ("run", "move", 1, "before"),
    ],
)
def test_killed_between_the_steps(
    tmp_path: Path, undisturbed: dict[str, bytes], point: tuple[str, str, int, str]
) -> None:
    done = python(AT_POINT, tmp_path, *point)
    assert was_killed(done), done.stderr
    nothing_public(tmp_path)
    assert finished(tmp_path) == undisturbed


@pytest.mark.parametrize(("name", "side"), [("move", "after"), ("flush_folder", "after")])
def test_killed_after_the_one_rename(
    tmp_path: Path, undisturbed: dict[str, bytes], name: str, side: str
) -> None:
    """The release is there and whole; the next run only clears what is left beside it."""
    assert was_killed(python(AT_POINT, tmp_path, "run", name, 1, side))
    assert tree_of(tmp_path / "dist" / NAME) == undisturbed
    steps = TinySteps(statements=STATEMENTS)
    released = release_run(tmp_path, steps, wanted=two_targets(statements=STATEMENTS)).make()
    assert not released.fresh
    assert steps.calls == []
    assert [p.name for p in (tmp_path / "dist").iterdir()] == [NAME]


def test_killed_again_and_again(tmp_path: Path, undisturbed: dict[str, bytes]) -> None:
    """Each run gets a little further: the calls of what is kept are not made again."""
    for number in (1, 2, 4, 5):
        done = python(IN_STEP, tmp_path, number)
        assert was_killed(done), done.stderr
        nothing_public(tmp_path)
    assert finished(tmp_path) == undisturbed


def test_two_at_once_make_one_release(tmp_path: Path, undisturbed: dict[str, bytes]) -> None:
    with ThreadPoolExecutor(2) as pool:
        both = list(pool.map(lambda _: python(IN_STEP, tmp_path, 0), range(2)))
    assert [d.returncode for d in both] == [0, 0], [d.stderr for d in both]
    assert tree_of(tmp_path / "dist" / NAME) == undisturbed
