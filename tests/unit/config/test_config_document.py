"""Complaints name the file, the line and the nearest right word."""

from __future__ import annotations

from pathlib import Path

import pytest

from llamawright.config.document import Document, Place, load_document, suggestion
from llamawright.errors import ExitCode, UsageError

TEXT = '''\
# a comment with key = value
top = 1

[table]
plain = "x"
"quoted key" = 2
dotted.inner = 3

[table.sub]
deep = { one = 1, two = { three = 3 } }
list = [
    { name = "a", size = 1 },
    { name = "b", sizee = 2 },
]
after = true

[[rows]]
name = "first"

[rows.extra]
flag = true

[[rows]]
name = "second"
text = """
name = "not a key"
[not a table]
"""
last = 9

[only.below.here]
value = 1
'''


@pytest.fixture
def document(tmp_path: Path) -> Document:
    path = tmp_path / "some.toml"
    path.write_text(TEXT, encoding="utf-8")
    return load_document(path)


@pytest.mark.parametrize(
    ("steps", "line"),
    [
        (("top",), "top = 1"),
        (("table",), "[table]"),
        (("table", "plain"), 'plain = "x"'),
        (("table", "quoted key"), '"quoted key" = 2'),
        (("table", "dotted", "inner"), "dotted.inner = 3"),
        (("table", "dotted"), "dotted.inner = 3"),
        (("table", "sub"), "[table.sub]"),
        (("table", "sub", "deep", "two", "three"), "deep = {"),
        (("table", "sub", "list", 1, "sizee"), '    { name = "b", sizee'),
        (("table", "sub", "after"), "after = true"),
        (("rows",), "[[rows]]"),
        (("rows", 0, "name"), 'name = "first"'),
        (("rows", 0, "extra", "flag"), "flag = true"),
        (("rows", 1, "name"), 'name = "second"'),
        (("rows", 1, "last"), "last = 9"),
        (("only",), "[only.below.here]"),
        (("only", "below", "here", "value"), "value = 1"),
    ],
)
def test_line_of_key(document: Document, steps: tuple[str | int, ...], line: str) -> None:
    wanted = next(n for n, t in enumerate(TEXT.splitlines(), 1) if t.startswith(line))
    assert document.line_of(steps) == wanted


def test_line_of_unknown_key_is_that_of_its_table(document: Document) -> None:
    assert document.line_of(("table", "absent")) == 4
    assert document.line_of(("rows", 1, "absent")) == document.line_of(("rows", 1))


def test_line_of_unknown_table_is_the_first(document: Document) -> None:
    assert document.line_of(("nothing", "here")) == 1


def test_quoted_block_is_no_key(document: Document) -> None:
    assert document.line_of(("not a table",)) == 1
    assert document.data["rows"] == [
        {"name": "first", "extra": {"flag": True}},
        {"name": "second", "text": 'name = "not a key"\n[not a table]\n', "last": 9},
    ]


def test_block_on_one_line_does_not_swallow_the_rest(tmp_path: Path) -> None:
    path = tmp_path / "one.toml"
    path.write_text('a = """short"""\nb = 2\n', encoding="utf-8")
    assert load_document(path).line_of(("b",)) == 2


def test_literal_block_is_skipped(tmp_path: Path) -> None:
    path = tmp_path / "literal.toml"
    path.write_text("a = '''\nb = 1\n'''\nb = 2\n", encoding="utf-8")
    assert load_document(path).line_of(("b",)) == 4


def test_place_names_itself(document: Document) -> None:
    place = Place(document)
    assert place.name == "the file"
    assert place.at("rows").at(1).at("name").name == "rows[1].name"


def test_refusal_carries_file_line_and_kind(document: Document) -> None:
    error = Place(document).at("top").refuse("no", kind="bad-value", why="because", hint="do so")
    assert error.what == f"{document.path}:2: no"
    assert (error.why, error.hint, error.kind) == ("because", "do so", "bad-value")
    assert error.code is ExitCode.USAGE


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read") as caught:
        load_document(tmp_path / "absent.toml")
    assert caught.value.kind == "unreadable-file"
    assert "No such file" in caught.value.why


def test_folder_instead_of_file(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        load_document(tmp_path)


def test_not_utf8(tmp_path: Path) -> None:
    path = tmp_path / "latin.toml"
    path.write_bytes("name = 'é'".encode("latin-1"))
    with pytest.raises(UsageError, match="not UTF-8"):
        load_document(path)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a = 1\nb = \n", 2),
        ("a = 1\na = 2\n", 2),
        ("a = True\n", 1),
        ("[t]\n[t]\n", 2),
        ('a = """\nnever closed\n', 3),
    ],
)
def test_invalid_toml_names_the_line(tmp_path: Path, text: str, line: int) -> None:
    path = tmp_path / "bad.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UsageError) as caught:
        load_document(path)
    assert caught.value.kind == "bad-toml"
    assert caught.value.what.startswith(f"{path}:")
    told = int(caught.value.what.removeprefix(f"{path}:").split(":")[0])
    assert abs(told - line) <= 1


def test_windows_line_ends(tmp_path: Path) -> None:
    path = tmp_path / "crlf.toml"
    path.write_bytes(b"a = 1\r\n[t]\r\nb = 2\r\n")
    document = load_document(path)
    assert document.data == {"a": 1, "t": {"b": 2}}
    assert document.line_of(("t", "b")) == 3


@pytest.mark.parametrize(
    ("word", "known", "said"),
    [
        ("vulcan", ["vulkan", "cpu"], "did you mean 'vulkan'?"),
        ("GGML_VULCAN", ["GGML_VULKAN", "GGML_CUDA"], "did you mean 'GGML_VULKAN'?"),
        ("Reason", ["reason", "value"], "did you mean 'reason'?"),
        ("zzz", ["b", "a"], "one of: a, b"),
        ("x", [], ""),
    ],
)
def test_suggestion(word: str, known: list[str], said: str) -> None:
    assert suggestion(word, known) == said
