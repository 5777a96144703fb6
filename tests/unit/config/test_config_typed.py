"""Plain data to dataclasses: no unknown key, no wrong type, no silent conversion."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

import pytest

from llamawright.config.document import Place, load_document
from llamawright.config.typed import read_table
from llamawright.errors import UsageError


class Colour(StrEnum):
    RED = "red"
    GREEN = "green"


@dataclass(frozen=True, slots=True, kw_only=True)
class Inner:
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Outer:
    name: str
    on: bool = False
    ratio: float = 0.5
    count: int | None = None
    colour: Colour = Colour.RED
    words: tuple[str, ...] = ()
    inner: Inner | None = None
    rows: tuple[Inner, ...] = ()
    table: dict[str, str] = field(default_factory=dict)
    raw: dict[str, object] = field(default_factory=dict)


def read(tmp_path: Path, text: str) -> Outer:
    path = tmp_path / "outer.toml"
    path.write_text(text, encoding="utf-8")
    document = load_document(path)
    return read_table(Outer, document.data, Place(document))


def refused(tmp_path: Path, text: str) -> UsageError:
    with pytest.raises(UsageError) as caught:
        read(tmp_path, text)
    return caught.value


def test_defaults(tmp_path: Path) -> None:
    assert read(tmp_path, 'name = "n"') == Outer(name="n")


def test_every_kind(tmp_path: Path) -> None:
    text = """
name = "n"
on = true
ratio = 2
count = 3
colour = "green"
words = ["a", "b"]
inner = { size = 1 }
rows = [{ size = 2 }, { size = 3 }]
table = { a = "b" }
raw = { a = 1, b = [true] }
"""
    assert read(tmp_path, text) == Outer(
        name="n",
        on=True,
        ratio=2.0,
        count=3,
        colour=Colour.GREEN,
        words=("a", "b"),
        inner=Inner(size=1),
        rows=(Inner(size=2), Inner(size=3)),
        table={"a": "b"},
        raw={"a": 1, "b": [True]},
    )


def test_whole_number_becomes_a_float_only_where_one_is_wanted(tmp_path: Path) -> None:
    assert isinstance(read(tmp_path, 'name = "n"\nratio = 2').ratio, float)


def test_unknown_key_with_suggestion(tmp_path: Path) -> None:
    error = refused(tmp_path, 'name = "n"\ncolor = "red"')
    assert ":2: unknown key 'color'" in error.what
    assert error.hint == "did you mean 'colour'?"
    assert error.kind == "unknown-key"
    assert "colour" in error.why


def test_unknown_key_in_an_inner_row(tmp_path: Path) -> None:
    error = refused(tmp_path, 'name = "n"\n[[rows]]\nsize = 1\n[[rows]]\nsise = 1')
    assert ":5: unknown key 'sise' in rows[1]" in error.what
    assert error.hint == "did you mean 'size'?"


def test_missing_key(tmp_path: Path) -> None:
    error = refused(tmp_path, "on = true")
    assert error.kind == "missing-key"
    assert "lacks 'name'" in error.what
    assert error.hint == "add name = …"


def test_missing_key_of_an_inner_table(tmp_path: Path) -> None:
    error = refused(tmp_path, 'name = "n"\n[inner]\n')
    assert ":2: inner lacks 'size'" in error.what


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("on = 1", "true or false"),
        ('on = "true"', "true or false"),
        ("ratio = true", "a number"),
        ('ratio = "2"', "a number"),
        ("ratio = nan", "a number"),
        ("ratio = inf", "a number"),
        ("count = 1.0", "a whole number"),
        ("count = true", "a whole number"),
        ('count = "1"', "a whole number"),
        ('words = "a"', "a list"),
        ("words = [1]", "text"),
        ("inner = 1", "a table"),
        ("inner = []", "a table"),
        ("rows = { size = 1 }", "a list"),
        ("table = { a = 1 }", "text"),
        ("raw = []", "a table"),
        ("on = 2020-01-01", "true or false"),
    ],
)
def test_wrong_type(tmp_path: Path, line: str, wanted: str) -> None:
    error = refused(tmp_path, f'name = "n"\n{line}')
    assert error.kind == "bad-value"
    assert f"must be {wanted}" in error.what
    assert ":2:" in error.what


def test_enum_names_its_words(tmp_path: Path) -> None:
    error = refused(tmp_path, 'name = "n"\ncolour = "gren"')
    assert error.hint == "did you mean 'green'?"
    assert error.why == "it is one of: red, green"


def test_enum_of_the_wrong_type(tmp_path: Path) -> None:
    assert refused(tmp_path, 'name = "n"\ncolour = 3').kind == "bad-value"


def test_long_values_are_cut_in_the_message(tmp_path: Path) -> None:
    error = refused(tmp_path, f'name = "n"\non = "{"x" * 500}"')
    assert len(error.why) < 100


def test_annotation_without_a_form_is_a_bug(tmp_path: Path) -> None:
    @dataclass(frozen=True, kw_only=True)
    class Odd:
        value: set[str]

    path = tmp_path / "odd.toml"
    path.write_text("value = []", encoding="utf-8")
    document = load_document(path)
    with pytest.raises(TypeError, match="no form"):
        read_table(Odd, document.data, Place(document))
