"""Requests, tools and machines for the resolver, without any file or process."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from llamawright.model.inventory import Available, Fault, Found, Inventory, Rejected, Role
from llamawright.model.plan import PlannedPatch
from llamawright.model.platform import Backend, Platform, System
from llamawright.model.recipe import (
    BackendRule,
    Capability,
    GitOrigin,
    IndexOrigin,
    ModelPin,
    Option,
    Recipe,
    SourcePin,
    Threshold,
    Verification,
)
from llamawright.model.request import Request
from llamawright.model.toolchain import Fact, Toolchains

LINUX = Platform(System.LINUX, "x86_64")
COMMIT = "0c1e57098" + "0" * 31
INDEX = IndexOrigin(project="p", version="1", filename="p.tar.gz", size=1, sha256="1" * 64)
NO_TOOLCHAINS = Toolchains(
    minimums=(), known_bad=(), hints=(), sets=(), debian_mirrors=(), digest="0" * 64
)
PIN = SourcePin(
    upstream="ggml-org/llama.cpp",
    commit=COMMIT,
    build_number=11312,
    version="0.5.0",
    include=("CMakeLists.txt", "src"),
    tree="e" * 64,
    origins=(INDEX, GitOrigin(url="https://example.org/x", commit=COMMIT)),
    timestamp=1790820708,
)
MODEL = ModelPin(
    name="m", origin=INDEX, member="m.gguf", size=1, sha256="2" * 64, layers=1, license="MIT"
)
LIMIT = Threshold(value=0.1, reason="test")
VERIFICATION = Verification(
    model=MODEL, prompts=(), text="", context=1, chunks=1, max_mean_kld=LIMIT, min_top1=LIMIT,
    probe_s=1, load_s=1, first_token_s=1, total_s=1, output_cap=1,
)  # fmt: skip
VULKAN = BackendRule(
    backend=Backend.VULKAN,
    options=(Option(name="GGML_VULKAN", value="ON"),),
    targets=("ggml-vulkan",),
    modules=("ggml-vulkan",),
    min_headers=272,
    min_headers_patched=239,
    capabilities=(
        Capability(name="cooperative_matrix", define="C", feature_test="", cost="slow prompts"),
        Capability(name="bfloat16", define="B", feature_test="", cost="slow BF16"),
    ),
)
CPU = BackendRule(backend=Backend.CPU, targets=("ggml-cpu-*",), modules=("ggml-cpu-*",))
RECIPE = Recipe(
    name="llama.cpp",
    path="recipes/llama.cpp.toml",
    digest="3" * 64,
    source=PIN,
    options=(
        Option(name="GGML_BACKEND_DL", value="ON"),
        Option(name="GGML_NATIVE", value="OFF"),
        Option(name="LLAMA_BUILD_TESTS", value="OFF"),
    ),
    test_options=(Option(name="LLAMA_BUILD_TESTS", value="ON"),),
    programs=("llama-cli",),
    test_programs=("test-backend-ops",),
    libraries=("ggml",),
    licenses=("LICENSE",),
    allowed_imports=("libc.so.6",),
    backends=(CPU, VULKAN),
    verification=VERIFICATION,
    patches="llama.cpp",
)
OLD_HEADERS = PlannedPatch(
    name="0001-old-headers", sha256="4" * 64, type="portability", reason="stock Debian 12",
    needs=("vulkan-headers < 272",),
)  # fmt: skip
ALWAYS = PlannedPatch(name="0002-always", sha256="5" * 64, type="fix", reason="a bug")
PATCHES = (OLD_HEADERS, ALWAYS)


def request(
    *, backend: Backend = Backend.VULKAN, recipe: Recipe = RECIPE, platform: Platform = LINUX
) -> Request:
    """Return a request with every default; change the rest with ``replace``."""
    return Request(recipe=recipe, backend=backend, platform=platform)


def found(role: Role, name: str, version: str = "1.0", path: str = "", **facts: str) -> Found:
    return Found(
        role=role,
        name=name,
        path=Path(path or f"/usr/bin/{name}"),
        version=version,
        where="PATH",
        sha256=(name[0] * 64),
        facts=tuple(facts.items()),
    )


GCC = found(Role.CXX, "gcc", "12.2.0", "/usr/bin/g++", c_compiler="/usr/bin/gcc", libc="glibc 2.36")
CLANG = found(Role.CXX, "clang", "16.0.6", "/usr/bin/clang++", c_compiler="/usr/bin/clang")
CMAKE = found(Role.CMAKE, "cmake", "4.1.0")
NINJA = found(Role.NINJA, "ninja", "1.13.0")
CCACHE = found(Role.CACHE, "ccache", "4.12")
SCCACHE = found(Role.CACHE, "sccache", "0.10")
GIT = found(Role.GIT, "git", "2.39.5")
BASE = (GCC, CMAKE, NINJA, CCACHE, GIT)


def vulkan_side(
    where: str, root: str, headers: int, capabilities: str, *, spirv: bool = True
) -> tuple[Found, Found]:
    """Return a Vulkan root and its glslc as detection would have found them."""
    glslc = replace(found(Role.GLSLC, "glslc", "2025.2", f"{root}/bin/glslc"), where=where)
    facts = {
        Fact.HEADER_VERSION: str(headers),
        Fact.INCLUDE_DIR: f"{root}/include",
        Fact.LIBRARY: f"{root}/lib/libvulkan.so",
        Fact.GLSLC: f"{root}/bin/glslc",
        Fact.GLSLC_VERSION: "2025.2",
        Fact.CAPABILITIES: capabilities,
    }
    if spirv:
        facts[Fact.SPIRV_HEADERS_DIR] = f"{root}/share/cmake/SPIRV-Headers"
        facts[Fact.SPIRV_INCLUDE_DIR] = f"{root}/include"
    side = found(Role.VULKAN, "Vulkan", f"1.4.{headers}", root)
    return replace(side, where=where, facts=tuple(facts.items())), glslc


SDK = vulkan_side("VULKAN_SDK", "/opt/sdk", 321, "cooperative_matrix bfloat16")
WEAK_SDK = vulkan_side("VULKAN_SDK", "/opt/sdk", 321, "")
SYSTEM = vulkan_side("system", "/usr", 239, "")
NEW_SYSTEM = vulkan_side("system", "/usr", 309, "cooperative_matrix")
PROVIDED = Available(
    role=Role.VULKAN,
    name="vulkan-debian13",
    version="1.4.309",
    digest="d" * 64,
    size=8 << 20,
    root=Path("/store/tools/dd"),
    present=True,
    facts=(
        (Fact.HEADER_VERSION, "309"),
        (Fact.GLSLC_VERSION, "2025.2"),
        (Fact.INCLUDE_DIR, "usr/include"),
        (Fact.LIBRARY, "usr/lib/libvulkan.so"),
        (Fact.GLSLC, "bin/glslc"),
        (Fact.SPIRV_HEADERS_DIR, "usr/share/cmake/SPIRV-Headers"),
        (Fact.CAPABILITIES, "cooperative_matrix"),
    ),
)
SPIRV_SET = Available(
    role=Role.SPIRV,
    name="spirv-headers-wheel",
    version="1.4.335",
    digest="a" * 64,
    size=547_562,
    root=Path("/store/tools/aa"),
    present=True,
    facts=(
        (Fact.INCLUDE_DIR, "include"),
        (Fact.SPIRV_HEADERS_DIR, "share/cmake/SPIRV-Headers"),
    ),
)


def refused(
    role: Role, reason: str, fault: Fault = Fault.FAILED, where: str = "PATH", path: str = "/x"
) -> Rejected:
    return Rejected(
        role=role,
        name=str(role),
        path=Path(path),
        where=where,
        reason=reason,
        cure=f"cure of {reason}",
        fault=fault,
    )


def inventory(
    *tools: Found, sets: tuple[Available, ...] = (), rejected: tuple[Rejected, ...] = ()
) -> Inventory:
    """Return a machine of 8 cores and 32 GiB."""
    return Inventory(
        platform=LINUX,
        cores=8,
        memory=32 << 30,
        memory_free=30 << 30,
        found=tools,
        rejected=rejected,
        available=sets,
        systems=("debian",),
        libc="glibc 2.36",
        cpu="Fast CPU 123",
    )
