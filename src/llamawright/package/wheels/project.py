"""The private project that scikit-build-core makes a wheel of: files written from data."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from llamawright import codec
from llamawright.model.artifact import Manifest
from llamawright.model.platform import Platform, System
from llamawright.model.wheel import WHEEL_PACKAGE, WHEEL_PROJECT
from llamawright.package.wheels.members import Members
from llamawright.package.wheels.runtime import Runtime

TEMPLATES = Path(__file__).with_name("data")
SUMMARY = "llama.cpp's programs with the {backend} backend, as llamawright built them"
RUN = 0o755
PLAIN = 0o644


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """What the project's files are written from."""

    manifest: Manifest
    version: str
    members: Members
    runtime: Runtime

    def write(self, root: Path, opened: Path) -> None:
        """Write the project into ``root``; the artifact lies unpacked in ``opened``."""
        package = root / "src" / WHEEL_PACKAGE
        package.mkdir(parents=True)
        for path in (*self.members.binaries, *self.members.licenses):
            place = root / path
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(opened / path, place)
            place.chmod(RUN if path in self.members.programs else PLAIN)
        for template, place in {
            "pyproject.toml": root / "pyproject.toml",
            "CMakeLists.txt": root / "CMakeLists.txt",
            "README.md": root / "README.md",
            "init.py": package / "__init__.py",
            "programs.py": package / "_programs.py",
        }.items():
            text = _templates().get_template(f"{template}.j2").render(self._words())
            place.write_text(text, encoding="utf-8", newline="\n")
            place.chmod(PLAIN)
        (package / "py.typed").touch(mode=PLAIN)

    def write_manifest(self, root: Path, manifest: Manifest) -> None:
        """Write the wheel's own manifest, once its libraries are what they are to be."""
        text = codec.encode(manifest)
        (root / "manifest.json").write_text(text, encoding="utf-8", newline="\n")

    def _words(self) -> Mapping[str, object]:
        manifest = self.manifest
        stems = sorted(_stem(path, manifest.platform) for path in self.members.programs)
        return {
            "project": WHEEL_PROJECT,
            "package": WHEEL_PACKAGE,
            "version": self.version,
            "summary": SUMMARY.format(backend=manifest.backend),
            "manifest": manifest,
            "requires": self.runtime.requires,
            "folders": self.runtime.folders if _is_windows(manifest.platform) else (),
            "licenses": self.members.licenses,
            "programs": [(stem, stem.replace("-", "_")) for stem in stems],
            "suffix": ".exe" if _is_windows(manifest.platform) else "",
        }


def _is_windows(platform: Platform) -> bool:
    return platform.system is System.WINDOWS


def _stem(path: str, platform: Platform) -> str:
    name = PurePosixPath(path).name
    return name.removesuffix(".exe") if _is_windows(platform) else name


def _templates() -> Environment:
    made = Environment(
        loader=FileSystemLoader(TEMPLATES),
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        trim_blocks=True,
        autoescape=False,  # noqa: S701 - TOML, CMake and Python, each value quoted as a literal
    )
    # A JSON string of plain ASCII is a TOML, a CMake and a Python string too.
    made.filters["literal"] = json.dumps
    return made
