"""What a finished build was made of: a change to any of it means that there is work to do."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from llamawright.paths import data_root
from llamawright.pipeline import SETTINGS_FILE, Outcome, Pipeline

OWN_FOLDERS = ("recipes", "toolchains", "patches", "src/llamawright")


def touched(pipeline: Pipeline, outcome: Outcome) -> Iterator[Path]:
    """Yield every file that the outcome depends on or is made of."""
    for folder in OWN_FOLDERS:
        root = data_root() / folder
        yield root
        yield from (p for p in root.rglob("*") if "__pycache__" not in p.parts)
    yield Path.cwd() / SETTINGS_FILE
    yield Path(pipeline.recipe.path)
    yield from outcome.tools
    yield from outcome.reports
    yield pipeline.result_file
    if pipeline.wanted.model is not None:
        yield pipeline.wanted.model
    if outcome.artifact is not None:
        yield outcome.artifact.path
        if outcome.artifact.companion is not None:
            yield outcome.artifact.companion
    yield from _own_source(pipeline)


def _own_source(pipeline: Pipeline) -> Iterator[Path]:
    """Yield what is built of the user's own source folder: only that can change."""
    kind, _, folder = pipeline.wish.source.partition(":")
    for name in pipeline.recipe.source.include if kind == "path" else ():
        yield Path(folder) / name
        yield from (Path(folder) / name).rglob("*")
