from __future__ import annotations

from transfer_kit import python


def test_nothing_imports_the_http_library_before_it_is_needed() -> None:
    done = python("""
        import sys
        import llamawright.store, llamawright.transfer, llamawright.fetch
        heavy = {"requests", "urllib3", "pypi_simple", "filelock", "zstandard"}
        print(sorted(heavy & set(sys.modules)))
    """)
    assert done.stdout.strip() == "[]"


def test_a_file_in_the_store_needs_neither_library_nor_lock(tmp_path: object) -> None:
    done = python(
        """
        import hashlib, sys
        from pathlib import Path
        from transfer_kit import Listener
        from llamawright.store import Store
        from llamawright.transfer import DownloadRequest, download
        store = Store(Path(sys.argv[1]))
        digest = hashlib.sha256(b"x").hexdigest()
        store.blob(digest).parent.mkdir(parents=True)
        store.blob(digest).write_bytes(b"x")
        request = DownloadRequest(urls=("http://x.invalid",), size=1, sha256=digest, label="x")
        download(request, store, offline=False, reporter=Listener())
        print(sorted({"requests", "filelock"} & set(sys.modules)), (store.root / "locks").exists())
        """,
        tmp_path,
    )
    assert done.stdout.strip() == "[] False"
