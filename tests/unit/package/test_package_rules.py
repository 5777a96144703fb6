"""The audit's rules over facts alone: each fault is found, told apart and has a cure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from llamawright.errors import ExitCode, PackageError
from llamawright.model.artifact import BinaryFacts
from llamawright.model.platform import Platform, System
from llamawright.package import closure, contents, hazards
from llamawright.package.audit import RULES, audit
from llamawright.package.expected import Expected
from llamawright.package.findings import Finding, Severity, grouped, refuse
from llamawright.package.layout import Placed
from llamawright.package.reading import Reading
from llamawright.package.subject import Subject
from package_kit import LINUX, MACOS, WINDOWS, capability

CPU = ("libggml-cpu.so", "libggml-cpu-*.so", "ggml-cpu-*.dll")
DEVICE = ("libggml-vulkan.so", "ggml-vulkan.dll")
EXPECTED = Expected(
    programs=("tiny-cli",),
    needed=("tiny-cli", "libggml-cpu-x64.so", "libggml-vulkan.so"),
    one_of=(("libtiny.so", "libtiny.so.[0-9]*"), ("libggml-cpu-x64.so",)),
    allowed=("tiny-cli", "libtiny.so", "libtiny.so.[0-9]*", *CPU, *DEVICE),
    cpu=CPU,
    device=DEVICE,
)


def placed(path: str, link: str = "") -> Placed:
    return Placed(path=path, source=Path("/built") / path, link=link, executable=not link)


def reading(path: str, *imports: str, **changes: object) -> Reading:
    """Return a blameless reading of a Linux binary."""
    facts = BinaryFacts(
        path=path, format="elf", machine="x86_64", imports=imports or ("libc.so.6",),
        runpath=("$ORIGIN",), glibc="2.31", glibcxx="",
    )  # fmt: skip
    own = {k: v for k, v in changes.items() if k in BinaryFacts.__slots__}
    other = {k: v for k, v in changes.items() if k not in own}
    return Reading(facts=replace(facts, **own), **other)  # type: ignore[arg-type]


FILES = (
    placed("bin/libggml-cpu-x64.so"),
    placed("bin/libggml-vulkan.so"),
    placed("bin/libtiny.so", "libtiny.so.0"),
    placed("bin/libtiny.so.0"),
    placed("bin/tiny-cli"),
    placed("licenses/LICENSE"),
)
READINGS = (
    reading("bin/libggml-cpu-x64.so"),
    reading("bin/libggml-vulkan.so", "libtiny.so.0", "libvulkan.so.1"),
    reading("bin/libtiny.so.0"),
    reading("bin/tiny-cli", "libtiny.so.0", "libc.so.6"),
)


def subject(**changes: object) -> Subject:
    """Return an artifact without faults, with some of it changed."""
    good = Subject(
        platform=LINUX,
        expected=EXPECTED,
        files=FILES,
        digests={f.path: f.path for f in FILES},
        readings=READINGS,
        unreadable=(),
        allowed=("libc.so.6", "api-ms-win-*.dll", "KERNEL32.dll", "/usr/lib/libSystem.B.dylib"),
        device_allowed=("libvulkan.so.1", "vulkan-1.dll"),
        licences_missing=(),
        capabilities=(),
        required_capabilities=(),
        native=False,
    )
    return replace(good, **changes)  # type: ignore[arg-type]


def with_reading(changed: Reading, **changes: object) -> Subject:
    """Return the good artifact with one binary read otherwise."""
    kept = tuple(r for r in READINGS if r.facts.path != changed.facts.path)
    return subject(readings=(*kept, changed), **changes)


def only(found: Iterator[Finding] | tuple[Finding, ...]) -> Finding:
    findings = tuple(found)
    assert len(findings) == 1, findings
    assert findings[0].cure
    return findings[0]


def test_the_good_artifact_has_no_findings() -> None:
    assert audit(subject()) == ()


@pytest.mark.parametrize("rule", RULES)
def test_every_rule_says_what_it_is_for(rule: Callable[[Subject], Iterator[Finding]]) -> None:
    assert rule.__doc__


class TestImports:
    def test_a_library_nobody_has(self) -> None:
        found = only(closure.import_rules(with_reading(reading("bin/tiny-cli", "libfancy.so.3"))))
        assert found.kind == "foreign-import"
        assert found.path == "bin/tiny-cli"
        assert "libfancy.so.3" in found.what
        assert "allowed_imports" in found.cure

    def test_patterns(self) -> None:
        changed = subject(
            platform=WINDOWS,
            readings=(reading("bin/tiny-cli.exe", "api-ms-win-crt-heap-l1-1-0.dll"),),
        )
        assert not tuple(closure.import_rules(changed))

    def test_windows_names_have_no_case(self) -> None:
        files = (placed("bin/Tiny.dll"), placed("bin/tiny-cli.exe"))
        changed = subject(
            platform=WINDOWS,
            files=files,
            readings=(reading("bin/tiny-cli.exe", "kernel32.DLL", "tiny.dll"),),
        )
        assert not tuple(closure.import_rules(changed))

    def test_linux_names_have(self) -> None:
        assert only(closure.import_rules(with_reading(reading("bin/tiny-cli", "LIBC.so.6"))))

    @pytest.mark.parametrize(
        "name",
        ["libomp140.x86_64.dll", "VCOMP140.DLL", "libgomp.so.1", "libomp.dylib", "libiomp5md.dll"],
    )
    def test_an_openmp_library_has_its_own_cure(self, name: str) -> None:
        found = only(closure.import_rules(with_reading(reading("bin/libtiny.so.0", name))))
        assert found.kind == "foreign-import"
        assert "OpenMP" in found.what
        assert "GGML_OPENMP=OFF" in found.cure

    def test_a_bundled_openmp_library_is_no_fault(self) -> None:
        changed = subject(
            platform=WINDOWS,
            files=(placed("bin/libomp140.x86_64.dll"), placed("bin/ggml.dll")),
            readings=(reading("bin/ggml.dll", "libomp140.x86_64.dll"),),
        )
        assert not tuple(closure.import_rules(changed))

    @pytest.mark.parametrize("name", ["libc.musl-x86_64.so.1", "ld-musl-x86_64.so.1"])
    def test_musl_in_a_glibc_artifact(self, name: str) -> None:
        found = only(closure.import_rules(with_reading(reading("bin/tiny-cli", name))))
        assert found.kind == "musl"
        assert "glibc" in found.what

    def test_the_device_loader_is_for_the_module_alone(self) -> None:
        found = only(closure.import_rules(with_reading(reading("bin/tiny-cli", "libvulkan.so.1"))))
        assert found.path == "bin/tiny-cli"

    @pytest.mark.parametrize(
        ("name", "good"),
        [
            ("@rpath/libtiny.so.0", True),
            ("@loader_path/libtiny.so.0", True),
            ("libtiny.so.0", True),
            ("@rpath/lib/libtiny.so.0", False),
            ("/Users/runner/work/libtiny.so.0", False),
            ("/usr/lib/libSystem.B.dylib", True),
            ("/opt/homebrew/lib/libSystem.B.dylib", False),
        ],
    )
    def test_names_of_macos(self, name: str, good: bool) -> None:
        changed = with_reading(reading("bin/tiny-cli", name), platform=MACOS)
        assert (not tuple(closure.import_rules(changed))) is good

    def test_a_removed_library_makes_its_users_foreign(self) -> None:
        gone = tuple(f for f in FILES if f.path != "bin/libtiny.so.0")
        found = tuple(closure.import_rules(subject(files=gone)))
        assert [f.path for f in found] == ["bin/libggml-vulkan.so", "bin/tiny-cli"]

    def test_system_libraries(self) -> None:
        assert closure.system_libraries(subject()) == ("libc.so.6", "libvulkan.so.1")


class TestRunPath:
    @pytest.mark.parametrize("part", ["$ORIGIN", "${ORIGIN}", "$ORIGIN/", "$ORIGIN/."])
    def test_the_own_folder(self, part: str) -> None:
        changed = with_reading(reading("bin/tiny-cli", runpath=(part,)))
        assert not tuple(closure.runpath_rules(changed))

    def test_none_at_all(self) -> None:
        changed = with_reading(reading("bin/tiny-cli", runpath=()))
        assert not tuple(closure.runpath_rules(changed))

    @pytest.mark.parametrize(
        ("part", "words"),
        [
            ("", "empty part"),
            ("/home/me/build/bin", "building machine"),
            ("/usr/local/cuda/lib64", "building machine"),
            ("$ORIGIN/../lib", "leads out"),
            ("lib", "building machine"),
            ("$ORIGINAL", "building machine"),
            ("@loader_path", "building machine"),
        ],
    )
    def test_anywhere_else(self, part: str, words: str) -> None:
        changed = with_reading(reading("bin/tiny-cli", runpath=("$ORIGIN", part)))
        found = only(closure.runpath_rules(changed))
        assert found.kind == "runpath"
        assert words in found.what
        assert "CMAKE_INSTALL_RPATH" in found.cure

    def test_macos_has_its_own_word(self) -> None:
        good = reading("bin/tiny-cli", runpath=("@loader_path",), format="macho")
        bad = reading("bin/libtiny.so.0", runpath=("/Users/runner/build/bin",), format="macho")
        found = only(closure.runpath_rules(subject(readings=(good, bad))))
        assert found.path == "bin/libtiny.so.0"


class TestMachine:
    def test_another_machine(self) -> None:
        changed = with_reading(reading("bin/tiny-cli", machine="aarch64"))
        found = only(closure.machine_rules(changed))
        assert found.kind == "foreign-machine"
        assert "aarch64" in found.what
        assert "x86_64" in found.what

    @pytest.mark.parametrize(
        ("platform", "file_format", "machine", "good"),
        [
            (LINUX, "elf", "x86_64", True),
            (LINUX, "pe", "x86_64", False),
            (WINDOWS, "pe", "x86_64", True),
            (WINDOWS, "elf", "x86_64", False),
            (MACOS, "macho", "aarch64", True),
            (MACOS, "macho", "aarch64+x86_64", True),
            (MACOS, "macho", "x86_64", False),
            (Platform(System.WINDOWS, "AMD64"), "pe", "x86_64", True),
            (Platform(System.LINUX, "aarch64"), "elf", "aarch64", True),
        ],
    )
    def test_formats(self, platform: Platform, file_format: str, machine: str, good: bool) -> None:
        one = reading("bin/x", format=file_format, machine=machine)
        found = tuple(closure.machine_rules(subject(platform=platform, readings=(one,))))
        assert (found == ()) is good

    def test_a_half_written_file(self) -> None:
        found = only(closure.unreadable_rules(subject(unreadable=("bin/tiny-cli",))))
        assert found.kind == "unreadable"
        assert "half-written" in found.cure


class TestContents:
    @pytest.mark.parametrize(
        "name", ["tiny-cli", "libggml-cpu-x64.so", "libggml-vulkan.so", "libtiny.so"]
    )
    def test_missing(self, name: str) -> None:
        kept = tuple(f for f in FILES if not f.path.startswith(f"bin/{name}"))
        found = only(contents.missing_rules(subject(files=kept)))
        assert found.kind == "missing-file"
        assert found.path == f"bin/{name}"

    def test_a_file_in_another_folder_does_not_count(self) -> None:
        moved = tuple(
            replace(f, path=f.path.replace("bin/", "lib/")) if f.name == "tiny-cli" else f
            for f in FILES
        )
        kinds = [
            f.kind for f in audit(subject(files=moved, digests={f.path: f.path for f in moved}))
        ]
        assert kinds == ["missing-file", "unexpected-file"]

    @pytest.mark.parametrize(
        "path",
        ["bin/libggml-cuda.so", "bin/core.1234", "include/tiny.h", "README", "bin/sub/tiny-cli",
         "bin/libtiny.so.bak"],
    )  # fmt: skip
    def test_strange(self, path: str) -> None:
        found = only(contents.strange_rules(subject(files=(*FILES, placed(path)))))
        assert found.kind == "unexpected-file"
        assert found.path == path

    def test_the_same_library_under_two_names(self) -> None:
        files = (*FILES, placed("bin/libtiny.so.0.1.2"), placed("bin/libtiny.so.9"))
        digests = {f.path: f.path for f in FILES}
        digests |= {f"bin/libtiny.so.{n}": digests["bin/libtiny.so.0"] for n in ("0.1.2", "9")}
        found = only(contents.double_rules(subject(files=files, digests=digests)))
        assert found.kind == "identical-files"
        told = f"{found.path} {found.what}"
        assert all(n in told for n in ("libtiny.so.0", "libtiny.so.0.1.2", "libtiny.so.9"))

    def test_equal_licence_texts_are_no_fault(self) -> None:
        files = (*FILES, placed("licenses/a"), placed("licenses/b"))
        digests = {f.path: f.path for f in FILES} | {"licenses/a": "x", "licenses/b": "x"}
        assert not tuple(contents.double_rules(subject(files=files, digests=digests)))

    @pytest.mark.parametrize(
        "target",
        [
            "gone.so",
            "../../outside.so",
            "/usr/lib/libc.so.6",
            "libtiny.so",
            "ama-b9165ibllama.so.0",
        ],
    )
    def test_links(self, target: str) -> None:
        files = tuple(placed(f.path, target) if f.link else f for f in FILES)
        found = only(contents.link_rules(subject(files=files)))
        assert found.kind == "link"
        assert target in found.what

    def test_licences(self) -> None:
        found = only(contents.licence_rules(subject(licences_missing=("vendor/x/LICENSE",))))
        assert found.kind == "missing-licence"
        assert found.path == "vendor/x/LICENSE"

    def test_required_capabilities(self) -> None:
        lost, kept = capability("coopmat", present=False), capability("dot", present=True)
        changed = subject(
            capabilities=(lost, kept), required_capabilities=("coopmat", "dot", "unknown")
        )
        found = tuple(contents.capability_rules(changed))
        assert [f.path for f in found] == ["coopmat", "unknown"]
        assert {f.kind for f in found} == {"missing-capability"}


class TestHazards:
    def test_avx_code_outside_the_variants(self) -> None:
        changed = with_reading(reading("bin/libtiny.so.0", wide_vectors=300))
        found = only(hazards.vector_rules(changed))
        assert found.kind == "illegal-instruction"
        assert "300" in found.what
        assert "GGML_NATIVE=OFF" in found.cure

    @pytest.mark.parametrize("name", ["libggml-cpu-x64.so", "libggml-cpu-sse42.so"])
    def test_avx_code_in_a_plain_variant(self, name: str) -> None:
        changed = subject(readings=(reading(f"bin/{name}", wide_vectors=300),))
        assert only(hazards.vector_rules(changed)).path == f"bin/{name}"

    @pytest.mark.parametrize(
        "name", ["libggml-cpu-haswell.so", "libggml-cpu-zen4.so", "libggml-cpu.so"]
    )
    def test_avx_code_in_a_variant(self, name: str) -> None:
        changed = subject(readings=(reading(f"bin/{name}", wide_vectors=300),))
        assert not tuple(hazards.vector_rules(changed))

    def test_a_chance_hit_is_no_fault(self) -> None:
        changed = with_reading(reading("bin/libtiny.so.0", wide_vectors=3))
        assert not tuple(hazards.vector_rules(changed))

    def test_a_native_artifact_may(self) -> None:
        changed = with_reading(reading("bin/libtiny.so.0", wide_vectors=300), native=True)
        assert not tuple(hazards.vector_rules(changed))

    def test_memory(self) -> None:
        changed = with_reading(
            reading("bin/tiny-cli", executable_stack=True, text_relocations=True)
        )
        found = tuple(hazards.memory_rules(changed))
        assert [f.kind for f in found] == ["executable-stack", "text-relocations"]

    def test_leaks_refuse_where_the_compiler_can_map_them(self) -> None:
        leaking = reading("bin/tiny-cli", leaks=("/home/me/store",))
        found = only(hazards.leak_rules(with_reading(leaking)))
        assert found.kind == "path-leak"
        assert found.severity is Severity.ERROR
        assert "/home/me/store" in found.what

    def test_leaks_warn_on_windows(self) -> None:
        leaking = reading("bin/tiny-cli.exe", leaks=("C:\\store",), format="pe")
        found = only(hazards.leak_rules(subject(platform=WINDOWS, readings=(leaking,))))
        assert found.severity is Severity.WARNING

    def test_signatures_count_on_macos_only(self) -> None:
        unsigned = reading("bin/tiny-cli", format="macho")
        signed = reading("bin/libtiny.so.0", format="macho", signed=True)
        found = only(hazards.signature_rules(subject(readings=(unsigned, signed, READINGS[0]))))
        assert found.path == "bin/tiny-cli"
        assert "codesign" in found.cure


class TestRefusal:
    ONE = Finding(kind="runpath", path="bin/a", what="its run path is bad", cure="mend it")
    TWO = Finding(kind="link", path="bin/b", what="dead", cure="link it")

    def test_nothing_is_fine(self) -> None:
        refuse("x", ())

    def test_warnings_do_not_refuse(self) -> None:
        refuse("x", (replace(self.ONE, severity=Severity.WARNING),))

    def test_all_are_told_with_every_cure(self) -> None:
        with pytest.raises(PackageError) as caught:
            refuse("tiny", (self.ONE, self.TWO, replace(self.TWO, path="bin/c", what="gone")))
        error = caught.value
        assert error.code is ExitCode.PACKAGE
        assert error.kind == "audit"
        assert error.what == "the audit refuses tiny: 3 faults"
        assert all(w in error.why for w in ("[runpath] bin/a", "[link] bin/b: dead", "bin/c: gone"))
        assert error.hint.splitlines() == ["mend it", "link it"]

    def test_faults_of_one_kind_are_that_kind(self) -> None:
        with pytest.raises(PackageError) as caught:
            refuse("tiny", (self.ONE, replace(self.ONE, path="bin/c")))
        assert caught.value.kind == "runpath"
        assert caught.value.hint == "mend it"

    def test_one_fault_is_no_plural(self) -> None:
        with pytest.raises(PackageError, match=r"1 fault$"):
            refuse("tiny", (self.ONE,))

    def test_files_with_the_same_fault_share_a_line(self) -> None:
        findings = [replace(self.ONE, path=f"bin/{n}") for n in "abc"]
        assert grouped([*findings, self.TWO]) == (
            "[runpath] bin/a, bin/b, bin/c: its run path is bad",
            "[link] bin/b: dead",
        )
