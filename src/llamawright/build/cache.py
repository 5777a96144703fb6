"""Compiler caches: where they keep their objects, how they are switched off, what they hit."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from llamawright.model.built import CacheStats
from llamawright.model.inventory import Found
from llamawright.model.recipe import Option
from llamawright.process import ask, base_environment

NONE = CacheStats(name="off", hits=0, misses=0)
SCCACHE = "sccache"
LAUNCHERS = (
    "CMAKE_C_COMPILER_LAUNCHER",
    "CMAKE_CXX_COMPILER_LAUNCHER",
    "CMAKE_CUDA_COMPILER_LAUNCHER",
)
# Objects of several platforms and pins fit; the oldest go first.
MAX_SIZE = "10G"
SLOPPINESS = "pch_defines,time_macros,include_file_mtime,include_file_ctime"
HITS = frozenset({"direct_cache_hit", "preprocessed_cache_hit"})
MISS = "cache_miss"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cache:
    """One compiler cache for one compile; ``counts`` is a file of its own for its counters."""

    tool: Found
    folder: Path
    base: Path
    counts: Path

    def environment(self) -> dict[str, str]:
        """Return the cache's settings: objects in the store, hits from any build folder.

        With the store as base folder all paths in it are hashed relative. Depend mode takes
        the compiler's own list of headers instead of running the preprocessor first. A
        user's own settings file is not read: it could point to another cache.
        """
        if self.tool.name == SCCACHE:
            return {
                "SCCACHE_DIR": str(self.folder),
                "SCCACHE_CACHE_SIZE": MAX_SIZE,
                "SCCACHE_CONF": str(self.folder / "none.conf"),
            }
        return {
            "CCACHE_DIR": str(self.folder),
            "CCACHE_CONFIGPATH": str(self.folder / "ccache.conf"),
            "CCACHE_BASEDIR": str(self.base),
            "CCACHE_NOHASHDIR": "1",
            "CCACHE_DEPEND": "1",
            "CCACHE_MAXSIZE": MAX_SIZE,
            "CCACHE_SLOPPINESS": SLOPPINESS,
            "CCACHE_COMPILERCHECK": "content",
            "CCACHE_STATSLOG": str(self.counts),
            "CCACHE_UMASK": "022",
        }

    def start(self) -> CacheStats:
        """Forget earlier counts and return the counters to compare with later."""
        self.counts.unlink(missing_ok=True)
        return self._counters()

    def since(self, before: CacheStats) -> CacheStats:
        """Return what the compile since ``before`` hit and missed."""
        after = self._counters()
        return CacheStats(
            name=self.tool.name,
            hits=max(0, after.hits - before.hits),
            misses=max(0, after.misses - before.misses),
        )

    def _counters(self) -> CacheStats:
        if self.tool.name == SCCACHE:
            env = base_environment(self.environment())
            argv = (str(self.tool.path), "--show-stats", "--stats-format=json")
            return read_sccache(ask(argv, env=env).stdout)
        text = self.counts.read_text("utf-8") if self.counts.is_file() else ""
        return read_statslog(text)


def cache_for(tool: Found | None, store_root: Path, work: Path) -> Cache | None:
    """Return the compile's cache with its place in the store, or ``None`` when there is none."""
    if tool is None:
        return None
    return Cache(
        tool=tool,
        folder=store_root / "compiler-cache" / tool.name,
        base=store_root,
        counts=work / f"{tool.name}.counts",
    )


def without_launchers(options: tuple[Option, ...]) -> tuple[Option, ...]:
    """Return the options with the compilers called directly, said explicitly."""
    off = [
        Option(name=n, value="", type="FILEPATH", reason="the compiler cache failed")
        for n in LAUNCHERS
        if n in {o.name for o in options}
    ]
    return (*(o for o in options if o.name not in LAUNCHERS), *off)


def read_statslog(text: str) -> CacheStats:
    """Read ccache's log of counters: a comment with the source, then one counter a line."""
    lines = text.splitlines()
    hits = sum(line in HITS for line in lines)
    return CacheStats(name="ccache", hits=hits, misses=lines.count(MISS))


def read_sccache(text: str) -> CacheStats:
    """Read sccache's counters; zeros when it answered with anything but JSON."""
    try:
        stats = json.loads(text).get("stats", {})
    except (ValueError, AttributeError):
        stats = {}

    def total(name: str) -> int:
        return sum(stats.get(name, {}).get("counts", {}).values())

    return CacheStats(name=SCCACHE, hits=total("cache_hits"), misses=total("cache_misses"))
