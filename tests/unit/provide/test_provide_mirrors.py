"""The machine's own mirrors: every form of apt's sources, and nothing of another vendor."""

from __future__ import annotations

from pathlib import Path

import pytest

from llamawright.provide.deb822 import stanzas
from llamawright.provide.mirrors import debian_mirrors

MIRROR = "http://mirror.invalid/debian"


def sources(root: Path, name: str, text: str) -> Path:
    path = root / "etc" / "apt" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return root


def test_machine_without_apt(tmp_path: Path) -> None:
    assert debian_mirrors(env={}, root=tmp_path) == ()


@pytest.mark.parametrize(
    "line",
    [
        f"deb {MIRROR} bookworm main",
        f"deb {MIRROR}/ trixie main contrib",
        f"deb [arch=amd64] {MIRROR} bookworm-updates main",
        f"deb [ arch=amd64 signed-by=/k.gpg ] {MIRROR} stable main",
        f"   deb\t{MIRROR}\tsid\tmain   # a comment",
        f"deb {MIRROR} bookworm/updates main",
    ],
)
def test_one_line_sources(tmp_path: Path, line: str) -> None:
    sources(tmp_path, "sources.list", f"# first\n\n{line}\n")
    assert debian_mirrors(env={}, root=tmp_path) == (MIRROR,)


@pytest.mark.parametrize(
    "line",
    [
        f"deb-src {MIRROR} bookworm main",
        f"# deb {MIRROR} bookworm main",
        f"deb {MIRROR} noble main",
        "deb https://packages.invalid/apt cloud-sdk-bookworm main",
        "deb https://packages.invalid nodistro main",
        f"deb {MIRROR} bookworm non-free",
        "deb",
        f"deb {MIRROR}",
        f"deb [arch=amd64 {MIRROR} bookworm main",
        "deb cdrom:[Debian_12]/ bookworm main",
        "deb ftp://mirror.invalid/debian bookworm main",
        "deb http:// bookworm main",
        "deb http://[broken bookworm main",
    ],
)
def test_lines_that_are_passed_over(tmp_path: Path, line: str) -> None:
    sources(tmp_path, "sources.list", f"{line}\n")
    assert debian_mirrors(env={}, root=tmp_path) == ()


def test_deb822_sources(tmp_path: Path) -> None:
    text = f"""
Types: deb deb-src
# a comment
URIs: {MIRROR} http://second.invalid/debian
Suites: bookworm bookworm-updates
Components: main contrib
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg

Types: deb-src
URIs: http://source.invalid/debian
Suites: bookworm
Components: main
"""
    sources(tmp_path, "sources.list.d/debian.sources", text)
    assert debian_mirrors(env={}, root=tmp_path) == (MIRROR, "http://second.invalid/debian")


def test_deb822_with_continued_lines_and_an_inline_key(tmp_path: Path) -> None:
    text = f"""Types: deb
URIs:
 {MIRROR}
Suites:
 trixie
Components: main
Signed-By:
 -----BEGIN PGP PUBLIC KEY BLOCK-----
 .
 mDMEY865UxYJKwYBBAHaRw8BAQdAd7Z0srwuhlB6JKFkcf4HU4SSS/xcRfwEQWzr
"""
    sources(tmp_path, "sources.list.d/debian.sources", text)
    assert debian_mirrors(env={}, root=tmp_path) == (MIRROR,)


@pytest.mark.parametrize("word", ["no", "false", "0"])
def test_disabled_stanza(tmp_path: Path, word: str) -> None:
    text = f"Enabled: {word}\nTypes: deb\nURIs: {MIRROR}\nSuites: trixie\nComponents: main\n"
    sources(tmp_path, "sources.list.d/debian.sources", text)
    assert debian_mirrors(env={}, root=tmp_path) == ()


def test_stanza_of_another_vendor(tmp_path: Path) -> None:
    text = "Types: deb\nURIs: https://vendor.invalid/\nSuites: nodistro\nComponents: main\n"
    sources(tmp_path, "sources.list.d/vendor.sources", text)
    assert debian_mirrors(env={}, root=tmp_path) == ()


def test_field_names_have_no_case(tmp_path: Path) -> None:
    text = f"types: deb\nuris: {MIRROR}\nsuites: trixie\ncomponents: main\n"
    sources(tmp_path, "sources.list.d/debian.sources", text)
    assert debian_mirrors(env={}, root=tmp_path) == (MIRROR,)


def test_list_of_mirrors(tmp_path: Path) -> None:
    sources(tmp_path, "mirrors/debian.list", f"{MIRROR} priority:1\n\nhttps://b.invalid/debian\n")
    text = (
        "Types: deb\nURIs: mirror+file:/etc/apt/mirrors/debian.list\n"
        "Suites: bookworm\nComponents: main\n"
    )
    sources(tmp_path, "sources.list.d/debian.sources", text)
    assert debian_mirrors(env={}, root=tmp_path) == (MIRROR, "https://b.invalid/debian")


def test_list_of_mirrors_that_is_absent(tmp_path: Path) -> None:
    sources(tmp_path, "sources.list", "deb mirror+file:/absent.list bookworm main\n")
    assert debian_mirrors(env={}, root=tmp_path) == ()


def test_every_file_once_and_in_order(tmp_path: Path) -> None:
    sources(tmp_path, "sources.list", "deb http://one.invalid/debian bookworm main\n")
    sources(tmp_path, "sources.list.d/b.list", "deb http://two.invalid/debian sid main\n")
    sources(tmp_path, "sources.list.d/c.list", "deb http://one.invalid/debian/ trixie main\n")
    sources(tmp_path, "sources.list.d/d.list.save", "deb http://no.invalid/debian sid main\n")
    found = debian_mirrors(env={}, root=tmp_path)
    assert found == ("http://one.invalid/debian", "http://two.invalid/debian")


def test_the_users_own_comes_first(tmp_path: Path) -> None:
    sources(tmp_path, "sources.list", f"deb {MIRROR} bookworm main\n")
    env = {"LLAMAWRIGHT_DEBIAN_MIRROR": "https://mine.invalid/debian/  file:///srv/debian nonsense"}
    found = debian_mirrors(env=env, root=tmp_path)
    assert found == ("https://mine.invalid/debian", "file:///srv/debian", MIRROR)


def test_unreadable_sources(tmp_path: Path) -> None:
    (tmp_path / "etc/apt/sources.list").mkdir(parents=True)
    path = sources(tmp_path, "sources.list.d/x.list", "") / "etc/apt/sources.list.d/x.list"
    path.write_bytes(b"\xff\xfe deb \xff\n" + f"deb {MIRROR} sid main\n".encode())
    assert debian_mirrors(env={}, root=tmp_path) == (MIRROR,)


def test_stanzas() -> None:
    text = "A: 1\nB: two\n three\n# no\n\n\nC:\n\nD: x: y\n"
    assert list(stanzas(text)) == [{"A": "1", "B": "two\nthree"}, {"C": ""}, {"D": "x: y"}]


def test_stanzas_of_nothing() -> None:
    assert list(stanzas("")) == []
    assert list(stanzas("\n# only\n\n")) == []
