"""What a source tree tells about itself: options, minimums, targets, types. Read as text."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

ENTERED = "folders that CMake enters"
VULKAN = "ggml/src/ggml-vulkan"
FEATURE_TESTS = f"{VULKAN}/vulkan-shaders/feature-tests"
_COMMENT = re.compile(r'("(?:\\.|[^"\\])*")|#\[\[.*?\]\]|#[^\n]*', re.DOTALL)
_OPTION = re.compile(
    r'\boption\s*\(\s*(\w+)\s+(?:"(?:\\.|[^"\\])*"|\w+)\s*([^\s)]*)\s*\)', re.IGNORECASE
)
_CACHED = re.compile(
    r'\bset\s*\(\s*(\w+)\s+((?:"(?:\\.|[^"\\])*"|[^")])*?)\s*\bCACHE\s+(\w+)', re.IGNORECASE
)
_MINIMUM = re.compile(r"\bcmake_minimum_required\s*\(\s*VERSION\s+(\d+(?:\.\d+)*)", re.IGNORECASE)
_TARGET = re.compile(r"\badd_(?:library|executable)\s*\(\s*([\w.-]+)", re.IGNORECASE)
_NAMED = re.compile(r"\bset\s*\(\s*TARGET\s+([\w.-]+)\s*\)", re.IGNORECASE)
_BACKEND = re.compile(r"\bggml_add_backend_library\s*\(\s*([\w.-]+)", re.IGNORECASE)
_ENTERED = re.compile(r"\badd_subdirectory\s*\(\s*([\w./-]+)", re.IGNORECASE)
_CUDA = re.compile(r"CUDAToolkit_VERSION\s+(VERSION_\w+)\s+\"?([\d.]+)", re.IGNORECASE)
_STANDARD = re.compile(r"\b(?:cxx_std_|c_std_|CMAKE_CXX_STANDARD\s+|CMAKE_C_STANDARD\s+)\d+")
_PACKAGE = re.compile(r"\bfind_package\s*\(\s*(\w+)([^)]*)\)", re.IGNORECASE)
_HEADERS = re.compile(r"\bVK_HEADER_VERSION\s*([<>=]+)\s*(\d+)")
_EXTENSION = re.compile(r"#extension\s+(\w+)")
_ENUMS = (
    ("ggml types", "ggml/include/ggml.h", "ggml_type"),
    ("ggml operations", "ggml/include/ggml.h", "ggml_op"),
    ("quantisations of a model file", "include/llama.h", "llama_ftype"),
)
_WORD = re.compile(r"\b[A-Z][A-Z0-9]*_\w+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """One tree. ``options`` to their defaults, ``facts`` by topic: name to value.

    ``mentioned`` are all words of the CMake files that could be an option's name.
    """

    options: Mapping[str, str]
    facts: Mapping[str, Mapping[str, str]]
    mentioned: frozenset[str]


def survey(root: Path) -> Survey:
    """Read a tree's CMake files, public headers and Vulkan sources; nothing is run."""
    texts = {p.relative_to(root).as_posix(): bare(_text(p)) for p in _cmake_files(root)}
    facts = {
        "least CMake": _minimums(texts),
        "C and C++ standard": _by_name(texts, _STANDARD),
        "packages looked for": _packages(texts),
        "CUDA toolkit versions asked for": _cuda(texts),
        "targets": targets(texts.values()),
        ENTERED: _entered(root, texts),
        "Vulkan header versions asked for": _headers(root),
        "shader compiler tests": _feature_tests(root),
        **{topic: enum_of(_text(root / file), name) for topic, file, name in _ENUMS},
    }
    words = frozenset(w for text in texts.values() for w in _WORD.findall(text))
    return Survey(options=options_of(texts.values()), facts=facts, mentioned=words)


def bare(text: str) -> str:
    """Return CMake code without its comments."""
    return _COMMENT.sub(lambda m: m[1] or "", text)


def options_of(texts: Iterable[str]) -> dict[str, str]:
    """Return every option and cache entry with its default; several ones joined by ``or``."""
    found: dict[str, list[str]] = defaultdict(list)
    for text in texts:
        for match in _OPTION.finditer(text):
            found[match[1]].append(match[2] or "OFF")
        for match in _CACHED.finditer(text):
            if match[3].upper() != "INTERNAL":
                found[match[1]].append(" ".join(match[2].split()))
    return {name: " or ".join(dict.fromkeys(values)) for name, values in sorted(found.items())}


def targets(texts: Iterable[str]) -> dict[str, str]:
    """Return the names of libraries and programs, as far as they are written out."""
    found: set[str] = set()
    for text in texts:
        for pattern in (_TARGET, _NAMED, _BACKEND):
            found.update(pattern.findall(text))
    return dict.fromkeys(sorted(found - {"TARGET"}), "target")


def enum_of(text: str, name: str) -> dict[str, str]:
    """Return the entries of a C enum with their values, as written; counters are left out."""
    body = re.search(rf"\benum\s+{name}\s*\{{(.*?)\}}", text, re.DOTALL)
    if body is None:
        return {}
    plain = re.sub(r"//[^\n]*|/\*.*?\*/", "", body[1], flags=re.DOTALL)
    entries = (part.strip().partition("=") for part in plain.split(","))
    rows = ((key.strip(), value.strip()) for key, _equals, value in entries)
    return {key: value or "next" for key, value in rows if key and not key.endswith("_COUNT")}


def _minimums(texts: Mapping[str, str]) -> dict[str, str]:
    found = {name: _MINIMUM.findall(text) for name, text in texts.items()}
    return {name: max(rows, key=_numbers) for name, rows in found.items() if rows}


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part)


def _by_name(texts: Mapping[str, str], pattern: re.Pattern[str]) -> dict[str, str]:
    found = {name: sorted(set(pattern.findall(text))) for name, text in texts.items()}
    return {
        name: ", ".join(" ".join(w.split()) for w in rows) for name, rows in found.items() if rows
    }


def _packages(texts: Mapping[str, str]) -> dict[str, str]:
    found: dict[str, set[str]] = defaultdict(set)
    for text in texts.values():
        for name, rest in _PACKAGE.findall(text):
            found[name].add(" ".join(rest.split()))
    return {name: " or ".join(sorted(w for w in words if w)) for name, words in found.items()}


def _entered(root: Path, texts: Mapping[str, str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, text in texts.items():
        for folder in _ENTERED.findall(text):
            path = (PurePosixPath(name).parent / folder).as_posix()
            found[path] = "there" if (root / path).is_dir() else "not in the recipe's include"
    return found


def _cuda(texts: Mapping[str, str]) -> dict[str, str]:
    found = {
        f"{version} ({kind.removeprefix('VERSION_').lower().replace('_', ' ')})": "asked for"
        for name, text in texts.items()
        if "ggml-cuda" in name
        for kind, version in _CUDA.findall(text)
    }
    return dict(sorted(found.items()))


def _headers(root: Path) -> dict[str, str]:
    found: set[str] = set()
    for path in sorted((root / VULKAN).glob("*.[ch]*")):
        found.update(f"{sign} {number}" for sign, number in _HEADERS.findall(_text(path)))
    return dict.fromkeys(sorted(found), "asked for")


def _feature_tests(root: Path) -> dict[str, str]:
    return {
        p.relative_to(root).as_posix(): ", ".join(_EXTENSION.findall(_text(p)))
        for p in sorted((root / FEATURE_TESTS).glob("*.comp"))
    }


def _cmake_files(root: Path) -> Iterator[Path]:
    yield from sorted([*root.rglob("CMakeLists.txt"), *root.rglob("*.cmake")])


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
