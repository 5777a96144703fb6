"""A small source, a patch series beside it and a store: what the patching tests stand on."""

from __future__ import annotations

from pathlib import Path

import pytest

from llamawright.digest import list_files, sha256_bytes, tree_digest
from llamawright.errors import PatchError
from llamawright.model.plan import PatchedTree, SourceTree
from llamawright.model.recipe import PathOrigin, SourcePin
from llamawright.patching import Series, load_series, new_patch, patch_tree, planned
from llamawright.patching.series import Patch
from llamawright.store import Store
from reporter_kit import Told

BODY = "".join(f"line {i}\n" for i in range(1, 31))


class World:
    """A small source, a series beside it and a store."""

    def __init__(self, root: Path) -> None:
        self.source = root / "source"
        (self.source / "src").mkdir(parents=True)
        (self.source / "src" / "a.cpp").write_text(BODY)
        (self.source / "src" / "b.cpp").write_text(BODY)
        (self.source / "run.sh").write_text("#!/bin/sh\n")
        (self.source / "run.sh").chmod(0o755)
        self.reopen(root)

    def reopen(self, root: Path) -> None:
        """Stand on what another process made below ``root``."""
        self.source = root / "source"
        self.folder = root / "patches"
        self.store = Store(root / "store")
        self.told = Told()

    @property
    def series(self) -> Series:
        return load_series(self.folder, "up")

    def change(self, name: str, *edits: tuple[str, str, str]) -> Patch:
        """Make a patch of ``(file, old text, new text)`` edits over the present series."""
        edited = self.source.parent / f"edited-{name}"
        for file in list_files(self.source):
            path = edited / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(self.layered().get(file, (self.source / file).read_bytes()))
        for file, old, new in edits:
            path = edited / file
            path.parent.mkdir(parents=True, exist_ok=True)
            text = path.read_text() if path.exists() else ""
            assert old in text
            path.write_text(text.replace(old, new, 1) if old else new)
        return new_patch(
            self.series, name, source=self.source, edited=edited, kind="portability",
            reason=f"because of {name}", upstream="none: a test",
        )  # fmt: skip

    def layered(self) -> dict[str, bytes]:
        if not self.series.patches:
            return {}
        tree = self.apply()
        return {n: (tree.root / n).read_bytes() for n in list_files(tree.root)}

    def tree(self) -> SourceTree:
        return SourceTree(root=self.source, digest=tree_digest(self.source), origin="path")

    def apply(self) -> PatchedTree:
        selected = planned(self.series, pin())
        return patch_tree(self.tree(), self.series, selected, store=self.store, reporter=self.told)

    def rewrite(self, name: str, text: str | bytes) -> None:
        """Replace a patch's file and keep the series' digest in step, as an editor would."""
        data = text.encode() if isinstance(text, str) else text
        path = self.folder / "up" / f"{name}.patch"
        old = sha256_bytes(path.read_bytes())
        path.write_bytes(data)
        table = self.folder / "up" / "series.toml"
        table.write_text(table.read_text().replace(old, sha256_bytes(data)))


def pin(build: int = 100) -> SourcePin:
    return SourcePin(
        upstream="u", commit="0" * 40, build_number=build, version="1", include=("src",),
        tree=None, origins=(PathOrigin(path="/x"),),
    )  # fmt: skip


def refused(world: World) -> PatchError:
    """Apply, expect a refusal, and see that neither source nor store gained a thing."""
    shelf = world.store.root / "patched"
    before, kept = tree_digest(world.source), sorted(shelf.glob("*"))
    with pytest.raises(PatchError) as caught:
        world.apply()
    assert tree_digest(world.source) == before
    assert sorted(shelf.glob("*")) == kept
    return caught.value
