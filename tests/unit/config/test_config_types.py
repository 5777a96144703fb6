"""What a recipe says about types, repeats and operations, and how nonsense is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from config_fakes import RECIPE

from llamawright.config import load_recipe
from llamawright.errors import UsageError
from llamawright.model.recipe import TypeSource, Verification
from llamawright.paths import data_root

GOOD = """
[verification.synthetic.hardware]
context = 64
chunks = 4
batches = [64, 1]

[verification.synthetic.software]
context = 32
chunks = 1
batches = [32, 1]

[verification.max_repeat]
value = 0.0005
reason = "measured"

[[verification.types]]
name = "Q8_0"
source = "synthetic"
software_batches = [32]
max_mean_kld = { value = 0.002, reason = "measured" }
backends = { cuda = { value = 0.01, reason = "rounds more" } }

[[verification.types]]
name = "IQ2_XS"
source = "synthetic"
importance = true
max_mean_kld = { value = 0.003, reason = "measured" }

[[verification.types]]
name = "F16"
max_mean_kld = { value = 0.001, reason = "measured" }

[[verification.operations]]
names = ["ROPE", "MUL_MAT"]
params = "type=f32"
seconds = 8.0
software = true
"""


def load(tmp_path: Path, old: str = "", new: str = "") -> Verification:
    assert old in GOOD
    path = tmp_path / "tiny.toml"
    path.write_text(RECIPE + GOOD.replace(old, new, 1), encoding="utf-8")
    return load_recipe(path).verification


def test_types_say_what_they_are_made_from(tmp_path: Path) -> None:
    q8, iq2, f16 = load(tmp_path).types
    assert (q8.source, iq2.source, f16.source) == (
        TypeSource.SYNTHETIC, TypeSource.SYNTHETIC, TypeSource.PINNED,
    )  # fmt: skip
    assert iq2.importance
    assert q8.software_batches == (32,)
    assert q8.backends["cuda"].value == 0.01


def test_work_repeats_and_operations_are_read(tmp_path: Path) -> None:
    found = load(tmp_path)
    assert found.synthetic is not None
    assert found.synthetic.hardware.batches == (64, 1)
    assert found.synthetic.software.chunks == 1
    assert found.max_repeat is not None
    (operations,) = found.operations
    assert operations.names == ("ROPE", "MUL_MAT")
    assert operations.software


def test_none_of_it_is_needed(tmp_path: Path) -> None:
    path = tmp_path / "tiny.toml"
    path.write_text(RECIPE, encoding="utf-8")
    found = load_recipe(path).verification
    assert (found.types, found.synthetic, found.max_repeat, found.operations) == (
        (),
        None,
        None,
        (),
    )


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("chunks = 4", "chunks = 0"),
        ("context = 64", "context = 3"),
        ("batches = [64, 1]", "batches = []"),
        ("batches = [64, 1]", "batches = [64, 64]"),
        ("batches = [32, 1]", "batches = [32, 0]"),
        ("value = 0.0005", "value = 0.0"),
        ("value = 0.002", "value = -1.0"),
        ("value = 0.01", "value = 0.0"),
        ("software_batches = [32]", "software_batches = [0]"),
        ("cuda = {", "cude = {"),
        ('source = "synthetic"', 'source = "synthetik"'),
        ('name = "Q8_0"', 'name = "../Q8_0"'),
        ('name = "Q8_0"', 'name = "--help"'),
        ('name = "F16"', 'name = "F16"\nimportance = true'),
        ("seconds = 8.0", "seconds = 0.0"),
        ('names = ["ROPE", "MUL_MAT"]', "names = []"),
        ('names = ["ROPE", "MUL_MAT"]', 'names = ["ROPE,-b"]'),
        ('params = "type=f32"', 'params = "type=("'),
    ],
)
def test_nonsense_is_refused_with_its_line(tmp_path: Path, old: str, new: str) -> None:
    with pytest.raises(UsageError) as caught:
        load(tmp_path, old, new)
    assert "tiny.toml:" in caught.value.what


def test_a_synthetic_type_needs_its_work(tmp_path: Path) -> None:
    table = GOOD[: GOOD.index("[verification.max_repeat]")]
    with pytest.raises(UsageError) as caught:
        load(tmp_path, table, "\n")
    assert "verification.synthetic" in caught.value.hint


def test_every_limit_of_the_shipped_recipe_has_its_reason() -> None:
    found = load_recipe(data_root() / "recipes" / "llama.cpp.toml").verification
    limits = [t.max_mean_kld for t in found.types]
    limits += [limit for t in found.types for limit in t.backends.values()]
    assert found.max_repeat is not None
    assert all(len(x.reason) > 20 for x in (*limits, found.max_repeat))
    assert sum(o.seconds for o in found.operations) <= 24
