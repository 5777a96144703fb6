"""The build room over a tiny project with llama.cpp's shape: real cmake, ninja and compiler."""

from __future__ import annotations

import hashlib
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from build_tiny import plan, tiny_source
from llamawright.build import build_host, build_module
from llamawright.build.arguments import TUNING
from llamawright.config import load_recipe
from llamawright.errors import BuildError
from llamawright.model.plan import PatchedTree
from llamawright.model.recipe import Option
from llamawright.paths import data_root
from llamawright.store import Store
from reporter_kit import Told


@pytest.fixture
def source(tmp_path: Path) -> PatchedTree:
    return tiny_source(tmp_path / "src")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def test_host_and_module_are_built_and_belong_together(store: Store, source: PatchedTree) -> None:
    told = Told()
    host = build_host(plan(), source, store=store, reporter=told)
    module = build_module(plan(), source, host, store=store, reporter=told)
    assert host.abi == module.abi
    assert set(host.files) >= {
        "bin/tiny-cli", "bin/libtiny.so", "bin/libggml-base.so.0.1.2", "bin/libggml-cpu-x64.so",
        "licenses/LICENSE",
    }  # fmt: skip
    assert module.files == ("bin/libggml-vulkan.so",)
    assert [(c.name, c.present) for c in module.capabilities] == [
        ("coopmat", True),
        ("bf16", False),
    ]
    assert (host.root / "bin/libggml-base.so.0").is_symlink()
    assert (host.root / "bin/tiny-cli").stat().st_mode & 0o111


def test_no_folder_of_this_machine_is_in_a_binary(store: Store, source: PatchedTree) -> None:
    host = build_host(plan(), source, store=store, reporter=Told())
    for name in host.files:
        data = (host.root / name).read_bytes()
        assert str(source.root).encode() not in data, name
        assert str(store.root).encode() not in data, name
    assert b"$ORIGIN" in (host.root / "bin/tiny-cli").read_bytes()


def test_a_second_build_with_the_same_key_compiles_nothing(
    store: Store, source: PatchedTree
) -> None:
    first = build_host(plan(), source, store=store, reporter=Told())
    told = Told()
    assert build_host(plan(), source, store=store, reporter=told) == first
    assert any("built before" in line for line in told.lines)


def test_two_folders_give_the_same_bytes(tmp_path: Path, source: PatchedTree) -> None:
    other = tmp_path / "elsewhere" / "tree"
    shutil.copytree(source.root, other)
    one = build_host(plan(), source, store=Store(tmp_path / "a"), reporter=Told())
    two = build_host(
        plan(), replace(source, root=other), store=Store(tmp_path / "b b"), reporter=Told()
    )
    for name in one.files:
        assert (one.root / name).read_bytes() == (two.root / name).read_bytes(), name


def test_an_option_the_project_does_not_know_fails(store: Store, source: PatchedTree) -> None:
    odd = plan(module_options=(Option(name="LLAMA_VULKAN", value="ON"),))
    host = build_host(odd, source, store=store, reporter=Told())
    with pytest.raises(BuildError) as caught:
        build_module(odd, source, host, store=store, reporter=Told())
    assert "LLAMA_VULKAN was given and never read" in caught.value.why


def test_a_backend_that_stays_off_fails(store: Store, source: PatchedTree) -> None:
    off = plan(module_options=(Option(name="GGML_VULKAN", value="OFF"),))
    host = build_host(off, source, store=store, reporter=Told())
    with pytest.raises(BuildError) as caught:
        build_module(off, source, host, store=store, reporter=Told())
    assert caught.value.kind == "configure-gate"
    assert "CMake did not say: Including Vulkan backend" in caught.value.why


def test_a_compile_error_shows_its_line_command_and_log(store: Store, source: PatchedTree) -> None:
    (source.root / "one.cpp").write_text("int one() { return nothing; }\n")
    with pytest.raises(BuildError) as caught:
        build_host(plan(), source, store=store, reporter=Told())
    error = caught.value
    assert error.kind == "compile-failed"
    assert any("nothing" in line for line in error.tail)
    assert "ninja -C" in error.command.replace(str(plan().tools[2].path), "ninja")
    assert "one.cpp" in Path(error.log).read_text()


def test_a_cured_source_goes_on_where_it_stopped(store: Store, source: PatchedTree) -> None:
    good = (source.root / "one.cpp").read_text()
    (source.root / "one.cpp").write_text("int one() { return nothing; }\n")
    with pytest.raises(BuildError):
        build_host(plan(), source, store=store, reporter=Told())
    (source.root / "one.cpp").write_text(good)
    assert "bin/tiny-cli" in build_host(plan(), source, store=store, reporter=Told()).files


def test_a_program_that_is_not_made_is_named(store: Store, source: PatchedTree) -> None:
    base = plan()
    recipe = replace(base.recipe, libraries=(*base.recipe.libraries, "gone"))
    with pytest.raises(BuildError) as caught:
        build_host(replace(base, recipe=recipe), source, store=store, reporter=Told())
    assert "libgone.so" in caught.value.what


def test_a_missing_licence_text_is_refused(store: Store, source: PatchedTree) -> None:
    (source.root / "LICENSE").unlink()
    with pytest.raises(BuildError) as caught:
        build_host(plan(), source, store=store, reporter=Told())
    assert caught.value.kind == "license-missing"


def test_a_tuned_target_that_is_gone_is_named(store: Store, source: PatchedTree) -> None:
    base = plan()
    extra = Option(name="LLAMAWRIGHT_O2", value="tiny;renamed", type="STRING")
    options = (*(o for o in base.host_options if o.name != extra.name), extra)
    with pytest.raises(BuildError) as caught:
        build_host(replace(base, host_options=options), source, store=store, reporter=Told())
    assert "renamed" in "\n".join(caught.value.tail)


def test_the_recipe_knows_the_tuning_it_was_measured_with() -> None:
    recipe = load_recipe(data_root() / "recipes" / "llama.cpp.toml")
    said = next(o.value for o in recipe.options if o.name == "LLAMAWRIGHT_TUNING")
    assert said == hashlib.sha256((data_root() / TUNING).read_bytes()).hexdigest()
