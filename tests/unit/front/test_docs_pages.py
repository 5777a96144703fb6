"""The pages: they agree with the code, their links lead somewhere, their commands exist."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

import bootstrap
import pytest

from llamawright.cli.arguments import make_parser
from zoo.run import _parser as zoo_parser

sys.path.insert(0, str(bootstrap.CHECKOUT / "docs"))

import generate
import tables

ROOT = bootstrap.CHECKOUT
PAGES = generate.pages(ROOT)
COMMAND = re.compile(r"^(?:\$ )?((?:python3|py) bootstrap\.py|(?:uvx |pipx run )?nox -s)\b(.*)$")
HOSTS = re.compile(r"https?://([\w.-]+)")
UPSTREAM = {"github.com", "snapshot.debian.org", "sdk.lunarg.com", "mirror.example"}
# Names of document types and issuers that are written as addresses; nothing is fetched there.
UPSTREAM |= {"in-toto.io", "slsa.dev", "cyclonedx.org", "llamawright.dev"}
UPSTREAM |= {"token.actions.githubusercontent.com"}


def ids(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def commands(page: Path) -> Iterator[str]:
    """Yield the arguments of every command of ours that a page tells the reader to give."""
    text = page.read_text(encoding="utf-8").replace("\\\n", " ")
    lines = [line.strip() for line in text.splitlines()]
    lines += re.findall(r"`([^`\n]+)`", text)
    for line in lines:
        if match := COMMAND.match(re.sub(r"^- run: |^\w+=\S+ ", "", line)):
            yield re.split(r"\s{2,}| \| | > ", match.group(2))[0].strip()


@pytest.mark.parametrize("page", PAGES, ids=ids)
def test_generated_tables_agree_with_the_code(page: Path) -> None:
    drifted = generate.refresh(page, tables.BLOCKS, write=False)
    assert not drifted, "nox -s docs writes them"


def test_every_link_leads_somewhere() -> None:
    assert list(generate.broken_links(ROOT)) == []


def test_every_table_stands_on_a_page() -> None:
    assert list(generate.unused(PAGES, tables.BLOCKS)) == []


@pytest.mark.parametrize("page", PAGES, ids=ids)
def test_every_command_names_a_session_or_verb(page: Path) -> None:
    noxfile = (ROOT / "noxfile.py").read_text(encoding="utf-8")
    known = set(re.findall(r'^@nox\.session\(name="([\w-]+)"', noxfile, re.MULTILINE))
    known |= set(re.findall(r"venv_backend=\"none\"\)\ndef (\w+)\(", noxfile))
    verbs = {name for name, _ in tables._subparsers(make_parser())}
    for line in commands(page):
        words = shlex.split(line, posix=False)
        if not words or words[0].startswith(("-", "...", "[")):
            continue
        if words[0] == "llamawright":
            assert len(words) == 1 or words[1] in verbs | {"..."}, line
            continue
        for word in words:
            if word.startswith("-") or set(word) & set("./\\<"):
                break
            assert word in known, line


def test_the_commands_were_found() -> None:
    found = {line.partition(" ")[0] for page in PAGES for line in commands(page)}
    assert {"build-vulkan", "tests", "doctor", "llamawright"} <= found


@pytest.mark.parametrize("page", PAGES, ids=ids)
def test_flags_in_examples_exist(page: Path) -> None:
    parsers = dict(tables._subparsers(make_parser()))
    every = {f for p in parsers.values() for a in p._actions for f in a.option_strings}
    for name, parser in parsers.items():
        del name
        every |= {
            f for _, p in tables._subparsers(parser) for a in p._actions for f in a.option_strings
        }
    every |= {"--check", "--fix", "--json", "--help"}
    every |= {f for a in zoo_parser()._actions for f in a.option_strings}
    for line in commands(page):
        for flag in re.findall(r"(?<!\S)--[a-z][\w-]*", line):
            assert flag in every, line


@pytest.mark.parametrize("page", PAGES, ids=ids)
def test_only_upstream_addresses_are_named(page: Path) -> None:
    hosts = set(HOSTS.findall(page.read_text(encoding="utf-8")))
    assert hosts <= UPSTREAM


def test_the_readme_starts_with_the_two_commands() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    head = text[: text.index("## What it does")]
    for line in (
        "`python3 bootstrap.py build-vulkan`",
        "`python3 bootstrap.py tests`",
        "`py bootstrap.py build-vulkan`",
        "`uvx nox -s build-vulkan`",
        "`pipx run nox -s build-vulkan`",
    ):
        assert line in head


class TestGenerator:
    def page(self, folder: Path, text: str) -> Path:
        path = folder / "page.md"
        path.write_text(text, encoding="utf-8")
        return path

    def test_a_block_is_replaced_and_the_rest_is_kept(self, tmp_path: Path) -> None:
        page = self.page(tmp_path, "a\n<!-- generated: x -->\nold\n<!-- end -->\nb\n")
        assert generate.refresh(page, {"x": lambda: ["new"]}, write=True)
        assert page.read_text() == "a\n<!-- generated: x -->\nnew\n<!-- end -->\nb\n"
        assert not generate.refresh(page, {"x": lambda: ["new"]}, write=True)

    def test_checking_writes_nothing(self, tmp_path: Path) -> None:
        text = "<!-- generated: x -->\nold\n<!-- end -->\n"
        page = self.page(tmp_path, text)
        assert generate.refresh(page, {"x": lambda: ["new"]}, write=False)
        assert page.read_text() == text

    def test_an_unknown_block_is_an_error(self, tmp_path: Path) -> None:
        page = self.page(tmp_path, "<!-- generated: y -->\n<!-- end -->\n")
        with pytest.raises(SystemExit, match="called y"):
            generate.refresh(page, {"x": list}, write=False)

    def test_a_block_on_no_page_is_told(self, tmp_path: Path) -> None:
        page = self.page(tmp_path, "nothing\n")
        assert list(generate.unused([page], ["x"])) == ["no page holds the block x"]

    def test_broken_links_and_headings_are_told(self, tmp_path: Path) -> None:
        (tmp_path / "docs").mkdir()
        (tmp_path / "docs" / "b.md").write_text("# Two `words` here\n")
        self.page(
            tmp_path,
            "[a](docs/b.md#two-words-here) [b](docs/c.md) [c](docs/b.md#three) ![p](p.png)\n"
            "[d](https://github.com/x) [e](#none)\n```\n[f](in/code.md)\n```\n",
        )
        told = list(generate.broken_links(tmp_path))
        assert [t.split()[1] for t in told] == ["docs/c.md", "docs/b.md#three", "p.png", "#none"]

    def test_a_bar_in_a_cell_does_not_end_it(self) -> None:
        assert tables.row("a|b", 1) == "| a\\|b | 1 |"
