"""Fake machines as data: ``fakes/*.toml`` describes trees and programs, this writes them.

A machine is a table of a file: ``[debian12]`` with ``base`` (another table of the same file,
whose entries come first), ``env``, ``machine``, and lists of ``file``, ``link``, ``binary``,
``tool``, ``compiler`` and ``glslc``. Paths are relative to the machine's root, ``{root}`` in a
text is that root. Programs are shell scripts that need nothing on PATH.
"""

from __future__ import annotations

import shlex
import struct
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from llamawright.detect.surroundings import Surroundings
from llamawright.model.platform import Platform, System
from llamawright.model.toolchain import Toolchains

Table: TypeAlias = "Mapping[str, object]"
FAKES = Path(__file__).resolve().parent / "fakes"
ELF = {"i386": 3, "arm": 40, "x86_64": 62, "aarch64": 183}
PE = {"i386": 0x14C, "x86_64": 0x8664, "arm64": 0xAA64}
NO_TOOLCHAINS = Toolchains(
    minimums=(), known_bad=(), hints=(), sets=(), debian_mirrors=(), digest="0" * 64
)
# The words a script looks for start and end with a blank, as the shell joins arguments.
HEAD = """#!/bin/sh
all=" $* "; out=; last=; previous=
for last; do [ "$previous" = -o ] && out=$last; previous=$last; done
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """A fake machine that stands below ``root``."""

    root: Path
    env: Mapping[str, str]
    about: Table

    def path(self, name: str) -> Path:
        return self.root / name

    def surroundings(self, toolchains: Toolchains = NO_TOOLCHAINS, **env: str) -> Surroundings:
        about = self.about
        system = System(str(about.get("system", "linux")))
        return Surroundings(
            platform=Platform(system, str(about.get("machine", "x86_64"))),
            toolchains=toolchains,
            env={**self.env, **env},
            systems=words(about.get("systems", ["debian"])),
            libc=str(about.get("libc", "glibc 2.36")),
            prefixes=tuple(self.root / p for p in words(about.get("prefixes", ["usr"]))),
            tool_folders=tuple(self.root / p for p in words(about.get("tools", ["venv/bin"]))),
            short_s=float(str(about.get("limit_s", 10))),
            long_s=float(str(about.get("limit_s", 10))),
        )


def stand_up(file: str, name: str, root: Path) -> Machine:
    """Write the machine ``name`` of ``fakes/<file>.toml`` below ``root``."""
    with (FAKES / f"{file}.toml").open("rb") as stream:
        machines = tomllib.load(stream)
    about: dict[str, object] = {}
    env: dict[str, str] = {}
    for table in _with_bases(machines, name):
        about |= as_table(table.get("machine", {}))
        env |= {k: _placed(str(v), root) for k, v in as_table(table.get("env", {})).items()}
        _write(table, root)
    return Machine(root=root, env=env, about=about)


def names(file: str) -> tuple[str, ...]:
    """Return the machines of a file."""
    with (FAKES / f"{file}.toml").open("rb") as stream:
        return tuple(tomllib.load(stream))


def write_program(path: Path, text: str) -> Path:
    """Write an executable shell script."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)
    return path


def binary_head(machine: str, form: str = "elf", bits: int = 64) -> bytes:
    """Return the first bytes of a program or library for ``machine``."""
    match form:
        case "elf":
            ident = b"\x7fELF" + bytes([bits // 32, 1, 1]) + bytes(9)
            return ident + struct.pack("<HHI", 3, ELF[machine], 1) + bytes(40)
        case "pe":
            return (
                b"MZ"
                + bytes(58)
                + struct.pack("<I", 64)
                + b"PE\0\0"
                + struct.pack("<H", PE[machine])
            )
        case _:
            number = {"x86_64": 0x01000007, "arm64": 0x0100000C}[machine]
            return struct.pack("<II", 0xFEEDFACF, number) + bytes(24)


def words(value: object) -> tuple[str, ...]:
    assert isinstance(value, list | tuple)
    return tuple(str(v) for v in value)


def as_table(value: object) -> Table:
    assert isinstance(value, dict)
    return value


def _with_bases(machines: Table, name: str) -> Iterator[Table]:
    table = as_table(machines[name])
    if "base" in table:
        yield from _with_bases(machines, str(table["base"]))
    yield table


def _rows(table: Table, key: str) -> Iterator[Table]:
    rows = table.get(key, [])
    assert isinstance(rows, list)
    yield from (as_table(r) for r in rows)


def _write(table: Table, root: Path) -> None:
    for name in words(table.get("remove", [])):
        (root / name).unlink()
    for name in words(table.get("folder", [])):
        (root / name).mkdir(parents=True, exist_ok=True)
    for row in _rows(table, "file"):
        path = root / str(row["path"])
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(_placed(str(row.get("text", "")), root), encoding="utf-8")
    for row in _rows(table, "binary"):
        path = root / str(row["path"])
        path.parent.mkdir(parents=True, exist_ok=True)
        bits = int(str(row.get("bits", 64)))
        path.write_bytes(binary_head(str(row["machine"]), str(row.get("form", "elf")), bits))
        path.chmod(0o755)
    for row in _rows(table, "link"):
        path = root / str(row["path"])
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        path.symlink_to(_placed(str(row["target"]), root))
    for row in _rows(table, "tool"):
        _mode(write_program(root / str(row["path"]), _tool(row, root)), row)
    for row in _rows(table, "compiler"):
        _compiler(row, root)
    for row in _rows(table, "glslc"):
        _mode(write_program(root / str(row["path"]), _glslc(row)), row)


def _placed(text: str, root: Path) -> str:
    return text.replace("{root}", str(root))


def _mode(path: Path, row: Table) -> None:
    if row.get("runs") is False:
        path.chmod(0o644)


def _tool(row: Table, root: Path) -> str:
    """Return a program that says one thing whatever it is asked, or hangs, or crashes."""
    interpreter = str(row.get("interpreter", "/bin/sh"))
    lines = [f"#!{interpreter}"]
    if row.get("hangs"):
        lines.append("exec /bin/sleep 600")
    if row.get("signal"):
        lines.append(f"kill -{row['signal']} $$")
    if row.get("endless"):
        lines.append("while :; do printf '%01000d' 0; done")
    if "says" in row:
        lines.append(f"printf '%s\\n' {shlex.quote(_placed(str(row['says']), root))}")
    if "complains" in row:
        lines.append(f"printf '%s\\n' {shlex.quote(str(row['complains']))} >&2")
    return "\n".join([*lines, f"exit {row.get('exit', 0)}", ""])


def _compiler(row: Table, root: Path) -> None:
    """Write a C++ compiler, and the C compiler beside it unless ``alone`` is set.

    What it "compiles" is a script that prints the facts of the row.
    """
    path = root / str(row["path"])
    write_program(path, _compiler_text(row, root))
    if not row.get("alone"):
        name = path.name.replace("clang++", "clang").replace("g++", "gcc")
        write_program(path.with_name(name), _compiler_text(row, root))


def _compiler_text(row: Table, root: Path) -> str:
    facts = {
        "machine": row.get("machine", "x86_64"),
        "pointer": row.get("pointer", 8),
        "libc": row.get("libc", "glibc 2.36"),
        "libstdcxx": row.get("libstdcxx", "libstdc++ 20220819"),
        "name": row.get("name", "gcc"),
        "version": row.get("version", "12.2.0"),
    }
    printed = "".join(f"{k}={v}\n" for k, v in facts.items())
    program = f"#!/bin/sh\nprintf '%s' {shlex.quote(printed)}\nexit {row.get('program_exit', 0)}\n"
    linker = _placed(str(row.get("linker", "ld")), root)
    about = f"{facts['name']} ({row.get('revision', 'fake')}) {facts['version']}"
    answers = [
        (["--version"], _say(about)),
        (["-dumpmachine"], _say(f"{facts['machine']}-linux-gnu")),
        (["-print-prog-name=ld"], _say(linker)),
        (["-print-prog-name=as"], _say("as")),
        (["-print-prog-name=cc1plus"], _say("cc1plus")),
    ]
    for refusal in _rows(row, "refuses"):
        text = f"printf '%s\\n' {shlex.quote(str(refusal['error']))} >&2; exit 1"
        answers.append((list(words(refusal["when"])), text))
    mode = "644" if row.get("noexec") else "755"
    made = f'printf \'%s\' {shlex.quote(program)} > "$out"; /bin/chmod {mode} "$out"; exit 0'
    return HEAD + _cases([*answers, (["-o"], made)])


def _glslc(row: Table) -> str:
    """Write a shader compiler that knows good from bad and lists what it does not support."""
    version = str(row.get("version", "2025.2"))
    refuses = words(row.get("unsupported", []))
    errors = "".join(
        f'case "$text" in *{e}*) echo "all.comp:2: error: \'#extension\' : extension not '
        f'supported: {e}" >&2; n=$((n+1));; esac\n'
        for e in refuses
    )
    spirv = "printf '\\003\\002\\043\\007' > \"$out\"; exit 0"
    wrong = (
        "exit 0" if row.get("believes_all") else 'echo "bad.comp:2: error: undeclared" >&2; exit 1'
    )
    status = f"exit {row['exit']}" if "exit" in row else ":"
    return HEAD + "\n".join(
        [
            _cases([(["--version"], _say(f"shaderc v{version}\nspirv-tools v1\nglslang 15"))]),
            status,
            'text=; while IFS= read -r line; do text="$text $line"; done < "$last"',
            f'case "$text" in *not_declared*) {wrong};; esac',
            f"n=0\n{errors}",
            '[ $n -gt 0 ] && { echo "$n errors generated." >&2; exit 1; }',
            spirv,
            "",
        ]
    )


def _say(text: str) -> str:
    return f"printf '%s\\n' {shlex.quote(text)}; exit 0"


def _cases(answers: Iterable[tuple[list[str], str]]) -> str:
    """Return one shell ``case`` per answer; every word must be among the arguments."""
    lines = []
    for asked, action in answers:
        inner = action
        for word in reversed(asked):
            inner = f'case "$all" in *{shlex.quote(f" {word} ")}*) {inner};; esac'
        lines.append(inner)
    return "\n".join([*lines, ""])
