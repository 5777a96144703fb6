from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from llamawright.errors import DownloadError
from llamawright.model.recipe import IndexOrigin
from llamawright.store import Store
from llamawright.transfer import download_index_file
from llamawright.transfer.index import locate
from llamawright.transfer.pipconfig import IndexSettings, index_settings
from transfer_kit import Listener, Reply, Seen, Site, Slept, noise, sha, site

BODY, OTHER = noise(50_000), noise(50_000, seed=2)
NAME = "llama_cpp_python-0.3.36.tar.gz"
ORIGIN = IndexOrigin(
    project="Llama_cpp.Python", version="0.3.36", filename=NAME, size=len(BODY), sha256=sha(BODY)
)
JSON = "application/vnd.pypi.simple.v1+json"
PROJECT = "/simple/llama-cpp-python/"


@pytest.fixture
def web() -> Iterator[Site]:
    with site() as opened:
        yield opened


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def json_page(*files: tuple[str, str, str]) -> Reply:
    """Return a PEP 691 project page of (file name, address, sha256 or nothing)."""
    listed = [
        {"filename": name, "url": url, "hashes": {"sha256": digest} if digest else {}}
        for name, url, digest in files
    ]
    page = {"meta": {"api-version": "1.1"}, "name": "llama-cpp-python", "files": listed}
    return Reply(body=json.dumps(page).encode(), headers={"Content-Type": JSON})


def html_page(*files: tuple[str, str, str]) -> Reply:
    """Return a PEP 503 project page."""
    links = "".join(
        f'<a href="{url}{f"#sha256={digest}" if digest else ""}" data-requires-python="&gt;=3.8">'
        f"{name}</a><br/>\n"
        for name, url, digest in files
    )
    page = f"<!DOCTYPE html>\n<html><body><h1>Links</h1>\n{links}</body></html>"
    return Reply(body=page.encode(), headers={"Content-Type": "text/html"})


def settings(*indexes: str, links: tuple[str, ...] = ()) -> IndexSettings:
    return IndexSettings(indexes=indexes, find_links=links)


def get(
    store: Store,
    chosen: IndexSettings,
    *,
    offline: bool = False,
    slept: Slept | None = None,
    listener: Listener | None = None,
) -> Path:
    return download_index_file(
        ORIGIN,
        store,
        offline=offline,
        reporter=listener or Listener(),
        settings=chosen,
        clock=(slept or Slept()).clock,
    )


def failing(store: Store, chosen: IndexSettings, slept: Slept | None = None) -> DownloadError:
    with pytest.raises(DownloadError) as caught:
        get(store, chosen, slept=slept)
    return caught.value


@pytest.mark.parametrize("page", [json_page, html_page])
@pytest.mark.parametrize("address", ["absolute", "relative"])
def test_a_file_is_found_on_both_kinds_of_pages(
    web: Site, store: Store, page: type, address: str
) -> None:
    url = web.url("/files/x.tar.gz") if address == "absolute" else "../../files/x.tar.gz"
    web.routes[PROJECT] = page(
        ("llama_cpp_python-0.3.35.tar.gz", "../../files/old", sha(OTHER)), (NAME, url, sha(BODY))
    )
    web.routes["/files/x.tar.gz"] = Reply(body=BODY)
    assert get(store, settings(web.url("/simple"))).read_bytes() == BODY
    assert web.paths() == [PROJECT, "/files/x.tar.gz"]


def test_the_project_is_asked_for_by_its_normal_name_as_json_or_html(
    web: Site, store: Store
) -> None:
    web.routes[PROJECT] = json_page((NAME, web.url("/f"), ""))
    web.routes["/f"] = Reply(body=BODY)
    get(store, settings(web.url("/simple/")))
    assert web.seen[0].path == PROJECT
    assert JSON in web.seen[0].headers["Accept"]
    assert "text/html" in web.seen[0].headers["Accept"]
    assert web.seen[0].headers["User-Agent"].startswith("llamawright/")


def test_the_store_needs_no_index(web: Site, store: Store) -> None:
    web.routes[PROJECT] = json_page((NAME, web.url("/f"), ""))
    web.routes["/f"] = Reply(body=BODY)
    chosen = settings(web.url("/simple"))
    get(store, chosen)
    get(store, chosen)
    get(store, chosen, offline=True)
    assert len(web.seen) == 2


def test_offline_names_file_size_and_sha256(web: Site, store: Store) -> None:
    with pytest.raises(DownloadError) as caught:
        get(store, settings(web.url("/simple")), offline=True)
    assert caught.value.kind == "offline"
    assert NAME in caught.value.why
    assert f"{len(BODY)} bytes" in caught.value.why
    assert sha(BODY) in caught.value.why
    assert web.seen == []


def test_indexes_are_asked_in_their_order(web: Site, store: Store) -> None:
    web.routes["/two/llama-cpp-python/"] = json_page((NAME, web.url("/f"), sha(BODY)))
    web.routes["/three/llama-cpp-python/"] = json_page((NAME, web.url("/g"), sha(BODY)))
    web.routes["/f"] = Reply(body=BODY)
    get(store, settings(web.url("/one"), web.url("/two"), web.url("/three")))
    assert web.paths() == ["/one/llama-cpp-python/", "/two/llama-cpp-python/", "/f"]


def test_an_entry_with_another_sha256_is_passed_over(web: Site, store: Store) -> None:
    web.routes["/one/llama-cpp-python/"] = json_page((NAME, web.url("/bad"), sha(OTHER)))
    web.routes["/two/llama-cpp-python/"] = html_page((NAME, web.url("/f"), sha(BODY)))
    web.routes["/f"] = Reply(body=BODY)
    get(store, settings(web.url("/one"), web.url("/two")))
    assert "/bad" not in web.paths()


def test_a_listed_file_with_other_bytes_makes_it_look_further(web: Site, store: Store) -> None:
    web.routes["/one/llama-cpp-python/"] = json_page((NAME, web.url("/bad"), ""))
    web.routes["/two/llama-cpp-python/"] = json_page((NAME, web.url("/f"), ""))
    web.routes["/bad"] = Reply(body=OTHER)
    web.routes["/f"] = Reply(body=BODY)
    assert get(store, settings(web.url("/one"), web.url("/two"))).read_bytes() == BODY


def test_other_bytes_everywhere_are_told_as_that(web: Site, store: Store) -> None:
    web.routes["/one/llama-cpp-python/"] = json_page((NAME, web.url("/bad"), ""))
    web.routes["/bad"] = Reply(body=OTHER)
    error = failing(store, settings(web.url("/one"), web.url("/two")))
    assert error.kind == "wrong-sha256"
    assert sha(OTHER) in error.why
    assert "/two/llama-cpp-python/: HTTP 404" in error.why


def test_a_file_that_is_nowhere_is_told_with_every_place(web: Site, store: Store) -> None:
    web.routes["/one/llama-cpp-python/"] = json_page(("llama_cpp_python-0.3.35.tar.gz", "x", ""))
    error = failing(store, settings(web.url("/one"), web.url("/two")))
    assert error.kind == "absent"
    assert NAME in error.what
    assert f"lists no {NAME}" in error.why
    assert "/two/llama-cpp-python/: HTTP 404" in error.why
    assert "pip config list" in error.hint


def test_an_index_that_is_down_for_a_minute_is_waited_for(web: Site, store: Store) -> None:
    web.routes[PROJECT] = Reply(status=503)
    web.routes["/f"] = Reply(body=BODY)

    def recover(_pauses: int) -> None:
        if sum(slept.pauses) >= 60:
            web.routes[PROJECT] = json_page((NAME, web.url("/f"), ""))

    slept = Slept(recover)
    assert get(store, settings(web.url("/simple")), slept=slept).read_bytes() == BODY


def test_another_index_serves_while_one_is_down(web: Site, store: Store) -> None:
    web.routes["/one/llama-cpp-python/"] = Reply(status=503)
    web.routes["/two/llama-cpp-python/"] = json_page((NAME, web.url("/f"), ""))
    web.routes["/f"] = Reply(body=BODY)
    slept = Slept()
    get(store, settings(web.url("/one"), web.url("/two")), slept=slept)
    assert slept.pauses == []


@pytest.mark.parametrize(
    ("status", "headers", "kind"),
    [
        (403, {"X-RateLimit-Remaining": "0"}, "rate-limit"),
        (407, {}, "proxy"),
        (401, {}, "refused"),
        (503, {}, "server-error"),
    ],
)
def test_why_the_look_up_failed_is_kept_apart(
    web: Site, store: Store, status: int, headers: dict[str, str], kind: str
) -> None:
    web.routes[PROJECT] = Reply(status=status, headers=headers)
    error = failing(store, settings(web.url("/simple")))
    assert error.kind == kind
    assert "could not be looked up" in error.what


@pytest.mark.parametrize(
    "reply",
    [
        Reply(body=b"{", headers={"Content-Type": JSON}),
        Reply(body=b"[]", headers={"Content-Type": JSON}),
        Reply(body=b'{"meta": {"api-version": "9.0"}}', headers={"Content-Type": JSON}),
        Reply(body=b"\x00\x01", headers={"Content-Type": "application/zip"}),
    ],
)
def test_a_page_that_is_no_index_page_is_told(web: Site, store: Store, reply: Reply) -> None:
    web.routes[PROJECT] = reply
    error = failing(store, settings(web.url("/simple")))
    assert error.kind == "refused"
    assert "not an index page" in error.why


def test_a_login_page_is_no_index_with_the_file(web: Site, store: Store) -> None:
    web.routes[PROJECT] = Reply(
        body=b"<!DOCTYPE html><a href='/login'>log in</a>", headers={"Content-Type": "text/html"}
    )
    assert failing(store, settings(web.url("/simple"))).kind == "absent"


def test_passwords_of_the_index_are_used_for_its_own_files_only(web: Site, store: Store) -> None:
    web.routes[PROJECT] = json_page((NAME, web.url("/f"), ""))
    web.routes["/f"] = Reply(body=BODY)
    get(store, settings(web.url("/simple").replace("http://", "http://me:hunter2@")))
    assert all("Authorization" in s.headers for s in web.seen)


def test_passwords_of_the_index_do_not_go_to_other_hosts(web: Site, store: Store) -> None:
    with site() as files:
        web.routes[PROJECT] = json_page((NAME, files.url("/f"), ""))
        files.routes["/f"] = Reply(body=BODY)
        get(store, settings(web.url("/simple").replace("http://", "http://me:hunter2@")))
        assert "Authorization" not in files.seen[0].headers


def test_passwords_are_not_repeated_in_errors(web: Site, store: Store) -> None:
    web.routes[PROJECT] = Reply(status=401)
    url = web.url("/simple").replace("http://", "http://me:hunter2@")
    error = failing(store, settings(url))
    assert "hunter2" not in f"{error.what}{error.why}{error.hint}"


def test_a_netrc_file_is_honoured(
    web: Site, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login me password pw\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    web.routes[PROJECT] = json_page((NAME, web.url("/f"), ""))
    web.routes["/f"] = Reply(body=BODY)
    get(store, settings(web.url("/simple")))
    assert web.seen[0].headers["Authorization"].startswith("Basic ")


def test_a_local_index_folder_is_read(store: Store, tmp_path: Path) -> None:
    folder = tmp_path / "simple" / "llama-cpp-python"
    folder.mkdir(parents=True)
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / NAME).write_bytes(BODY)
    page = html_page((NAME, f"../../files/{NAME}", sha(BODY)))
    (folder / "index.html").write_bytes(page.body)
    chosen = settings((tmp_path / "simple").as_uri())
    assert get(store, chosen).read_bytes() == BODY


def test_a_local_index_folder_may_hold_the_file_itself(store: Store, tmp_path: Path) -> None:
    folder = tmp_path / "simple" / "llama-cpp-python"
    folder.mkdir(parents=True)
    (folder / NAME).write_bytes(BODY)
    assert get(store, settings((tmp_path / "simple").as_uri())).read_bytes() == BODY


def test_local_places_without_the_file_are_passed_quietly(
    web: Site, store: Store, tmp_path: Path
) -> None:
    web.routes[PROJECT] = json_page((NAME, web.url("/f"), ""))
    web.routes["/f"] = Reply(body=BODY)
    (tmp_path / "links").mkdir()
    listener, slept = Listener(), Slept()
    chosen = settings(
        web.url("/simple"), (tmp_path / "none").as_uri(), links=(str(tmp_path / "links"),)
    )
    get(store, chosen, listener=listener, slept=slept)
    assert (listener.infos, listener.warnings, slept.pauses) == ([], [], [])


def test_local_places_without_the_file_are_no_part_of_an_error(
    web: Site, store: Store, tmp_path: Path
) -> None:
    error = failing(store, settings(web.url("/simple"), (tmp_path / "none").as_uri()))
    assert str(tmp_path / "none") not in error.why


@pytest.mark.parametrize("as_url", [False, True])
def test_a_folder_of_files_is_looked_at_before_the_network(
    web: Site, store: Store, tmp_path: Path, as_url: bool
) -> None:
    (tmp_path / NAME).write_bytes(BODY)
    link = tmp_path.as_uri() if as_url else str(tmp_path)
    assert get(store, settings(web.url("/simple"), links=(link,))).read_bytes() == BODY
    assert web.seen == []


def test_a_local_page_of_links_is_read(store: Store, tmp_path: Path) -> None:
    (tmp_path / NAME).write_bytes(BODY)
    (tmp_path / "links.html").write_bytes(html_page((NAME, NAME, "")).body)
    chosen = settings(links=(str(tmp_path / "links.html"),))
    assert get(store, chosen).read_bytes() == BODY


def test_a_remote_page_of_links_is_read(web: Site, store: Store) -> None:
    web.routes["/links.html"] = html_page((NAME, "f", ""))
    web.routes["/f"] = Reply(body=BODY)
    chosen = settings(links=(web.url("/links.html"),))
    assert get(store, chosen).read_bytes() == BODY


def test_without_any_place_the_error_says_so(store: Store) -> None:
    error = failing(store, settings())
    assert error.kind == "absent"
    assert "no index and no folder is configured" in error.why


def test_a_wrong_local_file_does_not_keep_the_index_away(
    web: Site, store: Store, tmp_path: Path
) -> None:
    (tmp_path / NAME).write_bytes(OTHER)
    web.routes[PROJECT] = json_page((NAME, web.url("/f"), ""))
    web.routes["/f"] = Reply(body=BODY)
    chosen = settings(web.url("/simple"), links=(str(tmp_path),))
    assert get(store, chosen).read_bytes() == BODY


def test_a_pip_configuration_leads_to_the_file(web: Site, store: Store, tmp_path: Path) -> None:
    """As users have it: a dead main index in the file, the right one in the environment."""
    web.routes["/env/llama-cpp-python/"] = json_page((NAME, web.url("/f"), sha(BODY)))
    web.routes["/f"] = Reply(body=BODY)
    conf = tmp_path / "pip.conf"
    conf.write_text(
        f"[global]\nindex-url = {web.url('/file')}\nextra-index-url = {tmp_path.as_uri()}\n"
    )
    chosen = index_settings({"PIP_INDEX_URL": web.url("/env")}, [conf])
    get(store, chosen)
    assert web.paths() == ["/env/llama-cpp-python/", "/f"]


def test_trusted_hosts_and_certificates_are_given_to_the_library(
    web: Site, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import requests

    seen: list[object] = []
    real = requests.Session.get

    def noting(self: requests.Session, url: str, **more: object) -> requests.Response:
        seen.append((more["verify"], more["timeout"]))
        return real(self, url, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(requests.Session, "get", noting)
    for name in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE"):
        monkeypatch.delenv(name, raising=False)
    cert = tmp_path / "c.pem"
    cert.write_text("")
    web.routes[PROJECT] = Reply(status=404)
    base = {"PIP_INDEX_URL": web.url("/simple"), "PIP_TIMEOUT": "3"}
    for extra in ({}, {"PIP_CERT": str(cert)}, {"PIP_TRUSTED_HOST": "127.0.0.1"}):
        failing(store, index_settings({**base, **extra}, []))
    assert seen == [(True, (3.0, 3.0)), (str(cert), (3.0, 3.0)), (False, (3.0, 3.0))]


def test_locate_gives_the_addresses_only(web: Site) -> None:
    web.routes[PROJECT] = html_page((NAME, web.url("/f?x=1"), sha(BODY)))
    found = locate(ORIGIN, settings=settings(web.url("/simple")), reporter=Listener())
    assert found == (web.url("/f?x=1"),)
    assert web.paths() == [PROJECT]


def test_the_default_index_is_the_library_s(monkeypatch: pytest.MonkeyPatch, web: Site) -> None:
    import pypi_simple

    monkeypatch.setattr(pypi_simple, "PYPI_SIMPLE_ENDPOINT", web.url("/simple/"))
    web.routes[PROJECT] = json_page((NAME, web.url("/f"), ""))
    found = locate(ORIGIN, settings=index_settings({}, []), reporter=Listener())
    assert found == (web.url("/f"),)


def test_a_page_may_answer_slowly_but_once(web: Site, store: Store) -> None:
    asked: list[Seen] = []

    def page(seen: Seen) -> Reply:
        asked.append(seen)
        return json_page((NAME, web.url("/f"), ""))

    web.routes[PROJECT] = page
    web.routes["/f"] = Reply(body=BODY)
    get(store, settings(web.url("/simple")))
    assert len(asked) == 1
