"""Artifacts in dist/: by one rename, only when something changed, and readable again."""

from __future__ import annotations

import errno
import shutil
from pathlib import Path

import pytest

from llamawright.digest import sha256_file
from llamawright.errors import DiskError, PackageError
from llamawright.model.artifact import Artifact
from llamawright.package import pack, place, read_artifact
from package_kit import Bench, plan


@pytest.fixture
def artifact(tmp_path: Path) -> Artifact:
    bench = Bench(tmp_path / "made", plan(with_tests=True))
    patched, host, module = bench.trees()
    return pack(bench.plan, patched, host, module, store=bench.store, reporter=bench.told)


def state(folder: Path) -> dict[str, tuple[int, int]]:
    return {p.name: (p.stat().st_mtime_ns, p.stat().st_ino) for p in folder.iterdir()}


class TestPlace:
    def test_archive_sum_and_tests(self, artifact: Artifact, tmp_path: Path) -> None:
        final = place(artifact, tmp_path / "deep" / "dist").path
        name = artifact.path.name
        tests = f"{artifact.manifest.name}-tests.tar.zst"
        assert sorted(p.name for p in final.parent.iterdir()) == sorted(
            [name, f"{name}.sha256", tests, f"{tests}.sha256"]
        )
        assert sha256_file(final) == artifact.sha256

    def test_it_is_the_same_artifact_elsewhere(self, artifact: Artifact, tmp_path: Path) -> None:
        placed = place(artifact, tmp_path / "dist")
        assert placed.path == tmp_path / "dist" / artifact.path.name
        assert placed.tests is not None
        assert placed.tests.path.parent == tmp_path / "dist"
        assert (placed.sha256, placed.manifest) == (artifact.sha256, artifact.manifest)

    def test_the_sum_is_what_sha256sum_reads(self, artifact: Artifact, tmp_path: Path) -> None:
        final = place(artifact, tmp_path / "dist").path
        line = final.with_name(f"{final.name}.sha256").read_bytes()
        assert line == f"{artifact.sha256}  {final.name}\n".encode()

    def test_it_shares_nothing_with_the_store(self, artifact: Artifact, tmp_path: Path) -> None:
        """Whoever edits a file in dist/ must not edit the store."""
        final = place(artifact, tmp_path / "dist").path
        final.write_bytes(b"scribbled")
        assert sha256_file(artifact.path) == artifact.sha256

    def test_the_same_bytes_are_not_written_again(self, artifact: Artifact, tmp_path: Path) -> None:
        dist = tmp_path / "dist"
        place(artifact, dist)
        before = state(dist)
        place(artifact, dist)
        assert state(dist) == before

    @pytest.mark.parametrize("harm", ["changed", "short", "gone", "link"])
    def test_what_is_not_the_artifact_is_replaced(
        self, artifact: Artifact, tmp_path: Path, harm: str
    ) -> None:
        final = place(artifact, tmp_path / "dist").path
        content = final.read_bytes()
        final.unlink()
        match harm:
            case "changed":
                final.write_bytes(bytes(len(content)))
            case "short":
                final.write_bytes(content[:100])
            case "link":
                final.symlink_to(artifact.path)
        assert place(artifact, tmp_path / "dist").path == final
        assert final.read_bytes() == content
        assert not final.is_symlink()

    def test_a_wrong_sum_is_replaced(self, artifact: Artifact, tmp_path: Path) -> None:
        final = place(artifact, tmp_path / "dist").path
        sidecar = final.with_name(f"{final.name}.sha256")
        sidecar.write_text("0" * 64)
        place(artifact, tmp_path / "dist")
        assert sidecar.read_text().startswith(artifact.sha256)

    def test_other_artifacts_stay(self, artifact: Artifact, tmp_path: Path) -> None:
        other = tmp_path / "dist" / "other.tar.zst"
        other.parent.mkdir()
        other.write_bytes(b"other")
        place(artifact, tmp_path / "dist")
        assert other.read_bytes() == b"other"

    def test_a_damaged_store_is_told_and_nothing_appears(
        self, artifact: Artifact, tmp_path: Path
    ) -> None:
        content = bytearray(artifact.path.read_bytes())
        content[len(content) // 2] ^= 1
        artifact.path.write_bytes(content)
        with pytest.raises(PackageError) as caught:
            place(artifact, tmp_path / "dist")
        assert caught.value.kind == "store-damaged"
        assert str(artifact.path) in caught.value.hint
        left = [p.name for p in (tmp_path / "dist").iterdir()]
        assert not [n for n in left if "tests" not in n]

    def test_a_full_disk_leaves_the_old_file(
        self, artifact: Artifact, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        final = tmp_path / "dist" / artifact.path.name
        final.parent.mkdir()
        final.write_bytes(b"old")

        def full(_source: Path, dest: Path) -> None:
            dest.write_bytes(b"half")
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr(shutil, "copyfile", full)
        with pytest.raises(DiskError) as caught:
            place(artifact, final.parent)
        assert caught.value.kind == "disk-full"
        assert final.read_bytes() == b"old"
        assert not [p for p in final.parent.iterdir() if p.name.startswith(".")]


class TestReadArtifact:
    def test_it_is_what_was_packed(self, artifact: Artifact, tmp_path: Path) -> None:
        final = place(artifact, tmp_path / "dist").path
        seen = read_artifact(final)
        assert seen.path == final
        assert (seen.size, seen.sha256) == (artifact.size, artifact.sha256)
        assert seen.manifest == artifact.manifest

    def test_nothing_is_left_beside_it(self, artifact: Artifact, tmp_path: Path) -> None:
        final = place(artifact, tmp_path / "dist").path
        before = state(final.parent)
        read_artifact(final)
        final.write_bytes(final.read_bytes()[:-1])
        with pytest.raises(PackageError):
            read_artifact(final)
        assert state(final.parent).keys() == before.keys()

    def test_a_folder_that_may_not_be_written(
        self, artifact: Artifact, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        final = place(artifact, tmp_path / "dist").path
        monkeypatch.setattr("os.access", lambda path, mode: Path(path) != final.parent)
        assert read_artifact(final).sha256 == artifact.sha256

    def test_no_such_file(self, tmp_path: Path) -> None:
        with pytest.raises(PackageError) as caught:
            read_artifact(tmp_path / "nothing.tar.zst")
        assert caught.value.kind == "absent"
