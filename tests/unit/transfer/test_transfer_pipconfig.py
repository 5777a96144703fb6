from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from llamawright.errors import ExitCode, UsageError
from llamawright.transfer.pipconfig import (
    IndexSettings,
    config_files,
    index_settings,
    user_settings,
)

MAIN = "https://main.example/simple"
EXTRA = "https://extra.example/simple"


def read(tmp_path: Path, *files: str, env: dict[str, str] | None = None) -> IndexSettings:
    paths = []
    for number, text in enumerate(files):
        path = tmp_path / f"pip-{number}.conf"
        path.write_text(text)
        paths.append(path)
    return index_settings(env or {}, paths)


def test_without_any_setting_the_default_index_is_meant(tmp_path: Path) -> None:
    settings = read(tmp_path)
    assert settings.indexes == ("",)
    assert settings.find_links == ()
    assert settings.http.cert == ""
    assert settings.http.timeout_s == 30.0


def test_a_file_names_the_index(tmp_path: Path) -> None:
    assert read(tmp_path, f"[global]\nindex-url = {MAIN}\n").indexes == (MAIN,)


def test_extra_indexes_follow_the_main_one_in_their_order(tmp_path: Path) -> None:
    settings = read(
        tmp_path,
        f"[global]\nindex-url = {MAIN}\nextra-index-url =\n    {EXTRA}\n    file:///x/simple",
    )
    assert settings.indexes == (MAIN, EXTRA, "file:///x/simple")


def test_an_extra_index_alone_follows_the_default(tmp_path: Path) -> None:
    assert read(tmp_path, f"[global]\nextra-index-url = {EXTRA}").indexes == ("", EXTRA)


def test_later_files_replace_earlier_ones_and_do_not_add(tmp_path: Path) -> None:
    settings = read(
        tmp_path,
        f"[global]\nindex-url = {MAIN}\nextra-index-url = https://a.example https://b.example",
        f"[global]\nextra-index-url = {EXTRA}",
    )
    assert settings.indexes == (MAIN, EXTRA)


def test_the_download_section_beats_the_global_one_of_any_file(tmp_path: Path) -> None:
    settings = read(
        tmp_path,
        f"[download]\nindex-url = {MAIN}",
        f"[global]\nindex-url = {EXTRA}",
    )
    assert settings.indexes == (MAIN,)


def test_sections_of_other_commands_do_not_count(tmp_path: Path) -> None:
    assert read(tmp_path, f"[install]\nindex-url = {MAIN}").indexes == ("",)


def test_pip_variables_beat_files(tmp_path: Path) -> None:
    settings = read(
        tmp_path,
        "[global]\nindex-url = https://file.example\ncert = /file.pem\n",
        env={"PIP_INDEX_URL": MAIN, "PIP_EXTRA_INDEX_URL": f"{EXTRA} file:///y"},
    )
    assert settings.indexes == (MAIN, EXTRA, "file:///y")
    assert settings.http.cert == "/file.pem"


def test_an_empty_variable_says_nothing(tmp_path: Path) -> None:
    settings = read(tmp_path, f"[global]\nindex-url = {MAIN}", env={"PIP_INDEX_URL": " "})
    assert settings.indexes == (MAIN,)


@pytest.mark.parametrize(
    ("env", "indexes"),
    [
        ({"UV_INDEX_URL": MAIN}, (MAIN,)),
        ({"UV_DEFAULT_INDEX": MAIN}, (MAIN,)),
        ({"UV_DEFAULT_INDEX": MAIN, "UV_INDEX_URL": EXTRA}, (MAIN,)),
        ({"UV_DEFAULT_INDEX": f"corp={MAIN}"}, (MAIN,)),
        ({"UV_INDEX": f"corp={EXTRA} https://b.example"}, ("", EXTRA, "https://b.example")),
        ({"UV_EXTRA_INDEX_URL": EXTRA}, ("", EXTRA)),
        ({"UV_INDEX_URL": "https://h.example/?a=b"}, ("https://h.example/?a=b",)),
        ({"UV_INDEX_URL": EXTRA, "PIP_INDEX_URL": MAIN}, (MAIN,)),
    ],
)
def test_uv_variables_count_below_those_of_pip(
    tmp_path: Path, env: dict[str, str], indexes: tuple[str, ...]
) -> None:
    assert read(tmp_path, env=env).indexes == indexes


def test_uv_variables_beat_pip_files(tmp_path: Path) -> None:
    settings = read(tmp_path, f"[global]\nindex-url = {EXTRA}", env={"UV_INDEX_URL": MAIN})
    assert settings.indexes == (MAIN,)


@pytest.mark.parametrize("value", ["1", "true", "Yes", "on"])
def test_no_index_leaves_the_folders(tmp_path: Path, value: str) -> None:
    settings = read(
        tmp_path, f"[global]\nindex-url = {MAIN}\nno-index = {value}\nfind-links = /a\n  /b\n"
    )
    assert settings.indexes == ()
    assert settings.find_links == ("/a", "/b")


def test_no_index_may_be_denied(tmp_path: Path) -> None:
    assert read(tmp_path, "[global]\nno-index = false").indexes == ("",)


def test_find_links_of_uv_are_separated_by_commas(tmp_path: Path) -> None:
    assert read(tmp_path, env={"UV_FIND_LINKS": "/a,/b"}).find_links == ("/a", "/b")


def test_how_to_connect_is_read(tmp_path: Path) -> None:
    http = read(
        tmp_path,
        "[global]\ncert = /c.pem\nclient-cert = /me.pem\nproxy = http://p:1\n"
        "trusted-host = a.example b.example:8443\ntimeout = 60\n",
    ).http
    assert http.cert == "/c.pem"
    assert http.client_cert == "/me.pem"
    assert http.proxy == "http://p:1"
    assert http.trusted_hosts == ("a.example", "b.example:8443")
    assert http.timeout_s == 60.0


@pytest.mark.parametrize(
    ("env", "seconds"),
    [
        ({"PIP_TIMEOUT": "7"}, 7.0),
        ({"PIP_DEFAULT_TIMEOUT": "180"}, 180.0),
        ({"PIP_TIMEOUT": "7", "PIP_DEFAULT_TIMEOUT": "180"}, 7.0),
        ({"PIP_TIMEOUT": "soon"}, 30.0),
        ({"PIP_TIMEOUT": "0"}, 1.0),
    ],
)
def test_the_timeout_is_in_seconds(tmp_path: Path, env: dict[str, str], seconds: float) -> None:
    assert read(tmp_path, env=env).http.timeout_s == seconds


def test_spellings_of_a_key_are_one(tmp_path: Path) -> None:
    assert read(tmp_path, f"[global]\nIndex_URL: {MAIN}").indexes == (MAIN,)


def test_percent_signs_are_no_interpolation(tmp_path: Path) -> None:
    url = "https://user:p%40ss@main.example/simple"
    assert read(tmp_path, f"[global]\nindex-url = {url}").indexes == (url,)


@pytest.mark.parametrize("text", ["index-url = x", "[global\n", "[global]\na=1\na=2\n"])
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, text: str) -> None:
    with pytest.raises(UsageError) as caught:
        read(tmp_path, text)
    assert caught.value.code is ExitCode.USAGE
    assert "pip-0.conf" in caught.value.what
    assert "PIP_CONFIG_FILE" in caught.value.hint


def test_a_binary_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "pip.conf"
    path.write_bytes(b"[global]\nindex-url = \xff\xfe")
    with pytest.raises(UsageError, match=r"pip\.conf"):
        index_settings({}, [path])


def test_absent_files_and_folders_are_skipped(tmp_path: Path) -> None:
    assert index_settings({}, [tmp_path / "none", tmp_path]).indexes == ("",)


def test_the_named_file_is_the_most_important_one(tmp_path: Path) -> None:
    named = tmp_path / "mine.conf"
    assert list(config_files({"PIP_CONFIG_FILE": str(named)}))[-1] == named


def test_the_null_device_switches_all_files_off() -> None:
    assert list(config_files({"PIP_CONFIG_FILE": os.devnull})) == []


def test_user_files_are_less_than_those_of_the_environment_in_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "xdg"))
    monkeypatch.setenv("XDG_CONFIG_DIRS", f"{tmp_path / 'site1'}{os.pathsep}{tmp_path / 'site2'}")
    files = list(config_files({"VIRTUAL_ENV": str(tmp_path / "venv")}))
    places = [
        tmp_path / "site1" / "pip" / "pip.conf",
        tmp_path / "site2" / "pip" / "pip.conf",
        Path("/etc/pip.conf"),
        tmp_path / "home" / ".pip" / "pip.conf",
        tmp_path / "xdg" / "pip" / "pip.conf",
        Path(sys.prefix) / "pip.conf",
        tmp_path / "venv" / "pip.conf",
    ]
    assert [p for p in files if p in places] == places


def test_the_user_s_own_settings_come_from_files_and_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine.conf").write_text(f"[global]\nextra-index-url = {EXTRA}\n")
    monkeypatch.setenv("PIP_CONFIG_FILE", str(tmp_path / "mine.conf"))
    monkeypatch.setenv("PIP_INDEX_URL", MAIN)
    assert user_settings().indexes == (MAIN, EXTRA)
