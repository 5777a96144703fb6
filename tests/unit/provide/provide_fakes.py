"""Small Debian packages, a mirror, a vendor's server and a reporter, all local."""

from __future__ import annotations

import contextlib
import hashlib
import io
import tarfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from llamawright.model.inventory import Role
from llamawright.model.toolchain import ProvidedFile, ProvidedSet, Registry, Toolchains

LIB = "usr/lib/x86_64-linux-gnu"
SPIRV = b"\x03\x02\x23\x07spirv"
LOADER = """#!/bin/sh
# A program loader that is told --library-path and runs its program.
shift 2
exec "$@"
"""
GLSLC = """#!/bin/sh
if [ "$1" = --version ]; then echo "shaderc v2025.2"; exit 0; fi
for last; do :; done
grep -q "no shader" "$3" && { echo "$3:2: error: syntax error" >&2; exit 1; }
printf '\\003\\002\\043\\007' > "$last"
"""
HEADER = "#define VK_HEADER_VERSION 309\n"


class Silent:
    """A reporter that keeps what it was told."""

    def __init__(self) -> None:
        self.infos: list[str] = []
        self.warnings: list[str] = []

    def info(self, text: str) -> None:
        self.infos.append(text)

    def warn(self, text: str) -> None:
        self.warnings.append(text)

    @contextmanager
    def meter(self, label: str, *, total: float | None, unit: str) -> Iterator[Silent]:
        yield self

    @contextmanager
    def step(self, title: str) -> Iterator[None]:
        yield

    def update(self, done: float, *, total: float | None = None, note: str = "") -> None:
        """Do nothing: the meter."""


def deb(files: Mapping[str, str | bytes], *, links: Mapping[str, str] | None = None) -> bytes:
    """Return a Debian package: an ar archive with a control and a data archive."""
    members = {
        "debian-binary": b"2.0\n",
        "control.tar.gz": _tar({"control": b"Package: fake\n"}, {}, "gz"),
        "data.tar.xz": _tar(files, links or {}, "xz"),
    }
    out = io.BytesIO(b"!<arch>\n")
    out.seek(0, io.SEEK_END)
    for name, data in members.items():
        out.write(f"{name:<16}{0:<12}{0:<6}{0:<6}{'100644':<8}{len(data):<10}`\n".encode())
        out.write(data + b"\n" * (len(data) % 2))
    return out.getvalue()


def tar_xz(files: Mapping[str, str | bytes]) -> bytes:
    """Return a .tar.xz archive."""
    return _tar(files, {}, "xz")


def _tar(files: Mapping[str, str | bytes], links: Mapping[str, str], kind: str) -> bytes:
    out = io.BytesIO()
    mode = "w:gz" if kind == "gz" else "w:xz"
    with tarfile.open(fileobj=out, mode=mode) as archive:  # type: ignore[call-overload]
        for name, content in files.items():
            data = content.encode() if isinstance(content, str) else content
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            entry.mode = 0o755 if data.startswith(b"#!") else 0o644
            archive.addfile(entry, io.BytesIO(data))
        for name, target in links.items():
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname = tarfile.SYMTYPE, target
            archive.addfile(entry)
    return out.getvalue()


def build_side() -> dict[str, bytes]:
    """Return packages that make a whole Vulkan build side, by pool path."""
    return {
        "pool/main/v/vulkan-loader/libvulkan-dev_1_amd64.deb": deb(
            {"./usr/include/vulkan/vulkan_core.h": HEADER, "./usr/share/man/man1/x.1": "no"},
            links={f"./{LIB}/libvulkan.so": "libvulkan.so.1"},
        ),
        "pool/main/v/vulkan-loader/libvulkan1_1+b1_amd64.deb": deb(
            {f"./{LIB}/libvulkan.so.1": "l"}
        ),
        "pool/main/s/shaderc/glslc_1_amd64.deb": deb(
            {"./usr/bin/glslc": GLSLC, "./usr/share/doc/glslc/copyright": "Apache-2.0"}
        ),
        "pool/main/s/spirv-headers/spirv-headers_1_all.deb": deb(
            {"./usr/share/cmake/SPIRV-Headers/SPIRV-HeadersConfig.cmake": "# config"}
        ),
        "pool/main/g/glibc/libc6_1_amd64.deb": deb(
            {f"./{LIB}/ld-linux-x86-64.so.2": LOADER},
            links={"./usr/lib64/ld-linux-x86-64.so.2": f"/{LIB}/ld-linux-x86-64.so.2"},
        ),
    }


def driver_packages() -> dict[str, bytes]:
    """Return packages with one software driver among others."""
    icds = {
        f"./usr/share/vulkan/icd.d/{name}_icd.x86_64.json": (
            '{"ICD": {"api_version": "1.1.230", "library_path": '
            f'"/{LIB}/libvulkan_{library}.so"}}, "file_format_version": "1.0.0"}}'
        )
        for name, library in (("lvp", "lvp"), ("intel", "intel"), ("radeon", "radeon"))
    }
    libraries = {f"./{LIB}/libvulkan_{n}.so": n for n in ("lvp", "intel", "radeon")}
    return {
        "pool/main/m/mesa/mesa-vulkan-drivers_1_amd64.deb": deb(
            {**icds, **libraries, "./usr/bin/mesa-overlay-control.py": "#!/bin/sh\n"}
        ),
        "pool/main/n/ncurses/libtinfo6_1_amd64.deb": deb(
            {"./lib/x86_64-linux-gnu/libtinfo.so.6": "t"}
        ),
    }


def debian_set(packages: Mapping[str, bytes], *, name: str, role: Role, layout: str) -> ProvidedSet:
    """Return the pinned set of some packages."""
    files = tuple(debian_file(location, data) for location, data in packages.items())
    facts = {
        "header_version": "309",
        "include_dir": "usr/include",
        "library": f"{LIB}/libvulkan.so",
        "glslc": "bin/glslc",
        "spirv_headers_dir": "usr/share/cmake/SPIRV-Headers",
    }
    return ProvidedSet(
        name=name,
        role=role,
        version="1.4.309",
        layout=layout,
        platforms=("linux_x86_64",),
        files=files,
        facts=tuple(facts.items()) if role is Role.VULKAN else (),
        digest=hashlib.sha256("".join(f.sha256 for f in files).encode()).hexdigest(),
    )


def debian_file(location: str, data: bytes) -> ProvidedFile:
    """Return the pin of a package."""
    package, version, _ = location.rpartition("/")[2].split("_")
    return ProvidedFile(
        registry=Registry.DEBIAN,
        package=package,
        version=version,
        location=location,
        size=len(data),
        sha256=hashlib.sha256(data).hexdigest(),
        sha1=hashlib.sha1(data, usedforsecurity=False).hexdigest(),
    )


def vulkan_set() -> tuple[ProvidedSet, dict[str, bytes]]:
    """Return a whole build side and its packages."""
    packages = build_side()
    provided = debian_set(packages, name="vulkan-fake", role=Role.VULKAN, layout="debian-prefix")
    return provided, packages


def driver_set() -> tuple[ProvidedSet, dict[str, bytes]]:
    """Return a software driver and its packages."""
    packages = driver_packages()
    provided = debian_set(packages, name="driver-fake", role=Role.DRIVER, layout="debian-driver")
    return provided, packages


def write_pool(folder: Path, packages: Mapping[str, bytes]) -> str:
    """Write packages as a mirror has them and return its address."""
    for location, data in packages.items():
        path = folder / location
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return folder.as_uri()


def write_blobs(folder: Path, packages: Mapping[str, bytes]) -> tuple[Path, ...]:
    """Write packages as the store has them: by digest, without an ending."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for data in packages.values():
        path = folder / hashlib.sha256(data).hexdigest()
        path.write_bytes(data)
        paths.append(path)
    return tuple(paths)


def toolchains(*archives: str) -> Toolchains:
    """Return toolchains that name only archives."""
    return Toolchains(
        minimums=(), known_bad=(), hints=(), sets=(), debian_mirrors=archives, digest=""
    )


@dataclass
class Web:
    """A server on this machine: pages by path, and what was asked of it."""

    pages: dict[str, tuple[int, bytes]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    agents: list[str] = field(default_factory=list)
    address: str = ""


@contextlib.contextmanager
def serve(pages: Mapping[str, bytes | tuple[int, bytes]]) -> Iterator[Web]:
    """Serve pages; like LunarG's server, refuse Python's default user agent."""
    web = Web({k: v if isinstance(v, tuple) else (200, v) for k, v in pages.items()})

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            agent = self.headers.get("User-Agent", "")
            web.asked.append(self.path)
            web.agents.append(agent)
            status, body = web.pages.get(self.path, (404, b"absent"))
            if agent.startswith(("Python-urllib", "python-requests")):
                status, body = 403, b"no robots"
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """Stay silent."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    web.address = f"http://127.0.0.1:{server.server_port}"
    try:
        yield web
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
