"""A small recipe, plan and built trees for three systems, each test changing one thing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from llamawright.digest import sha256_bytes
from llamawright.model.built import BuiltTree, CacheStats, CapabilityState, Effective
from llamawright.model.inventory import Found, Role
from llamawright.model.plan import KeyPart, PatchedTree, Plan, PlannedPatch
from llamawright.model.platform import Backend, Platform, System
from llamawright.model.recipe import (
    BackendRule,
    IndexOrigin,
    ModelPin,
    Option,
    PathOrigin,
    Recipe,
    SourcePin,
    Threshold,
    Verification,
)
from llamawright.store import Store
from package_binaries import AVX_FUNCTION, elf, macho, pe
from reporter_kit import Told

LINUX = Platform(System.LINUX, "x86_64")
WINDOWS = Platform(System.WINDOWS, "x86_64")
MACOS = Platform(System.MACOS, "arm64")
DATE = 1_700_000_000
VARIANTS = "ggml-cpu-x64;ggml-cpu-haswell"
LICENSE, VENDORED = b"Do as you like.\n", b"Do as others like.\n"

_VERSIONS = {"libc.so.6": ("GLIBC_2.2.5", "GLIBC_2.34"), "libstdc++.so.6": ("GLIBCXX_3.4.30",)}
_BASE = ("libtiny.so.0", "libggml-base.so.0", "libc.so.6")


def recipe(**changes: object) -> Recipe:
    """Return a recipe of one program, two libraries, CPU and Vulkan."""
    pin = SourcePin(
        upstream="someone/tiny", commit="0123456789" * 4, build_number=7, version="1.2",
        include=("src",), tree="t" * 64, origins=(PathOrigin(path="."),), timestamp=DATE,
    )  # fmt: skip
    rules = (
        BackendRule(backend=Backend.CPU, targets=("ggml-cpu-*",), modules=("ggml-cpu-*",)),
        BackendRule(
            backend=Backend.VULKAN, targets=("ggml-vulkan",), modules=("ggml-vulkan",),
            allowed_imports=("libvulkan.so.1", "vulkan-1.dll", "@rpath/libvulkan.1.dylib"),
        ),
    )  # fmt: skip
    base = Recipe(
        name="tiny", path="recipes/tiny.toml", digest="r" * 64, source=pin, options=(),
        programs=("tiny-cli",), test_programs=("tiny-test",), libraries=("tiny", "ggml-base"),
        licenses=("LICENSE", "vendor/other/LICENSE"),
        allowed_imports=(
            "libc.so.6", "libm.so.6", "libstdc++.so.6", "KERNEL32.dll", "api-ms-win-*.dll",
            "/usr/lib/libSystem.B.dylib", "/System/Library/Frameworks/Metal.framework/*",
        ),
        backends=rules, verification=_verification(), patches="tiny",
    )  # fmt: skip
    return replace(base, **changes)  # type: ignore[arg-type]


def _verification() -> Verification:
    model = ModelPin(
        name="m", member="m.gguf", size=1, sha256="m" * 64, layers=1, license="MIT",
        origin=IndexOrigin(project="m", version="1", filename="m.whl", size=1, sha256="m" * 64),
    )  # fmt: skip
    limit = Threshold(value=0.1, reason="")
    return Verification(
        model=model, prompts=(), text="", context=1, chunks=1, max_mean_kld=limit,
        min_top1=limit, probe_s=1, load_s=1, first_token_s=1, total_s=1, output_cap=1,
    )  # fmt: skip


def plan(platform: Platform = LINUX, backend: Backend = Backend.VULKAN, **changes: object) -> Plan:
    """Return a plan for the small recipe."""
    tools = (
        _tool(Role.CXX, "gcc", "/usr/bin/g++"),
        _tool(Role.NINJA, "ninja", "/somewhere/venv/bin/ninja"),
        _tool(Role.CACHE, "ccache", "/usr/bin/ccache"),
    )
    base = Plan(
        name=f"tiny-012345678-{backend.value}-{platform.tag}", recipe=recipe(), backend=backend,
        platform=platform, source="index", tools=tools, provisions=(),
        patches=(_patch("0001-a", "a"), _patch("0002-b", "b")),
        host_options=(
            Option(name="GGML_NATIVE", value="OFF"),
            Option(name="GGML_CPU_ALL_VARIANTS", value="ON"),
        ),
        module_options=(Option(name="GGML_VULKAN", value="ON"),),
        environment=(("SOURCE_DATE_EPOCH", str(DATE)),), with_tests=False, jobs=2, warnings=(),
        host_parts=(), parts=(KeyPart(name="tree", value="t"), KeyPart(name="cxx", value="gcc")),
        host_key="h" * 64, key="k" * 64,
    )  # fmt: skip
    return replace(base, **changes)  # type: ignore[arg-type]


def _tool(role: Role, name: str, path: str) -> Found:
    sha = sha256_bytes(name.encode())
    return Found(role=role, name=name, path=Path(path), version="1.0", where="PATH", sha256=sha)


def _patch(name: str, letter: str) -> PlannedPatch:
    return PlannedPatch(name=name, sha256=letter * 64, type="portability", reason=f"for {letter}")


def source(root: Path) -> PatchedTree:
    """Write a source tree that holds the licence texts."""
    (root / "vendor" / "other").mkdir(parents=True, exist_ok=True)
    (root / "LICENSE").write_bytes(LICENSE)
    (root / "vendor" / "other" / "LICENSE").write_bytes(VENDORED)
    return PatchedTree(
        root=root, digest="p" * 64, source_digest="s" * 64, applied=("0001-a",), retired=("0002-b",)
    )


Content = Mapping[str, bytes | str]


def linux_host() -> dict[str, bytes | str]:
    """Return a host tree: content by path, or a link's target as text."""
    base = elf(soname="libggml-base.so.0", versions=_VERSIONS, payload=b"base")
    lib = elf(
        needed=("libggml-base.so.0", "libc.so.6"), soname="libtiny.so.0", runpath="$ORIGIN",
        versions=_VERSIONS, payload=b"lib",
    )  # fmt: skip
    return {
        "bin/tiny-cli": elf(needed=_BASE, runpath="$ORIGIN", versions=_VERSIONS, payload=b"cli"),
        "bin/tiny-test": elf(needed=_BASE, runpath="$ORIGIN", payload=b"test"),
        "bin/libtiny.so": "libtiny.so.0",
        "bin/libtiny.so.0": "libtiny.so.0.1.2",
        "bin/libtiny.so.0.1.2": lib,
        "bin/libggml-base.so": "libggml-base.so.0",
        "bin/libggml-base.so.0": "libggml-base.so.0.9.4",
        "bin/libggml-base.so.0.9.4": base,
        "bin/libggml-cpu-x64.so": elf(needed=_BASE[1:], runpath="$ORIGIN", payload=b"x64"),
        "bin/libggml-cpu-haswell.so": elf(
            needed=_BASE[1:], runpath="$ORIGIN", code=AVX_FUNCTION * 40
        ),
    }


def linux_module() -> dict[str, bytes | str]:
    """Return the Vulkan module's tree."""
    needed = ("libggml-base.so.0", "libvulkan.so.1", "libc.so.6")
    versions = {"libc.so.6": ("GLIBC_2.38",), "libstdc++.so.6": ("CXXABI_1.3.13",)}
    return {"bin/libggml-vulkan.so": elf(needed=needed, runpath="$ORIGIN", versions=versions)}


def windows_host() -> dict[str, bytes | str]:
    """Return a Windows host tree; Windows has no links and no versions in names."""
    imports = ("tiny.dll", "ggml-base.dll", "KERNEL32.dll")
    return {
        "bin/tiny-cli.exe": pe(imports=imports, payload=b"cli"),
        "bin/tiny-test.exe": pe(imports=imports, payload=b"test"),
        "bin/tiny.dll": pe(imports=("ggml-base.dll",), payload=b"lib"),
        "bin/ggml-base.dll": pe(payload=b"base", linker=(14, 29)),
        "bin/ggml-cpu-x64.dll": pe(imports=("ggml-base.dll",), payload=b"x64"),
        "bin/ggml-cpu-haswell.dll": pe(code=AVX_FUNCTION * 40),
    }


def windows_module() -> dict[str, bytes | str]:
    """Return the Vulkan module's tree on Windows."""
    return {"bin/ggml-vulkan.dll": pe(imports=("ggml-base.dll", "vulkan-1.dll"))}


def macos_host() -> dict[str, bytes | str]:
    """Return a macOS host tree."""
    imports = (
        "@rpath/libtiny.0.dylib",
        "@rpath/libggml-base.0.dylib",
        "/usr/lib/libSystem.B.dylib",
    )
    here = ("@loader_path",)
    return {
        "bin/tiny-cli": macho(imports=imports, rpaths=here, payload=b"cli"),
        "bin/tiny-test": macho(imports=imports, rpaths=here, payload=b"test"),
        "bin/libtiny.0.dylib": "libtiny.0.1.2.dylib",
        "bin/libtiny.dylib": "libtiny.0.dylib",
        "bin/libtiny.0.1.2.dylib": macho(
            imports=imports[1:], identity="@rpath/libtiny.0.dylib", rpaths=here
        ),
        "bin/libggml-base.0.dylib": macho(
            identity="@rpath/libggml-base.0.dylib", payload=b"base", min_os=(14, 0)
        ),
        "bin/libggml-cpu-apple_m1.so": macho(imports=imports[1:], rpaths=here, payload=b"m1"),
    }


def tree(root: Path, content: Content, *, key: str, **changes: object) -> BuiltTree:
    """Write a built tree and return it."""
    for name, data in content.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(data, str):
            path.symlink_to(data)
        else:
            path.write_bytes(data)
            path.chmod(0o755 if name.startswith("bin/") else 0o644)
    base = BuiltTree(
        root=root, key=key * 64, abi="a" * 64, files=tuple(sorted(content)),
        effective=(), capabilities=(), cache=CacheStats(name="", hits=0, misses=0), timings=(),
    )  # fmt: skip
    return replace(base, **changes)  # type: ignore[arg-type]


def capability(name: str, *, present: bool) -> CapabilityState:
    """Return a capability with or without its effect."""
    return CapabilityState(name=name, present=present, cost=f"slow without {name}")


@dataclass
class Bench:
    """A store, a reporter and one set of trees below a folder, ready to pack."""

    root: Path
    plan: Plan = field(default_factory=plan)
    host: dict[str, bytes | str] = field(default_factory=linux_host)
    module: dict[str, bytes | str] | None = field(default_factory=linux_module)
    told: Told = field(default_factory=Told)

    @property
    def store(self) -> Store:
        return Store(self.root / "store")

    def trees(self) -> tuple[PatchedTree, BuiltTree, BuiltTree | None]:
        """Write source, host and module."""
        macos = self.plan.platform.system is System.MACOS
        built = (
            Effective(
                name="GGML_AVAILABLE_BACKENDS", value="ggml-cpu-apple_m1" if macos else VARIANTS
            ),
            Effective(name="GGML_VULKAN", value="OFF"),
        )
        host = tree(self.root / "host", self.host, key="h", effective=built)
        module = None
        if self.module is not None:
            module = tree(
                self.root / "module", self.module, key="m",
                effective=(Effective(name="GGML_VULKAN", value="ON"),),
                capabilities=(capability("coopmat", present=True),),
            )  # fmt: skip
        return source(self.root / "source"), host, module


def names(lines: Sequence[object]) -> list[str]:
    """Return the class words of findings or faults."""
    return [str(getattr(line, "kind", line)) for line in lines]
