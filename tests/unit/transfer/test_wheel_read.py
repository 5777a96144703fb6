"""A wheel read strictly: what RECORD, manifest and metadata say must be what is there."""

from __future__ import annotations

from pathlib import Path
from tempfile import mkdtemp

import pytest

from llamawright.errors import PackageError
from llamawright.model.artifact import Manifest
from llamawright.model.wheel import WHEEL_PACKAGE
from llamawright.transfer.wheel import is_wheel, read_wheel, record_digest
from verify_kit import manifest
from wheel_kit import DIST_INFO, TAG, VERSION, Edits, write_wheel

PROGRAM = f"{WHEEL_PACKAGE}/bin/llama-completion"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "tree"
    (root / "bin").mkdir(parents=True)
    (root / "bin" / "llama-completion").write_bytes(b"program")
    (root / "bin" / "llama-completion").chmod(0o755)
    (root / "bin" / "libggml-vulkan.so").write_bytes(b"module")
    return root


def told(tree: Path) -> Manifest:
    return manifest(tree, programs=("llama-completion",))


def made(tree: Path, edits: Edits | None = None, late: Edits | None = None) -> Path:
    return write_wheel(
        tree.parent, tree, told(tree), scratch=Path(mkdtemp(dir=tree.parent)), edits=edits,
        late_edits=late, requires=("nvidia-cublas~=13.0",),
    )  # fmt: skip


def refusal(path: Path) -> PackageError:
    with pytest.raises(PackageError) as caught:
        read_wheel(path)
    return caught.value


def test_a_whole_wheel_is_read(tree: Path) -> None:
    contents = read_wheel(made(tree))
    assert (contents.version, contents.dist_info) == (VERSION, DIST_INFO)
    assert contents.tags == (f"py3-none-{TAG}",)
    assert contents.requires == ("nvidia-cublas~=13.0",)
    assert contents.scripts == (
        ("llama-completion", f"{WHEEL_PACKAGE}._programs:llama_completion"),
    )
    assert contents.manifest == told(tree)


def test_a_flipped_byte_is_found_by_record(tree: Path) -> None:
    error = refusal(made(tree, late={PROGRAM: b"prOgram"}))
    assert (error.kind, int(error.code)) == ("hash-mismatch", 9)
    assert error.why.startswith(f"{PROGRAM}: expected sha256=")


def test_a_byte_flipped_together_with_record_is_found_by_the_manifest(tree: Path) -> None:
    error = refusal(made(tree, edits={PROGRAM: b"prOgram"}))
    assert error.kind == "hash-mismatch"
    assert error.why == "bin/llama-completion: is not the file of the manifest"


def test_a_file_that_is_missing_is_named(tree: Path) -> None:
    """So that verify can say which module an artifact lost."""
    assert refusal(made(tree, edits={PROGRAM: None})).why == "bin/llama-completion: missing"
    assert refusal(made(tree, late={PROGRAM: None})).why == f"{PROGRAM}: missing"


def test_a_stale_module_beside_the_rest_is_refused(tree: Path) -> None:
    """ggml loads every module it finds."""
    error = refusal(made(tree, edits={f"{WHEEL_PACKAGE}/bin/libggml-cuda.so": b"old"}))
    assert error.why == "bin/libggml-cuda.so: not in the manifest"


def test_a_file_that_record_does_not_list_is_refused(tree: Path) -> None:
    error = refusal(made(tree, late={f"{WHEEL_PACKAGE}/extra.py": b"import os\n"}))
    assert error.why == f"{WHEEL_PACKAGE}/extra.py: not in RECORD"


def test_both_manifests_must_be_the_same(tree: Path) -> None:
    error = refusal(made(tree, edits={f"{WHEEL_PACKAGE}/manifest.json": b"{}"}))
    assert "is not the manifest of the metadata" in error.why


def test_a_lost_run_bit_is_found(tree: Path) -> None:
    path = tree / "bin" / "llama-completion"
    truth = told(tree)
    path.chmod(0o644)
    wheel = write_wheel(tree.parent, tree, told(tree), scratch=tree.parent / "s")
    assert read_wheel(wheel).manifest.files != truth.files


@pytest.mark.parametrize("name", ["METADATA", "WHEEL", "RECORD"])
def test_a_zip_without_its_metadata_is_no_wheel(tree: Path, name: str) -> None:
    edits = {f"{DIST_INFO}/{name}": None} if name != "RECORD" else {}
    late = {f"{DIST_INFO}/RECORD": None} if name == "RECORD" else {}
    error = refusal(made(tree, edits=edits, late=late))
    assert error.kind == "no-wheel"
    assert f"it has no {DIST_INFO}/{name}" in error.why


def test_somebody_elses_wheel_is_told_as_one(tree: Path) -> None:
    error = refusal(made(tree, edits={f"{DIST_INFO}/llamawright/manifest.json": None}))
    assert error.kind == "no-manifest"
    assert "no wheel of llamawright" in error.what


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    assert refusal(tmp_path / "x.whl").kind == "absent"
    assert refusal(tmp_path).why == "it is not a file"


@pytest.mark.parametrize(("share", "kind"), [(0.5, "truncated"), (0.999, "truncated")])
def test_a_cut_wheel_is_told_as_one(tree: Path, share: float, kind: str) -> None:
    path = made(tree)
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * share)])
    assert refusal(path).kind == kind


def test_a_web_page_is_told_as_one(tmp_path: Path) -> None:
    path = tmp_path / "x.whl"
    path.write_text("<!DOCTYPE html><html>not found</html>")
    assert refusal(path).why == "it is a web page"


def test_names_decide_what_is_a_wheel() -> None:
    assert is_wheel(Path("a/b.whl"))
    assert not is_wheel(Path("b.whl.sha256"))
    assert not is_wheel(Path("b.tar.zst"))


def test_digests_are_written_as_record_does() -> None:
    assert record_digest(bytes(32)) == "sha256=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
