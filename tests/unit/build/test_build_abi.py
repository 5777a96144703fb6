"""What makes a module and a host belong together."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import package_kit
from llamawright.build.abi import abi_digest
from llamawright.build.fileapi import Compiler, Group, Reply, Target
from llamawright.model.inventory import Found, Role
from llamawright.model.plan import PatchedTree, Plan
from llamawright.model.recipe import Option

SOURCE = PatchedTree(
    root=Path("/store/patched/p"), digest="p" * 64, source_digest="s" * 64, applied=(), retired=()
)
BUILD = Path("/store/work/a/build")


def reply(
    *, flags: str = "-O3", defines: tuple[str, ...] = ("GGML_SHARED",), build: Path = BUILD
) -> Reply:
    text = f'"-ffile-prefix-map={SOURCE.root}=." "-ffile-prefix-map={build}=." {flags}'
    group = Group(
        language="CXX", flags=(text,), defines=defines, includes=(f"{build}/ggml", "/sdk"),
        standard="17",
    )  # fmt: skip
    compiler = Compiler(language="CXX", path="/usr/bin/g++", id="GNU", version="12.2.0")
    base = Target(name="ggml-base", type="SHARED_LIBRARY", groups=(group,))
    return Reply(targets=(base,), cache=(), compilers=(compiler,))


def digest(answer: Reply, *, plan: Plan | None = None, build: Path = BUILD) -> str:
    return abi_digest(plan or package_kit.plan(), SOURCE, answer, source=SOURCE.root, build=build)


def test_two_build_folders_of_one_plan_belong_together() -> None:
    other = Path("/store/work/b/build")
    assert digest(reply()) == digest(reply(build=other), build=other)


def test_how_a_folder_of_the_source_is_spelled_means_nothing() -> None:
    more = f'"-ffile-prefix-map={SOURCE.root}/vendor/nlohmann/..=./vendor" -O3'
    assert digest(reply(flags=more)) == digest(reply())


def test_a_define_that_reaches_the_shared_library_parts_them() -> None:
    assert digest(reply()) != digest(reply(defines=("GGML_SHARED", "GGML_MAX_NAME=128")))


def test_the_order_of_definitions_means_nothing() -> None:
    one, two = ("A", "B=1"), ("B=1", "A")
    assert digest(reply(defines=one)) == digest(reply(defines=two))


def test_another_flag_parts_them() -> None:
    assert digest(reply()) != digest(reply(flags="-O3 -ffast-math"))


def test_another_compiler_version_parts_them() -> None:
    newer = replace(reply().compilers[0], version="13.1.0")
    assert digest(reply()) != digest(replace(reply(), compilers=(newer,)))


def test_the_compilers_bytes_count_and_its_place_does_not() -> None:
    def plan(sha256: str, path: str) -> Plan:
        gcc = Found(
            role=Role.CXX, name="gcc", path=Path(path), version="12.2", where="PATH",
            sha256=sha256, facts=(("c_sha256", "c" * 64),),
        )  # fmt: skip
        options = (Option(name="CMAKE_CXX_COMPILER", value=path, type="FILEPATH"),)
        return package_kit.plan(tools=(gcc,), host_options=options)

    one = digest(reply(), plan=plan("1" * 64, "/usr/bin/g++"))
    assert one == digest(reply(), plan=plan("1" * 64, "/opt/bin/g++"))
    assert one != digest(reply(), plan=plan("2" * 64, "/usr/bin/g++"))


def test_the_source_and_the_options_count() -> None:
    one = digest(reply())
    patched = replace(SOURCE, digest="q" * 64)
    assert one != abi_digest(package_kit.plan(), patched, reply(), source=SOURCE.root, build=BUILD)
    native = package_kit.plan(host_options=(Option(name="GGML_NATIVE", value="ON"),))
    assert one != digest(reply(), plan=native)


def test_a_modules_own_options_do_not_count_by_themselves() -> None:
    other = package_kit.plan(module_options=(Option(name="GGML_CUDA", value="ON"),))
    assert digest(reply()) == digest(reply(), plan=other)
