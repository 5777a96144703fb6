"""The words of ``mutants.toml``: each changes the artifact, the archive, or the machine."""

from __future__ import annotations

import json
import os
import shutil
import socket
import tarfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from llamawright.digest import sha256_file
from zoo.base import Base, copy_tree, pack, put, restamp
from zoo.compiling import Compiler

REAL_MODULE = "zoo-real-module.so"
ICDS = ("/usr/share/vulkan/icd.d", "/etc/vulkan/icd.d")
# ELF's e_machine: AArch64 on x86-64, and the other way round.
MACHINE_AT, AARCH64, X86_64 = 18, 183, 62
SMALL_DISK = "size=24m"
ANOTHER_BOOT_S = 86_400.0


class NotHereError(Exception):
    """This machine has not got what a mutant is made from."""


@dataclass(slots=True)
class Cage:
    """One mutant being made: its copy of the artifact, and the machine it will run on.

    ``prefix`` are words before the command; ``gone`` marks a process that must not survive.
    """

    base: Base
    compiler: Compiler
    store: Path
    folder: Path
    tree: Path
    archive: Path
    environment: dict[str, str] = field(default_factory=dict)
    says: dict[str, object] = field(default_factory=dict)
    members: list[tarfile.TarInfo] = field(default_factory=list)
    flags: list[str] = field(default_factory=list)
    prefix: tuple[str, ...] = ()
    stale: bool = False
    gone: str = ""

    @property
    def bin(self) -> Path:
        """Return the folder of programs and modules."""
        return self.tree / "bin"

    @property
    def module(self) -> Path:
        """Return the module that is replaced."""
        return self.bin / self.base.module


Change = Callable[[Cage, Sequence[str]], None]


def make(cage: Cage, changes: Sequence[Sequence[str]]) -> None:
    """Copy, change, pack, and then do to the archive what is to be done to it."""
    copy_tree(cage.base.tree, cage.tree)
    for word, *rest in changes:
        if word in BEFORE:
            BEFORE[word](cage, rest)
    if not cage.stale:
        restamp(cage.tree, cage.says)
    pack(cage.tree, cage.base.name, cage.archive, cage.members)
    for word, *rest in changes:
        if word in AFTER:
            AFTER[word](cage, rest)
        elif word not in BEFORE:
            raise ValueError(f"there is no change '{word}'")
    shutil.rmtree(cage.tree)


def _proxy(cage: Cage, macros: Sequence[str]) -> None:
    made = cage.folder / "proxy.so"
    cage.compiler.shared("proxy.c", made, macros)
    cage.module.rename(cage.bin / REAL_MODULE)
    put(cage.module, made.read_bytes())


def _module(cage: Cage, words: Sequence[str]) -> None:
    """Put something else in the module's place."""
    match words[0]:
        case "absent":
            cage.module.unlink()
        case "text":
            put(cage.module, b"this is no library\n")
        case "short":
            data = cage.module.read_bytes()
            put(cage.module, data[: len(data) // 2])
        case "other-machine":
            whole = bytearray(cage.module.read_bytes())
            whole[MACHINE_AT] = X86_64 if whole[MACHINE_AT] == AARCH64 else AARCH64
            put(cage.module, bytes(whole))
        case "cpu":
            put(cage.module, (cage.bin / "libggml-cpu-x64.so").read_bytes())
        case "nothing":
            made = cage.folder / "nothing.so"
            cage.compiler.shared("nothing.c", made, ())
            put(cage.module, made.read_bytes())
        case "needy":
            _needy(cage)
        case other:
            raise ValueError(f"there is no module '{other}'")


def _needy(cage: Cage) -> None:
    library, made = cage.folder / "libzoo-absent.so.1", cage.folder / "needy.so"
    cage.compiler.shared("absent.c", library, (), ("-Wl,-soname,libzoo-absent.so.1",))
    cage.compiler.shared("needy.c", made, (), (str(library),))
    put(cage.module, made.read_bytes())


def _program(cage: Cage, words: Sequence[str]) -> None:
    name, *macros = words
    made, place = cage.folder / name, cage.bin / name
    cage.compiler.executable("program.c", made, macros)
    place.rename(cage.bin / f"zoo-real-{name}")
    put(place, made.read_bytes(), executable=True)
    if any(m.startswith("ORPHAN") for m in macros):
        cage.gone = next(m for m in macros if m.startswith("ORPHAN")).split('"')[1]


def _manifest(cage: Cage, words: Sequence[str]) -> None:
    """Let the manifest say something else; JSON where it is JSON."""
    name, value = words
    try:
        cage.says[name] = json.loads(value)
    except ValueError:
        cage.says[name] = value


def _stale(cage: Cage, words: Sequence[str]) -> None:
    """Change one file after the manifest was written."""
    cage.stale = True
    place = cage.bin / words[0]
    match words[1]:
        case "absent":
            place.unlink()
        case "changed":
            put(place, place.read_bytes() + b"x", executable=True)
        case "added":
            put(place, b"a stranger\n")
        case _:
            place.unlink()
            place.symlink_to("/bin/true")


def _member(cage: Cage, words: Sequence[str]) -> None:
    """Add a member that no honest packer writes: a way out of the folder, a link, a device."""
    kind, name = words
    member = tarfile.TarInfo(name.replace("TOP", cage.base.name))
    match kind:
        case "file":
            member.size = 4
        case "link":
            member.type, member.linkname = tarfile.SYMTYPE, "../../../../../../etc"
        case "pipe":
            member.type = tarfile.FIFOTYPE
        case other:
            raise ValueError(f"there is no member '{other}'")
    cage.members.append(member)


def _cut(cage: Cage, words: Sequence[str]) -> None:
    os.truncate(cage.archive, int(cage.archive.stat().st_size * float(words[0])))


def _flip(cage: Cage, words: Sequence[str]) -> None:
    at = int(cage.archive.stat().st_size * float(words[0]))
    with cage.archive.open("r+b") as stream:
        stream.seek(at)
        byte = stream.read(1)[0]
        stream.seek(at)
        stream.write(bytes([byte ^ 0x55]))


def _page(cage: Cage, _words: Sequence[str]) -> None:
    cage.archive.write_bytes(b"<!DOCTYPE html><html><body>404</body></html>\n")


def _sidecar(cage: Cage, _words: Sequence[str]) -> None:
    beside = cage.archive.with_name(cage.archive.name + ".sha256")
    beside.write_text(f"{'0' * 64}  {cage.archive.name}\n")


def _rename(cage: Cage, words: Sequence[str]) -> None:
    other = cage.archive.with_name(f"{words[0]}.tar.zst")
    cage.archive.rename(other)
    cage.archive = other


def _env(cage: Cage, words: Sequence[str]) -> None:
    for word in words:
        name, _, value = word.partition("=")
        cage.environment[name] = value


def _icd(cage: Cage, macros: Sequence[str]) -> None:
    """Let the Vulkan loader find a driver of ours that stands before llvmpipe."""
    made = cage.folder / "libvulkan_zoo.so"
    cage.compiler.shared("icd.c", made, (f'REAL="{_software_driver()}"', *macros))
    cage.environment["VK_DRIVER_FILES"] = str(_driver_file(cage, "zoo", made))


def _twins(cage: Cage, _words: Sequence[str]) -> None:
    """Let the loader find llvmpipe twice, as with two cards of one kind."""
    copy = cage.folder / "libvulkan_lvp.so"
    shutil.copyfile(_software_driver(), copy)
    both = [_driver_file(cage, "one", _software_driver()), _driver_file(cage, "two", copy)]
    cage.environment["VK_DRIVER_FILES"] = os.pathsep.join(map(str, both))


def _driver_file(cage: Cage, name: str, library: Path) -> Path:
    place = cage.folder / f"{name}_icd.json"
    told = {"library_path": str(library), "api_version": "1.3.230"}
    place.write_text(json.dumps({"file_format_version": "1.0.0", "ICD": told}))
    return place


def _software_driver() -> Path:
    for folder in map(Path, ICDS):
        for place in sorted(folder.glob("lvp_icd*.json")):
            return Path(json.loads(place.read_text())["ICD"]["library_path"])
    raise NotHereError("llvmpipe is not installed on this machine")


def _journal(cage: Cage, words: Sequence[str]) -> None:
    """Leave the line of a phase that another boot of this machine never ended."""
    folder = cage.store / "journal"
    folder.mkdir(exist_ok=True)
    process = {
        "pid": 4_000_000,
        "host": socket.gethostname(),
        "started": 1.0,
        "boot": ANOTHER_BOOT_S,
    }
    facts = {
        "artifact": sha256_file(cage.archive),
        "name": cage.base.name,
        "run": "device prompt 1",
    }
    facts |= {"device": "NVIDIA GeForce RTX 4090", "driver": "NVIDIA 550.1"}
    line = {"begin": f"zoo{words[0]}", "phase": f"verify-{words[0]}", "process": process}
    record = json.dumps({**line, "facts": facts, "time": 1.0})
    (folder / f"4000000-{words[0]}.jsonl").write_text(f"{record}\n")


def _small_disk(cage: Cage, _words: Sequence[str]) -> None:
    """Put the store on a file system of a few megabytes, in a name space of its own."""
    if shutil.which("unshare") is None or not Path("/proc/self/ns/user").exists():
        raise NotHereError("there is no unshare here")
    place = cage.folder / "small"
    place.mkdir()
    script = f'mount -t tmpfs -o {SMALL_DISK} none "$0" && exec "$@"'
    cage.prefix = (shutil.which("unshare") or "", "-rm", "sh", "-c", script, str(place))
    cage.flags += ["--store", str(place)]


def _store_model(cage: Cage, _words: Sequence[str]) -> None:
    """Exchange one byte of the pinned model in a store of its own that cannot fetch it again."""
    own = cage.folder / "store"
    for model in sorted(cage.store.glob("models/*/*")):
        copy = own / model.relative_to(cage.store)
        copy.parent.mkdir(parents=True)
        data = bytearray(model.read_bytes())
        data[len(data) // 2] ^= 0x55
        copy.write_bytes(bytes(data))
    if (cage.store / "stamps").is_dir():
        shutil.copytree(cage.store / "stamps", own / "stamps")
    cage.flags += ["--store", str(own), "--offline"]


BEFORE: Mapping[str, Change] = {
    "proxy": _proxy,
    "module": _module,
    "program": _program,
    "manifest": _manifest,
    "stale": _stale,
    "member": _member,
}
AFTER: Mapping[str, Change] = {
    "cut": _cut,
    "flip": _flip,
    "page": _page,
    "sidecar": _sidecar,
    "rename": _rename,
    "env": _env,
    "icd": _icd,
    "twins": _twins,
    "journal": _journal,
    "small-disk": _small_disk,
    "store-model": _store_model,
}
