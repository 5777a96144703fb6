"""The package index: pages by the PEPs, and the two installers that really read them."""

from __future__ import annotations

import functools
import json
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from packaging.metadata import parse_email
from pypi_simple import ProjectPage

from llamawright.digest import sha256_bytes, sha256_file
from llamawright.model.platform import Backend
from llamawright.model.release import ReleaseTarget, TargetKind
from llamawright.release import PlannedTarget, wheel_files
from llamawright.release.index import (
    API_VERSION,
    JSON_TYPE,
    project_html,
    project_json,
    root_html,
    root_json,
    write_index,
    write_metadata,
)
from llamawright.release.wheels import WheelFacts, read_wheel
from release_kit import plan, planned, release_run, target, write_wheel

BASE = "../../../"
BACKENDS = (Backend.CPU, Backend.VULKAN)


class Links(HTMLParser):
    """The attributes of every link of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[dict[str, str]] = []
        self.meta: dict[str, str] = {}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {k: v or "" for k, v in attrs}
        if tag == "a":
            self.found.append(values)
        if tag == "meta" and "name" in values:
            self.meta[values["name"]] = values["content"]


def links(html: str) -> Links:
    parser = Links()
    parser.feed(html)
    return parser


def wheel(folder: Path, local: str = "cpu", project: str = "tiny_runtime") -> WheelFacts:
    return read_wheel(write_wheel(folder / f"{project}-1.0+{local}-py3-none-any.whl"))


@pytest.fixture
def released(tmp_path: Path) -> Path:
    """A release folder with wheels of two backends and an index."""
    root = tmp_path / "release"
    wheels = {b: [wheel(root, b)] for b in ("cpu", "vulkan")}
    for facts in (w for listed in wheels.values() for w in listed):
        write_metadata(root, facts)
    write_index(root, wheels)
    return root


def test_a_link_has_the_digest_the_python_versions_and_the_metadata(tmp_path: Path) -> None:
    facts = wheel(tmp_path)
    page = links(project_html("tiny-runtime", [facts], BASE))
    link = page.found[0]
    digest = sha256_file(tmp_path / facts.file)
    assert link["href"] == f"../../../tiny_runtime-1.0%2Bcpu-py3-none-any.whl#sha256={digest}"
    assert link["data-requires-python"] == ">=3.9"
    assert link["data-dist-info-metadata"] == link["data-core-metadata"]
    assert link["data-core-metadata"] == f"sha256={sha256_bytes(facts.metadata)}"
    assert page.meta["pypi:repository-version"] == API_VERSION


def test_the_html_escapes_what_a_wheel_says(tmp_path: Path) -> None:
    path = write_wheel(
        tmp_path / "evil-1.0-py3-none-any.whl", requires_python='>=3"><script>alert(1)</script>'
    )
    html = project_html("evil", [read_wheel(path)], BASE)
    assert "<script>" not in html
    assert links(html).found[0]["data-requires-python"] == '>=3"><script>alert(1)</script>'


def test_the_json_is_what_a_library_reads(tmp_path: Path) -> None:
    facts = wheel(tmp_path)
    text = project_json("tiny-runtime", [facts], BASE)
    page = ProjectPage.from_json_data(json.loads(text), base_url="http://host/all/tiny-runtime/")
    package = page.packages[0]
    assert package.filename == facts.file
    assert package.digests == {"sha256": facts.sha256}
    assert package.has_metadata
    assert package.metadata_digests == {"sha256": facts.metadata_sha256}
    assert package.requires_python == ">=3.9"
    assert package.size == facts.size
    assert page.versions == ["1.0+cpu"]
    assert page.repository_version == API_VERSION


def test_html_and_json_say_the_same(tmp_path: Path) -> None:
    wheels = [wheel(tmp_path, local) for local in ("cpu", "vulkan")]
    html = ProjectPage.from_html("p", project_html("p", wheels, BASE), base_url="http://h/i/all/p/")
    data = json.loads(project_json("p", wheels, BASE))
    plain = ProjectPage.from_json_data(data, base_url="http://h/i/all/p/")
    for a, b in zip(html.packages, plain.packages, strict=True):
        assert (a.url.partition("#")[0], a.digests, a.requires_python, a.metadata_digests) == (
            b.url, b.digests, b.requires_python, b.metadata_digests,
        )  # fmt: skip


def test_the_root_lists_each_project_once() -> None:
    assert [a["href"] for a in links(root_html(["b", "a"])).found] == ["a/", "b/"]
    data = json.loads(root_json(["b", "a"]))
    assert data["projects"] == [{"name": "a"}, {"name": "b"}]
    assert data["meta"] == {"api-version": API_VERSION}


def test_one_folder_a_backend_and_a_combined_one(released: Path) -> None:
    assert {p.name for p in (released / "index").iterdir() if p.is_dir()} == {
        "all", "cpu", "vulkan",
    }  # fmt: skip

    def files(channel: str) -> set[str]:
        page = (released / "index" / channel / "tiny-runtime" / "index.html").read_text()
        return set(re.findall(r">([^<]+\.whl)<", page))

    assert files("cpu") == {"tiny_runtime-1.0+cpu-py3-none-any.whl"}
    assert files("vulkan") == {"tiny_runtime-1.0+vulkan-py3-none-any.whl"}
    assert files("all") == files("cpu") | files("vulkan")


def test_every_link_leads_to_a_file_with_that_digest(released: Path) -> None:
    for page in released.rglob("tiny-runtime/index.html"):
        for link in links(page.read_text()).found:
            target, _, digest = link["href"].partition("#sha256=")
            file = (page.parent / target.replace("%2B", "+")).resolve()
            assert sha256_file(file) == digest
            metadata = file.with_name(f"{file.name}.metadata")
            assert f"sha256={sha256_file(metadata)}" == link["data-core-metadata"]
            assert parse_email(metadata.read_bytes())[0]["name"] == "tiny_runtime"


def test_the_content_types_are_told(released: Path) -> None:
    text = (released / "index" / "content-types.txt").read_text()
    assert JSON_TYPE in text
    assert "text/html" in text


def test_wheels_elsewhere_are_linked_there(tmp_path: Path) -> None:
    write_index(tmp_path, {"cpu": [wheel(tmp_path)]}, files_at="https://host/files/")
    page = (tmp_path / "index" / "cpu" / "tiny-runtime" / "index.html").read_text()
    assert 'href="https://host/files/tiny_runtime-1.0%2Bcpu-py3-none-any.whl#sha256=' in page


def test_no_wheel_no_index(tmp_path: Path) -> None:
    write_index(tmp_path, {})
    assert list(tmp_path.iterdir()) == []


def test_the_same_wheels_give_the_same_pages(tmp_path: Path) -> None:
    for side in ("a", "b"):
        wheels = [wheel(tmp_path / side, local) for local in ("vulkan", "cpu")]
        write_index(tmp_path / side, {"x": wheels if side == "a" else wheels[::-1]})
    name = "index/all/tiny-runtime/index.json"
    assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


@contextmanager
def served(root: Path) -> Iterator[tuple[str, list[str]]]:
    """Serve a folder as `python -m http.server` does; gives its address and what was asked."""
    asked: list[str] = []

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_args: object) -> None:
            asked.append(self.path)

    handler = functools.partial(Quiet, directory=str(root))
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", asked
    finally:
        server.shutdown()
        server.server_close()


def clean_environment() -> dict[str, str]:
    """Nothing of this machine's own indexes: only the one that is named counts."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PIP_", "UV_"))}
    return {**kept, "PIP_CONFIG_FILE": os.devnull, "UV_NO_CONFIG": "1", "NO_PROXY": "127.0.0.1"}


def installed(command: list[str], dest: Path) -> str:
    done = subprocess.run(
        command, env=clean_environment(), capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return (dest / "tiny_runtime.py").read_text().strip()


def pip(index: str, dest: Path, requirement: str = "tiny-runtime") -> str:
    command = [sys.executable, "-m", "pip", "install", "--no-cache-dir", "--index-url", index]
    return installed([*command, "--target", str(dest), requirement], dest)


@pytest.mark.parametrize("backend", ["cpu", "vulkan"])
def test_pip_installs_from_a_backends_folder(released: Path, tmp_path: Path, backend: str) -> None:
    with served(released) as (address, asked):
        assert pip(f"{address}/index/{backend}/", tmp_path / "site") == f"VALUE = '1.0+{backend}'"
    assert any(path.endswith(".whl.metadata") for path in asked), asked


def test_pip_takes_the_named_one_from_the_combined_folder(released: Path, tmp_path: Path) -> None:
    with served(released) as (address, _):
        said = pip(f"{address}/index/all/", tmp_path / "site", "tiny-runtime==1.0+cpu")
    assert said == "VALUE = '1.0+cpu'"


def test_pip_refuses_a_wheel_that_was_changed(released: Path, tmp_path: Path) -> None:
    path = released / "tiny_runtime-1.0+cpu-py3-none-any.whl"
    path.write_bytes(path.read_bytes().replace(b"1.0+cpu", b"1.0+gpu"))
    with served(released) as (address, _), pytest.raises(AssertionError, match=r"(?i)hash|digest"):
        pip(f"{address}/index/cpu/", tmp_path / "site")


@pytest.mark.parametrize("backend", ["cpu", "vulkan"])
def test_uv_installs_from_a_backends_folder(released: Path, tmp_path: Path, backend: str) -> None:
    uv = shutil.which("uv")
    if uv is None:
        pytest.skip("uv is not installed here")
    dest = tmp_path / "site"
    with served(released) as (address, _):
        index = f"{address}/index/{backend}/"
        command = [uv, "pip", "install", "--no-cache", "--index-url", index, "--target", str(dest)]
        command += ["--python", sys.executable, "tiny-runtime"]
        assert installed(command, dest) == f"VALUE = '1.0+{backend}'"


def test_a_whole_release_is_an_index(tmp_path: Path) -> None:
    """What the release room makes is what pip installs from, nothing else beside it."""
    kinds = [target(f"{b}-wheel", b, TargetKind.RUNTIME_WHEEL) for b in BACKENDS]
    wanted = plan(*(planned_wheel(t) for t in kinds))
    folder = release_run(tmp_path, wanted=wanted).make().folder
    with served(folder) as (address, asked):
        for backend in BACKENDS:
            said = pip(f"{address}/index/{backend}/", tmp_path / f"site-{backend}")
            assert said == f"VALUE = '1.0+{backend}'"
    assert not [a for a in asked if "json" in a], "the HTML pages are enough"


def planned_wheel(wanted: ReleaseTarget) -> PlannedTarget:
    """Return a wheel target whose tag any machine can install."""
    made = planned(wanted)
    return replace(made, files=wheel_files(f"tiny_runtime-1.0+{wanted.backend}-py3-none-any"))


def test_pip_reads_the_json_too(released: Path, tmp_path: Path) -> None:
    """A server that chooses by the Accept header gives pip the JSON pages."""

    class Choosing(SimpleHTTPRequestHandler):
        def send_head(self):  # type: ignore[no-untyped-def]  # noqa: ANN202
            if self.path.endswith("/") and JSON_TYPE in self.headers.get("Accept", ""):
                self.path += "index.json"
            return super().send_head()

        def guess_type(self, path: str | os.PathLike[str]) -> str:
            return JSON_TYPE if str(path).endswith("index.json") else super().guess_type(path)

        def log_message(self, *_args: object) -> None:
            asked.append(self.path)

    asked: list[str] = []
    server = ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(Choosing, directory=str(released))
    )
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        address = f"http://127.0.0.1:{server.server_address[1]}/index/vulkan/"
        assert pip(address, tmp_path / "site") == "VALUE = '1.0+vulkan'"
    finally:
        server.shutdown()
        server.server_close()
    assert "/index/vulkan/tiny-runtime/index.json" in asked
