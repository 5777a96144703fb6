"""Vulkan build sides as one kind of thing, wherever they come from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Protocol

from llamawright.model.inventory import Available, Found, Role
from llamawright.model.plan import KeyPart
from llamawright.model.platform import Platform, System
from llamawright.model.recipe import Option
from llamawright.model.toolchain import Fact
from llamawright.resolve.choice import Field

HEADERS = "vulkan-headers"
SDK = "VULKAN_SDK"
SYSTEM = "system"
PROVIDED = "provided"
# Compilers look there by themselves.
IMPLIED_INCLUDES = ("/usr/include", "/usr/local/include")


class ModuleSide(Protocol):
    """What a backend's module is built with besides the host's tools."""

    @property
    def tools(self) -> tuple[Found, ...]:
        """Return the tools that are there."""

    @property
    def provisions(self) -> tuple[Available, ...]:
        """Return what must be provided first."""

    @property
    def parts(self) -> tuple[KeyPart, ...]:
        """Return what the module depends on, without any path of the store."""

    @property
    def facts(self) -> dict[str, str]:
        """Return what patch conditions may ask about."""

    def options(self, platform: Platform) -> tuple[Option, ...]:
        """Return the CMake entries."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """Headers, loader, glslc and SPIRV-Headers that go together.

    ``headers`` is the last part of the header version. ``capabilities`` is ``None`` when
    nobody knows them before the set is unpacked. ``parts`` identify it in a key, without
    any path that depends on where a user's store lies.
    """

    where: str
    version: str
    headers: int
    include_dir: str
    library: str
    glslc: str
    glslc_version: str
    spirv_headers_dir: str
    spirv_include_dir: str
    capabilities: frozenset[str] | None
    parts: tuple[KeyPart, ...]
    tools: tuple[Found, ...] = ()
    provisions: tuple[Available, ...] = ()
    mixed: str = ""

    @property
    def facts(self) -> dict[str, str]:
        """Return what patch conditions may ask about."""
        return {HEADERS: str(self.headers)}

    def options(self, platform: Platform) -> tuple[Option, ...]:
        """Return the CMake entries; other spellings of these names do nothing."""
        entries = [
            ("Vulkan_INCLUDE_DIR", self.include_dir, "PATH", "the headers of the plan"),
            ("Vulkan_LIBRARY", self.library, "FILEPATH", "the loader of the plan"),
            ("Vulkan_GLSLC_EXECUTABLE", self.glslc, "FILEPATH", "the proved shader compiler"),
            ("SPIRV-Headers_DIR", self.spirv_headers_dir, "PATH", "its CMake files"),
        ]
        if self.spirv_include_dir not in ("", self.include_dir, *IMPLIED_INCLUDES):
            why = "llama.cpp finds SPIRV-Headers and does not put it on the include path"
            name = "CMAKE_CXX_STANDARD_INCLUDE_DIRECTORIES"
            entries.append((name, self.spirv_include_dir, "PATH", why))
        return tuple(
            Option(name=n, value=cmake_path(v, platform), type=t, reason=r)
            for n, v, t, r in entries
        )


def cmake_path(text: str, platform: Platform) -> str:
    """Return a path as CMake wants it: a backslash would be eaten as an escape (case V7)."""
    return text.replace("\\", "/") if platform.system is System.WINDOWS else text


def sides(field: Field) -> Iterator[Side]:
    """Yield every side of the inventory, completed with SPIRV-Headers where that can be."""
    spirv = next(iter(field.inventory.providing(Role.SPIRV)), None)
    glslc = {g.path.as_posix(): g for g in field.usable(Role.GLSLC)}
    found = [
        _from_found(f, glslc[f.fact(Fact.GLSLC)])
        for f in field.usable(Role.VULKAN)
        if f.fact(Fact.GLSLC) in glslc
    ]
    provided = [_from_set(a) for a in field.inventory.providing(Role.VULKAN)]
    for side in (*found, *provided):
        if side.spirv_headers_dir:
            yield side
        else:
            yield _completed(side, spirv) if spirv else side


def _from_found(tool: Found, glslc: Found) -> Side:
    about = glslc.fact("parts")
    where, shader = tool.path.as_posix(), glslc.path.as_posix()
    return Side(
        where=tool.where,
        version=tool.version,
        headers=int(tool.fact(Fact.HEADER_VERSION)),
        include_dir=tool.fact(Fact.INCLUDE_DIR),
        library=tool.fact(Fact.LIBRARY),
        glslc=tool.fact(Fact.GLSLC),
        glslc_version=tool.fact(Fact.GLSLC_VERSION),
        spirv_headers_dir=tool.fact(Fact.SPIRV_HEADERS_DIR),
        spirv_include_dir=tool.fact(Fact.SPIRV_INCLUDE_DIR),
        capabilities=frozenset(tool.fact(Fact.CAPABILITIES).split()),
        parts=(
            KeyPart(name="vulkan", value=f"{tool.version} {where} {tool.sha256}"),
            KeyPart(name="glslc", value=f"{glslc.version} {shader} {glslc.sha256} {about}"),
        ),
        tools=(tool, glslc),
        mixed=tool.fact("mixed"),
    )


def _from_set(item: Available) -> Side:
    def placed(fact: Fact) -> str:
        return (item.root / item.fact(fact)).as_posix() if item.fact(fact) else ""

    known = dict(item.facts)
    able = frozenset(known[Fact.CAPABILITIES].split()) if Fact.CAPABILITIES in known else None
    return Side(
        where=PROVIDED,
        version=item.version,
        headers=int(item.fact(Fact.HEADER_VERSION)),
        include_dir=placed(Fact.INCLUDE_DIR),
        library=placed(Fact.LIBRARY),
        glslc=placed(Fact.GLSLC),
        glslc_version=item.fact(Fact.GLSLC_VERSION),
        spirv_headers_dir=placed(Fact.SPIRV_HEADERS_DIR),
        spirv_include_dir=placed(Fact.INCLUDE_DIR),
        capabilities=able,
        parts=(KeyPart(name="vulkan", value=_identity(item)),),
        provisions=(item,),
    )


def _completed(side: Side, spirv: Available) -> Side:
    config = spirv.root / spirv.fact(Fact.SPIRV_HEADERS_DIR)
    mixed = f"SPIRV-Headers from {spirv.name}"
    return replace(
        side,
        spirv_headers_dir=config.as_posix(),
        spirv_include_dir=(spirv.root / spirv.fact(Fact.INCLUDE_DIR)).as_posix(),
        parts=(*side.parts, KeyPart(name="spirv-headers", value=_identity(spirv))),
        provisions=(*side.provisions, spirv),
        mixed=f"{side.mixed}, {mixed}" if side.mixed else f"{mixed}, the rest from {side.where}",
    )


def _identity(item: Available) -> str:
    return f"{item.name} {item.version} set {item.digest}"
