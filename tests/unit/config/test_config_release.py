"""The [release] table: what it may say, and how it is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from config_fakes import RECIPE

from llamawright.config import load_recipe
from llamawright.errors import UsageError
from llamawright.model.platform import Backend
from llamawright.model.release import Accepted, ReleaseRule, TargetKind
from llamawright.paths import data_root

GOOD = """
[release]
null_variant = "cpu"

[[release.targets]]
name = "cpu"
backend = "cpu"
kind = "archive"

[[release.targets]]
name = "vulkan"
backend = "vulkan"
kind = "runtime-wheel"
accept = [{ state = "verified-software", reason = "no GPU" }]

[[release.providers]]
namespace = "gpu"
requires = ["gpu-provider>=1"]

[[release.variants]]
label = "gpu12"
backend = "vulkan"
properties = ["gpu :: toolkit :: 12.4"]
"""


def load(tmp_path: Path, old: str = "", new: str = "") -> ReleaseRule:
    assert old in GOOD
    path = tmp_path / "tiny.toml"
    path.write_text(RECIPE + GOOD.replace(old, new, 1), encoding="utf-8")
    rule = load_recipe(path).release
    assert rule is not None
    return rule


def refused(tmp_path: Path, old: str, new: str) -> UsageError:
    with pytest.raises(UsageError) as caught:
        load(tmp_path, old, new)
    line = int(caught.value.what.split(":")[1])
    text = (tmp_path / "tiny.toml").read_text().splitlines()
    assert 0 < line <= len(text)
    return caught.value


def test_targets_exemptions_and_variants_are_read(tmp_path: Path) -> None:
    rule = load(tmp_path)
    assert [(t.name, t.backend, t.kind) for t in rule.targets] == [
        ("cpu", Backend.CPU, TargetKind.ARCHIVE),
        ("vulkan", Backend.VULKAN, TargetKind.RUNTIME_WHEEL),
    ]
    assert rule.targets[1].reason_for(Accepted.VERIFIED_SOFTWARE) == "no GPU"
    assert rule.variants[0].properties == ("gpu :: toolkit :: 12.4",)
    assert rule.providers[0].requires == ("gpu-provider>=1",)


def test_a_recipe_needs_no_release(tmp_path: Path) -> None:
    path = tmp_path / "tiny.toml"
    path.write_text(RECIPE, encoding="utf-8")
    assert load_recipe(path).release is None


def test_the_shipped_recipe_releases_archives_and_wheels() -> None:
    rule = load_recipe(data_root() / "recipes" / "llama.cpp.toml").release
    assert rule is not None
    made = {(t.backend, t.kind) for t in rule.targets}
    assert made >= {(b, TargetKind.ARCHIVE) for b in (Backend.CPU, Backend.VULKAN)}
    assert made >= {(b, TargetKind.RUNTIME_WHEEL) for b in (Backend.CPU, Backend.VULKAN)}
    assert all(e.reason for t in rule.targets for e in t.accept)
    assert not any(t.accept for t in rule.targets if t.backend is Backend.CPU)
    assert {t.floor for t in rule.targets} == {"manylinux_2_28"}


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('kind = "archive"', 'kind = "tarball"', "cannot be 'tarball'"),
        ('backend = "cpu"', 'backend = "cuda"', "no backend 'cuda'"),
        ('backend = "cpu"', 'backend = "gpu"', "cannot be 'gpu'"),
        ('name = "vulkan"', 'name = "cpu"', "'cpu' is there twice"),
        ('name = "cpu"', 'name = "../cpu"', "cannot be '../cpu'"),
        ('kind = "archive"', 'kind = "archive"\narchs = ["61"]', "cpu has no CUDA code"),
        (
            'kind = "archive"',
            'kind = "archive"\nfloor = "2.28"',
            "is no floor of a cpu target",
        ),
        ('state = "verified-software"', 'state = "failed"', "cannot be 'failed'"),
        ('state = "verified-software"', 'state = "verified"', "cannot be 'verified'"),
        ('reason = "no GPU"', 'reason = " "', "an exemption needs its reason"),
        (', reason = "no GPU"', "", "lacks 'reason'"),
        ('label = "gpu12"', 'label = "null"', "'null' cannot be a variant's label"),
        ('label = "gpu12"', 'label = "GPU-12"', "cannot be a variant's label"),
        ('properties = ["gpu :: toolkit :: 12.4"]', "properties = []", "only the null variant"),
        ('"gpu :: toolkit :: 12.4"', '"gpu:toolkit:12.4"', "is no variant property"),
        ('"gpu :: toolkit :: 12.4"', '"cpu :: toolkit :: 12.4"', "no provider answers for 'cpu'"),
        ('namespace = "gpu"', 'namespace = "GPU"', "is no namespace"),
        ('null_variant = "cpu"', "null_varient = 1", "unknown key 'null_varient'"),
        ('kind = "runtime-wheel"', 'kind = "runtime-wheel"\nverdict = "any"', "unknown key"),
    ],
)
def test_each_fault_is_refused_with_its_line(tmp_path: Path, old: str, new: str, said: str) -> None:
    error = refused(tmp_path, old, new)
    assert said in error.what
    assert error.kind in {"bad-value", "unknown-key", "missing-key"}


def test_a_release_without_targets_is_none(tmp_path: Path) -> None:
    path = tmp_path / "tiny.toml"
    path.write_text(f"{RECIPE}\n[release]\ntargets = []\n", encoding="utf-8")
    with pytest.raises(UsageError, match="has no target"):
        load_recipe(path)


def test_cuda_codes_of_a_target_are_codes(tmp_path: Path) -> None:
    cuda = '\n[backends.cuda]\ntargets = ["ggml-cuda"]\nmodules = ["ggml-cuda"]\n'
    target = '\n[[release.targets]]\nname = "c"\nbackend = "cuda"\nkind = "archive"\narchs = [{}]\n'
    path = tmp_path / "tiny.toml"
    path.write_text(RECIPE + cuda + target.format('"61", "90-virtual"'), encoding="utf-8")
    rule = load_recipe(path).release
    assert rule is not None
    assert rule.targets[0].archs == ("61", "90-virtual")
    old = target.format('"61"') + 'floor = "manylinux_2_28"\n'
    path.write_text(RECIPE + cuda + old, encoding="utf-8")
    with pytest.raises(UsageError, match="is no floor of a cuda target"):
        load_recipe(path)
    path.write_text(RECIPE + cuda + target.format('"sm-old"'), encoding="utf-8")
    with pytest.raises(UsageError, match="is no CUDA device code"):
        load_recipe(path)
