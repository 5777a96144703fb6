"""CUDA toolkits as one kind of thing, wherever they come from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from packaging.version import Version

from llamawright.model.cuda import GpuCode
from llamawright.model.inventory import Available, Found, Role
from llamawright.model.plan import KeyPart
from llamawright.model.toolchain import Fact
from llamawright.resolve.choice import Field

PROVIDED = "provided"


@dataclass(frozen=True, slots=True, kw_only=True)
class Toolkit:
    """A toolkit that is there or can be provided; every path is absolute.

    ``known`` are the capabilities that its nvcc compiles for, with their suffixes (``61``,
    ``90a``). ``gcc_max`` and ``clang_max`` are major versions, 0 when its headers name none.
    """

    name: str
    where: str
    version: str
    root: str
    nvcc: str
    known: tuple[str, ...]
    gcc_max: int
    clang_max: int
    libraries: tuple[Path, ...]
    cccl: str
    license: Path | None
    part: KeyPart
    found: tuple[Found, ...] = ()
    provisions: tuple[Available, ...] = ()

    @property
    def number(self) -> Version:
        """Return the version of its nvcc, for comparing."""
        return Version(self.version)

    @property
    def release(self) -> str:
        """Return major and minor version, ``12.4``."""
        return f"{self.number.major}.{self.number.minor}"

    @property
    def told(self) -> str:
        """Return the toolkit as an error names it."""
        return f"CUDA {self.version} ({self.root if self.found else 'provided'})"

    @property
    def missing(self) -> int:
        """Return the bytes to download before it can be used."""
        return sum(a.size for a in self.provisions if not a.present)

    @property
    def untried(self) -> str:
        """Return why nobody has proved it yet, empty for one that is known to work."""
        return next((text for a in self.provisions if (text := a.fact(Fact.UNTRIED))), "")

    def compiles(self, code: GpuCode) -> bool:
        """Whether its nvcc makes this code; an ``f`` or ``a`` code must be known by its suffix."""
        number = str(code.number)
        if code.suffix:
            return f"{number}{code.suffix}" in self.known or (
                number in self.known and not any(k[-1:].isalpha() for k in self.known)
            )
        return number in self.known

    def takes(self, compiler: Found) -> bool:
        """Whether its headers accept a host compiler."""
        if compiler.name == "gcc":
            return self.takes_gcc(compiler.version)
        most = self.clang_max if compiler.name == "clang" else 0
        return not most or Version(compiler.version).major <= most

    def takes_gcc(self, version: str) -> bool:
        """Whether its headers accept this gcc."""
        return not self.gcc_max or Version(version).major <= self.gcc_max


def toolkits(field: Field) -> Iterator[Toolkit]:
    """Yield what is installed, then what can be provided, each in the inventory's order."""
    yield from (_found(f) for f in field.usable(Role.CUDA))
    yield from (_set(a) for a in field.inventory.providing(Role.CUDA))


def _found(tool: Found) -> Toolkit:
    facts = dict(tool.facts)
    return Toolkit(
        name=tool.name,
        where=tool.where,
        version=tool.version,
        root=tool.fact(Fact.CUDA_ROOT) or tool.path.as_posix(),
        nvcc=tool.fact(Fact.NVCC),
        known=tuple(tool.fact(Fact.CUDA_CODES).split()),
        gcc_max=int(tool.fact(Fact.GCC_MAX) or 0),
        clang_max=int(tool.fact(Fact.CLANG_MAX) or 0),
        libraries=_libraries(facts, Path()),
        cccl=tool.fact(Fact.CUDA_CCCL),
        license=_license(facts, Path()),
        part=KeyPart(
            name="cuda toolkit", value=f"{tool.version} {tool.path.as_posix()} {tool.sha256}"
        ),
        found=(tool,),
    )


def _set(item: Available) -> Toolkit:
    facts = dict(item.facts)

    def placed(fact: Fact) -> str:
        return (item.root / facts[fact]).as_posix() if facts.get(fact) else ""

    return Toolkit(
        name=item.name,
        where=PROVIDED,
        version=item.version,
        root=placed(Fact.CUDA_ROOT) or item.root.as_posix(),
        nvcc=placed(Fact.NVCC),
        known=tuple(item.fact(Fact.CUDA_CODES).split()),
        gcc_max=int(item.fact(Fact.GCC_MAX) or 0),
        clang_max=int(item.fact(Fact.CLANG_MAX) or 0),
        libraries=_libraries(facts, item.root),
        cccl=placed(Fact.CUDA_CCCL),
        license=_license(facts, item.root),
        part=KeyPart(name="cuda toolkit", value=f"{item.name} {item.version} set {item.digest}"),
        provisions=(item,),
    )


def _libraries(facts: dict[str, str], root: Path) -> tuple[Path, ...]:
    names = (Fact.CUDART, Fact.CUBLAS, Fact.CUBLASLT)
    return tuple(root / facts[n] for n in names if facts.get(n))


def _license(facts: dict[str, str], root: Path) -> Path | None:
    text = facts.get(Fact.LICENSE)
    return root / text if text else None
