"""The unpacked artifact, its reference, its environment and its command lines."""

from __future__ import annotations

import os
from itertools import pairwise
from pathlib import Path

import pytest

from llamawright.errors import PackageError
from llamawright.model.platform import Backend, Platform, System
from llamawright.model.recipe import Workload
from llamawright.verify import commands, runs
from llamawright.verify.commands import Target
from llamawright.verify.install import (
    DRIVER_VARIABLES,
    Install,
    clean_environment,
    driver_choice,
    lost_modules,
    missing_modules,
    reference_with_baseline,
    reference_without_modules,
    rule_of,
)
from verify_kit import LINUX, NAME, PROMPTS, manifest, recipe, verification

RULES = recipe().backends
FILES = (
    "llama-cli", "libggml-base.so.0.25.3", "libggml-vulkan.so", "libggml-cpu-x64.so",
    "libggml-cpu-zen4.so", "libllama.so.0.5.0",
)  # fmt: skip


def install(root: Path, *names: str, system: System = System.LINUX) -> Install:
    (root / "bin").mkdir(parents=True)
    for name in names or FILES:
        (root / "bin" / name).write_text(name)
    if not names:
        (root / "bin" / "libllama.so").symlink_to("libllama.so.0.5.0")
    return Install(root=root, platform=Platform(system, "x86_64"))


def there(made: Install) -> set[str]:
    return {p.name for p in made.bin.iterdir()}


def test_modules_are_found_by_the_recipes_patterns(tmp_path: Path) -> None:
    found = install(tmp_path)
    assert [p.name for p in found.modules(("ggml-vulkan",))] == ["libggml-vulkan.so"]
    assert [p.name for p in found.modules(("ggml-cpu-*",))] == [
        "libggml-cpu-x64.so", "libggml-cpu-zen4.so",
    ]  # fmt: skip
    assert found.modules(("ggml-cuda",)) == ()


def test_windows_names_its_files_otherwise(tmp_path: Path) -> None:
    found = install(tmp_path, "ggml-vulkan.dll", "llama-cli.exe", system=System.WINDOWS)
    assert [p.name for p in found.modules(("ggml-vulkan",))] == ["ggml-vulkan.dll"]
    assert found.program("llama-cli").name == "llama-cli.exe"


def test_what_a_backend_needs_and_is_not_there(tmp_path: Path) -> None:
    found = install(tmp_path)
    assert missing_modules(found, manifest(tmp_path), RULES) == ()
    (found.bin / "libggml-vulkan.so").unlink()
    assert missing_modules(found, manifest(tmp_path), RULES) == ("libggml-vulkan.so",)


def test_a_link_is_no_module(tmp_path: Path) -> None:
    found = install(tmp_path)
    (found.bin / "libggml-vulkan.so").unlink()
    (found.bin / "libggml-vulkan.so").symlink_to("libggml-base.so.0.25.3")
    assert missing_modules(found, manifest(tmp_path), RULES) == ("libggml-vulkan.so",)


def test_the_reference_holds_everything_but_the_device(tmp_path: Path) -> None:
    made = reference_without_modules(install(tmp_path / "a"), tmp_path / "r", RULES)
    assert there(made.install) == {*FILES, "libllama.so"} - {"libggml-vulkan.so"}
    assert (made.install.bin / "libllama.so").is_symlink()
    assert made.told == "the same archive without libggml-vulkan.so, on the CPU"
    assert not made.same_modules


def test_a_cpu_artifact_keeps_its_plainest_variant(tmp_path: Path) -> None:
    baselines = verification().baselines
    made = reference_with_baseline(install(tmp_path / "a"), tmp_path / "r", RULES, baselines)
    assert {n for n in there(made.install) if "cpu" in n} == {"libggml-cpu-x64.so"}
    assert not made.same_modules


@pytest.mark.parametrize("only", ["libggml-cpu-x64.so", "libggml-cpu-zen4.so"])
def test_with_one_variant_its_plain_paths_are_the_reference(tmp_path: Path, only: str) -> None:
    made = reference_with_baseline(
        install(tmp_path / "a", only), tmp_path / "r", RULES, ("ggml-cpu-x64",)
    )
    assert there(made.install) == {only}
    assert made.same_modules
    assert only in made.told


def test_a_refused_archive_tells_which_module_it_lost() -> None:
    why = (
        "bin/libggml-vulkan.so: missing\nbin/llama-cli: missing\n"
        "bin/libggml-cpu-x64.so: expected sha256 a, is b"
    )
    error = PackageError("x", why=why, kind="hash-mismatch")
    assert lost_modules(error, RULES, LINUX) == "libggml-vulkan.so"
    other = PackageError("x", why="bin/llama-cli: missing", kind="hash-mismatch")
    assert lost_modules(other, RULES, LINUX) == ""


def test_a_backend_that_the_recipe_does_not_know_is_refused() -> None:
    with pytest.raises(PackageError) as caught:
        rule_of((), Backend.VULKAN)
    assert caught.value.kind == "unknown-backend"


def test_the_environment_is_clean_and_leads_into_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("LD_LIBRARY_PATH", "LD_PRELOAD", "GGML_VK_VISIBLE_DEVICES", "LLAMA_ARG_DEVICE",
                 "GGML_BACKEND_PATH", "PYTHONPATH", "VK_INSTANCE_LAYERS"):  # fmt: skip
        monkeypatch.setenv(name, "/somewhere/else")
    monkeypatch.setenv("HOME", "/home/someone")
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    monkeypatch.setenv("VK_DRIVER_FILES", "/opt/icd.json")
    env = clean_environment(tmp_path, {"EXTRA": "1"})
    assert not {k for k, v in env.items() if v == "/somewhere/else"}
    assert env["HOME"] == str(tmp_path / "home")
    assert Path(env["XDG_CACHE_HOME"]).is_dir()
    assert env["XDG_DATA_HOME"] == "/home/someone/.local/share", "drivers may be installed there"
    assert env["VK_DRIVER_FILES"] == "/opt/icd.json", "the user's own choice of a driver"
    assert env["EXTRA"] == "1"
    assert ("VK_DRIVER_FILES", "/opt/icd.json") in driver_choice()
    assert "LD_LIBRARY_PATH" not in DRIVER_VARIABLES


WORK = Workload(context=128, chunks=2, batches=(1, 32), prompts=(256,))
HERE = (Path("/a/bin/x"), Path("/m.gguf"))


def pairs(argv: tuple[str, ...]) -> set[tuple[str, str]]:
    return set(pairwise(argv))


def test_a_device_run_names_its_device_and_offloads_everything() -> None:
    argv = commands.greedy(*HERE, PROMPTS[0], Target(device="Vulkan1", threads=3), batch=4)
    assert {("--device", "Vulkan1"), ("-ngl", "999"), ("-t", "3"), ("-ub", "4"), ("-n", "4"),
            ("--temp", "0"), ("--fit", "off"), ("-lv", "5")} <= pairs(argv)  # fmt: skip
    assert "-no-cnv" in argv
    assert "--no-display-prompt" in argv
    assert argv.index("-lv") < argv.index("--device"), "naming a device loads the modules"


def test_a_reference_run_names_no_device_and_offloads_nothing() -> None:
    argv = commands.greedy(*HERE, PROMPTS[0], Target(threads=3), batch=256)
    assert ("--device", "none") in pairs(argv)
    assert "-ngl" not in argv
    plain = commands.greedy(*HERE, PROMPTS[0], Target(threads=3, plain=True), batch=256)
    assert {"--no-repack", "-fa"} <= set(plain)


def test_both_sides_compute_the_same_chunks() -> None:
    target = Target(device="Vulkan0")
    base = commands.save_logits(*HERE, Target(), WORK, text=Path("/t"), out=Path("/b"))
    compared = commands.compare_logits(*HERE, target, WORK, base=Path("/b"), batch=32)
    for argv in (base, compared):
        assert {("-c", "128"), ("--chunks", "2")} <= pairs(argv)
    assert ("--save-all-logits", "/b") in pairs(base)
    assert ("--kl-divergence-base", "/b") in pairs(compared)
    assert {("-b", "32"), ("-ub", "32")} <= pairs(compared)


def test_the_list_sets_its_verbosity_first() -> None:
    argv = commands.list_devices(Path("/x"))
    assert argv.index("-lv") < argv.index("--list-devices")


def test_no_argument_is_a_shell_line() -> None:
    argv = commands.greedy(*HERE, PROMPTS[0], Target(device="Vulkan0"), batch=4)
    assert all(isinstance(a, str) for a in argv)
    assert PROMPTS[0].text in argv


def test_limits_grow_with_the_model(tmp_path: Path) -> None:
    model = tmp_path / "m.gguf"
    model.touch()
    os.truncate(model, 40_000_000_000)
    table = verification(load_s=180.0, total_s=600.0)
    limits = runs.run_limits(table, model)
    assert limits.load_s == pytest.approx(180 + 800)
    assert limits.total_s == pytest.approx(600 + 800)
    assert runs.probe_limits(limits).total_s == table.probe_s


def test_threads_leave_half_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for cores, threads in ((1, 1), (2, 1), (16, 8), (128, 8), (None, 1)):
        monkeypatch.setattr(os, "cpu_count", lambda c=cores: c)
        assert runs.thread_count() == threads


def test_the_recipes_work_is_what_the_issue_asks_for() -> None:
    table = recipe().verification
    hard, soft = table.workload(software=False), table.workload(software=True)
    assert len(hard.prompts) >= 2
    assert len(soft.prompts) >= 2
    assert 1 in hard.batches
    assert max(hard.batches) > 64, "upstream's kernels for many tokens begin there"
    assert hard.chunks * hard.context > max(hard.batches), "a second pass, for the speed"
    assert 32 in hard.batches
    assert 32 in soft.batches
    assert (hard.context - 1 - hard.context // 2) * hard.chunks >= 100
    assert table.prompts[0].expect == "Paris"
    assert all(len(w.prompts) <= len(table.prompts) for w in (hard, soft))
    assert 0.006 < table.max_mean_kld.value < 0.1, "above honest rounding, below a wrong kernel"
    assert table.max_mean_kld.reason
    assert table.min_top1.reason
    assert NAME.startswith(recipe().name)


def test_without_a_workload_the_whole_text_is_one_batch() -> None:
    work = verification(hardware=None, software=None).workload(software=False)
    assert work.batches == (verification().context,)
    assert len(work.prompts) == len(PROMPTS)
