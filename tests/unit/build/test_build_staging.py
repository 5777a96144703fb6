"""From a build folder to a staged install."""

from __future__ import annotations

from pathlib import Path

import pytest

import package_kit
from llamawright.build.staging import (
    host_patterns,
    library_patterns,
    stage_files,
    stage_licenses,
)
from llamawright.errors import BuildError
from llamawright.model.platform import Platform


def made(folder: Path, *names: str, **links: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / name).write_text(name)
        (folder / name).chmod(0o755)
    for name, target in links.items():
        (folder / name.replace("_so", ".so")).symlink_to(target)
    return folder


def chain(folder: Path, stem: str) -> Path:
    made(folder, f"{stem}.so.0.25.3")
    (folder / f"{stem}.so.0").symlink_to(f"{stem}.so.0.25.3")
    (folder / f"{stem}.so").symlink_to(f"{stem}.so.0")
    return folder


def test_a_library_comes_with_its_links_as_links(tmp_path: Path) -> None:
    source = chain(tmp_path / "bin", "libggml")
    groups = [library_patterns("ggml", package_kit.LINUX)]
    files = stage_files(source, tmp_path / "out", groups, "host")
    assert files == ("bin/libggml.so", "bin/libggml.so.0", "bin/libggml.so.0.25.3")
    assert (tmp_path / "out" / "libggml.so").readlink() == Path("libggml.so.0")
    assert (tmp_path / "out" / "libggml.so.0").readlink() == Path("libggml.so.0.25.3")


def test_a_stem_takes_no_other_library_along(tmp_path: Path) -> None:
    source = chain(chain(tmp_path / "bin", "libggml"), "libggml-base")
    groups = [library_patterns("ggml", package_kit.LINUX)]
    files = stage_files(source, tmp_path / "out", groups, "host")
    assert not [f for f in files if "base" in f]


def test_what_nobody_asked_for_stays_behind(tmp_path: Path) -> None:
    source = made(tmp_path / "bin", "llama-cli", "llama-gemma3-cli", "libggml-cuda.so")
    files = stage_files(source, tmp_path / "out", [("llama-cli",)], "host")
    assert files == ("bin/llama-cli",)
    assert [p.name for p in (tmp_path / "out").iterdir()] == ["llama-cli"]


def test_a_program_stays_executable(tmp_path: Path) -> None:
    source = made(tmp_path / "bin", "llama-cli")
    stage_files(source, tmp_path / "out", [("llama-cli",)], "host")
    assert (tmp_path / "out" / "llama-cli").stat().st_mode & 0o111 == 0o111


def test_everything_that_is_lacking_is_named_at_once(tmp_path: Path) -> None:
    source = made(tmp_path / "bin", "llama-cli")
    groups = [("llama-cli",), ("llama-server",), ("libggml-cpu-*.so",)]
    with pytest.raises(BuildError) as caught:
        stage_files(source, tmp_path / "out", groups, "host")
    assert caught.value.kind == "output-missing"
    assert "llama-server, libggml-cpu-*.so" in caught.value.what


def test_nothing_is_staged_when_something_is_lacking(tmp_path: Path) -> None:
    source = made(tmp_path / "bin", "llama-cli")
    with pytest.raises(BuildError):
        stage_files(source, tmp_path / "out", [("llama-cli",), ("gone",)], "host")
    assert list((tmp_path / "out").iterdir()) == []


def test_a_pattern_of_variants_takes_all_of_them(tmp_path: Path) -> None:
    source = made(tmp_path / "bin", "libggml-cpu-x64.so", "libggml-cpu-haswell.so", "libggml.so")
    files = stage_files(source, tmp_path / "out", [("libggml-cpu-*.so",)], "host")
    assert files == ("bin/libggml-cpu-haswell.so", "bin/libggml-cpu-x64.so")


def test_each_system_has_its_own_names() -> None:
    linux = library_patterns("llama", package_kit.LINUX)
    assert linux == ("libllama.so", "libllama.so.*")
    assert library_patterns("llama", package_kit.WINDOWS) == ("llama.dll",)
    macos = library_patterns("llama", package_kit.MACOS)
    assert macos == ("libllama.dylib", "libllama.*.dylib")


@pytest.mark.parametrize(
    ("platform", "expected"),
    [
        (package_kit.LINUX, {"tiny-cli", "libtiny.so", "libggml-base.so", "libggml-cpu-*.so"}),
        (package_kit.WINDOWS, {"tiny-cli.exe", "tiny.dll", "ggml-base.dll", "ggml-cpu-*.dll"}),
        (
            package_kit.MACOS,
            {"tiny-cli", "libtiny.dylib", "libggml-base.dylib", "libggml-cpu-*.so"},
        ),
    ],
    ids=["linux", "windows", "macos"],
)
def test_a_host_is_programs_libraries_and_cpu_modules(
    platform: Platform, expected: set[str]
) -> None:
    groups = host_patterns(package_kit.plan(platform))
    assert {g[0] for g in groups} == expected


def test_test_programs_belong_to_the_host_only_when_wanted() -> None:
    assert ("tiny-test",) not in host_patterns(package_kit.plan())
    assert ("tiny-test",) in host_patterns(package_kit.plan(with_tests=True))


def test_licences_get_flat_names(tmp_path: Path) -> None:
    tree = package_kit.source(tmp_path / "src")
    names = ("LICENSE", "vendor/other/LICENSE")
    files = stage_licenses(tree.root, tmp_path / "out", names)
    assert files == ("licenses/LICENSE", "licenses/vendor-other-LICENSE")
    assert (tmp_path / "out" / "vendor-other-LICENSE").read_bytes() == package_kit.VENDORED


def test_a_licence_that_is_gone_stops_the_build(tmp_path: Path) -> None:
    tree = package_kit.source(tmp_path / "src")
    with pytest.raises(BuildError) as caught:
        stage_licenses(tree.root, tmp_path / "out", ("LICENSE", "licenses/gone"))
    assert caught.value.kind == "license-missing"
    assert "licenses/gone" in caught.value.what
