"""gcc below a prefix: its compiler proper led to its libraries, and the whole proved by running."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from provide_fakes import LIB, deb, debian_set, write_blobs

from llamawright.errors import ToolMissingError
from llamawright.model.inventory import Role
from llamawright.provide.host_compiler import prove_host_compiler, unpack_compiler

PROPER = "usr/lib/gcc/x86_64-linux-gnu/12/cc1plus"
TELLS = '#!/bin/sh\necho "$LD_LIBRARY_PATH"; echo "$@"\n'
# Writes a program that says what a right one would.
HONEST = """#!/bin/sh
while [ "$1" != -o ]; do shift; done
printf '#!/bin/sh\\necho gcc 12.2.0 6\\n' > "$2"; chmod +x "$2"
"""


def compiler(tmp_path: Path, gxx: str = HONEST, *, proper: str = PROPER) -> Path:
    packages = {
        "pool/g/g++-12_12_amd64.deb": deb(
            {"usr/bin/x86_64-linux-gnu-g++-12": gxx, proper: TELLS},
            links={"usr/bin/g++-12": "x86_64-linux-gnu-g++-12"},
        ),
        "pool/l/libstdc++-12-dev_12_amd64.deb": deb({"usr/include/c++/12/vector": "// vector"}),
        "pool/i/libisl23_1_amd64.deb": deb(
            {f"{LIB}/libisl.so.23": b"x", "usr/share/doc/libisl23/copyright": "MIT"}
        ),
    }
    provided = debian_set(packages, name="gcc", role=Role.HOST_CXX, layout="debian-compiler")
    root = tmp_path / "gcc"
    unpack_compiler(provided, write_blobs(tmp_path / "blobs", packages), root)
    for path in (*root.glob("usr/bin/x86*"), *root.rglob("cc1plus.bin")):
        path.chmod(0o755)
    return root


def said(root: Path, *words: str, before: str = "") -> list[str]:
    env = {"PATH": "/usr/bin:/bin", **({"LD_LIBRARY_PATH": before} if before else {})}
    argv = [str(root / PROPER), *words]
    done = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=20, check=True)
    return done.stdout.splitlines()


def test_only_the_compiler_proper_gets_the_sets_libraries(tmp_path: Path) -> None:
    root = compiler(tmp_path)
    path, words = said(root, "-quiet", "a b.cpp")
    assert Path(path).resolve() == (root / LIB).resolve()
    assert words == "-quiet a b.cpp"
    assert said(root, before="/mine")[0].endswith(":/mine")


def test_headers_and_licences_are_unpacked(tmp_path: Path) -> None:
    root = compiler(tmp_path)
    assert (root / "usr/include/c++/12/vector").is_file()
    assert any("libisl23" in str(p) for p in root.rglob("copyright"))


def test_the_set_can_be_moved(tmp_path: Path) -> None:
    root = compiler(tmp_path)
    moved = tmp_path / "another place"
    root.rename(moved)
    assert Path(said(moved)[0]).resolve() == (moved / LIB).resolve()


def test_packages_without_a_compiler_proper_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ToolMissingError, match="does not work here") as caught:
        compiler(tmp_path, proper="usr/lib/gcc/x86_64-linux-gnu/12/cc1")
    assert "0 files cc1plus" in (caught.value.why or "")


def test_a_compiler_that_does_its_job_is_led_to(tmp_path: Path) -> None:
    root = compiler(tmp_path)
    assert prove_host_compiler(root) == str(root / "usr/bin/g++-12")


@pytest.mark.parametrize(
    ("gxx", "words"),
    [
        ("#!/bin/sh\necho fatal error: stdio.h >&2; exit 1\n", "stdio.h"),
        (HONEST.replace("gcc 12.2.0 6", "gcc 12.2.0 5"), "what it compiled"),
        (HONEST.replace("echo gcc", "exit 3; echo gcc"), "status 3"),
        (HONEST.replace("echo gcc 12.2.0 6", "kill -11 \\$\\$"), "what it compiled"),
    ],
)
def test_one_that_does_not_is_refused_with_its_own_words(
    tmp_path: Path, gxx: str, words: str
) -> None:
    root = compiler(tmp_path, gxx)
    with pytest.raises(ToolMissingError) as caught:
        prove_host_compiler(root)
    assert words in (caught.value.why or "")
    assert "--compiler" in (caught.value.hint or "")


def test_an_empty_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ToolMissingError) as caught:
        prove_host_compiler(tmp_path)
    assert "no g++" in (caught.value.why or "")
