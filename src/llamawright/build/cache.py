"""Compiler caches: where they keep their objects, and what they hit."""

from __future__ import annotations

import json
from pathlib import Path

from llamawright.model.built import CacheStats
from llamawright.model.inventory import Found
from llamawright.process import ask, base_environment

NONE = CacheStats(name="off", hits=0, misses=0)
# Objects of several platforms and pins fit; the oldest go first.
MAX_SIZE = "10G"
SLOPPINESS = "pch_defines,time_macros,include_file_mtime,include_file_ctime"


def cache_environment(cache: Found | None, store_root: Path) -> dict[str, str]:
    """Return the cache's settings: objects in the store, hits from any checkout.

    With the store as base folder all paths in it are hashed relative, so that another
    build folder or another place of the store finds the same objects.
    """
    if cache is None:
        return {}
    folder = str(store_root / "compiler-cache" / cache.name)
    if cache.name == "sccache":
        return {"SCCACHE_DIR": folder, "SCCACHE_CACHE_SIZE": MAX_SIZE}
    return {
        "CCACHE_DIR": folder,
        "CCACHE_BASEDIR": str(store_root),
        "CCACHE_NOHASHDIR": "1",
        "CCACHE_MAXSIZE": MAX_SIZE,
        "CCACHE_SLOPPINESS": SLOPPINESS,
        "CCACHE_COMPILERCHECK": "content",
        "CCACHE_UMASK": "022",
    }


def cache_stats(cache: Found | None, env: dict[str, str]) -> CacheStats:
    """Return the cache's counters so far; zeros when there is no cache."""
    if cache is None:
        return NONE
    clean = base_environment(env)
    if cache.name == "sccache":
        text = ask((str(cache.path), "--show-stats", "--stats-format=json"), env=clean).stdout
        return _sccache(text)
    return _ccache(ask((str(cache.path), "--print-stats"), env=clean).stdout)


def _ccache(text: str) -> CacheStats:
    rows = (line.split("\t") for line in text.splitlines() if "\t" in line)
    counts = {name: int(value) for name, value in rows if value.isdigit()}
    hits = counts.get("direct_cache_hit", 0) + counts.get("preprocessed_cache_hit", 0)
    return CacheStats(name="ccache", hits=hits, misses=counts.get("cache_miss", 0))


def _sccache(text: str) -> CacheStats:
    stats = json.loads(text).get("stats", {}) if text.lstrip().startswith("{") else {}

    def total(name: str) -> int:
        return sum(stats.get(name, {}).get("counts", {}).values())

    return CacheStats(name="sccache", hits=total("cache_hits"), misses=total("cache_misses"))


def since(before: CacheStats, after: CacheStats) -> CacheStats:
    """Return what one compile hit and missed."""
    hits, misses = after.hits - before.hits, after.misses - before.misses
    return CacheStats(name=after.name, hits=max(0, hits), misses=max(0, misses))
