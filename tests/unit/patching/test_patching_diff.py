"""Reading a patch and trying it on one file's bytes: literally, or not at all."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llamawright.errors import PatchError
from llamawright.patching.apply import Application, Fit, try_edit
from llamawright.patching.diff import FileEdit, lines_of, parse
from llamawright.patching.series import Patch
from llamawright.patching.written import Change, patch_text

HEAD = "--- a/f\n+++ b/f\n"
ABC = b"a\nb\nc\nd\ne\n"
SWAP = "@@ -2,3 +2,3 @@\n b\n-c\n+C\n d\n"
DRAFT = Patch(
    name="0001-x", type="bugfix", reason="r", upstream="none", sha256="", targets=()
)  # fmt: skip


def one(text: str) -> FileEdit:
    (edit,) = parse(text.encode(), "x.patch")
    return edit


def tried(text: str, content: bytes | None) -> Application:
    return try_edit(one(text), content)


def refusal(text: str | bytes) -> PatchError:
    with pytest.raises(PatchError) as caught:
        parse(text if isinstance(text, bytes) else text.encode(), "x.patch")
    return caught.value


def test_a_hunk_says_what_must_stand_where() -> None:
    edit = one(HEAD + SWAP)
    (hunk,) = edit.hunks
    assert (edit.path, edit.created, edit.deleted) == ("f", False, False)
    assert hunk.line == 2
    assert hunk.old == ("b\n", "c\n", "d\n")
    assert hunk.new == ("b\n", "C\n", "d\n")


def test_a_section_name_behind_the_hunk_is_only_told() -> None:
    assert one(HEAD + SWAP.replace("@@\n", "@@ int f(void)\n")).hunks == one(HEAD + SWAP).hunks


def test_an_empty_line_of_context_may_have_lost_its_blank() -> None:
    text = HEAD + "@@ -1,3 +1,3 @@\n a\n\n-c\n+C\n"
    assert tried(text, b"a\n\nc\n").content == b"a\n\nC\n"


def test_a_mail_around_the_patch_is_no_part_of_it() -> None:
    mail = "From: someone\nSubject: literal words\n\n- a list\n+ another\n---\n f | 2 +-\n\n"
    signed = f"{mail}diff --git a/f b/f\nindex 1..2 100644\n{HEAD}{SWAP}-- \n2.39.5\n\n"
    assert one(signed) == one(HEAD + SWAP)


@pytest.mark.parametrize(
    ("content", "fit", "result"),
    [
        (ABC, Fit.APPLIES, b"a\nb\nC\nd\ne\n"),
        (b"x\n" + ABC, Fit.OFFSET, b"x\na\nb\nC\nd\ne\n"),
        (b"b\nc\nd\n", Fit.OFFSET, b"b\nC\nd\n"),
        (b"a\nb\nC\nd\ne\n", Fit.PRESENT, b"a\nb\nC\nd\ne\n"),
        (b"a\nB\nc\nd\ne\n", Fit.DIFFERS, None),
        (b"a\nb \nc\nd\ne\n", Fit.DIFFERS, None),
        (b"a\nb\nc\nd", Fit.DIFFERS, None),
        (b"b\nc\nd\nx\nb\nc\nd\n", Fit.DIFFERS, None),
        (b"", Fit.DIFFERS, None),
        (ABC.replace(b"\n", b"\r\n"), Fit.CRLF, None),
        (None, Fit.MISSING, None),
    ],
)
def test_a_hunk_fits_literally_or_not(
    content: bytes | None, fit: Fit, result: bytes | None
) -> None:
    outcome = tried(HEAD + SWAP, content)
    assert outcome.fit is fit
    assert outcome.content == result


def test_the_named_line_wins_where_the_text_stands_twice() -> None:
    twice = b"x\n" + b"b\nc\nd\n" * 2
    assert tried(HEAD + SWAP, twice).content == b"x\nb\nC\nd\nb\nc\nd\n"


def test_hunks_of_one_file_land_together_or_not_at_all() -> None:
    text = HEAD + "@@ -1,2 +1,2 @@\n-a\n+A\n b\n@@ -4,2 +4,3 @@\n d\n-e\n+E\n+F\n"
    assert tried(text, ABC).content == b"A\nb\nc\nd\nE\nF\n"
    assert tried(text, b"a\nb\nc\nd\nx\n").fit is Fit.DIFFERS
    half = tried(text, b"A\nb\nc\nd\ne\n")
    assert half.fit is Fit.PARTLY
    assert half.content is None


def test_hunks_that_would_fall_on_each_other_are_refused() -> None:
    text = HEAD + "@@ -2,2 +2,2 @@\n b\n-c\n+C\n@@ -9,2 +9,2 @@\n-c\n+X\n d\n"
    outcome = tried(text, ABC)
    assert outcome.fit is Fit.DIFFERS
    assert "overlap" in outcome.detail


def test_only_a_line_feed_ends_a_line() -> None:
    odd = "one\ftwo\x1cthree\u2028four\n"
    assert lines_of(odd + "end") == [odd, "end"]
    text = HEAD + f"@@ -1,2 +1,2 @@\n {odd}-b\n+B\n"
    assert tried(text, f"{odd}b\n".encode()).content == f"{odd}B\n".encode()


def test_bytes_that_are_no_text_pass_through_unharmed() -> None:
    raw = b"\xff\xfe\x80\n" + ABC
    assert tried(HEAD + SWAP, raw).content == raw.replace(b"c", b"C")


@pytest.mark.parametrize(
    ("text", "before", "after"),
    [
        ("@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+b\n", b"a", b"b\n"),
        ("@@ -1 +1 @@\n-a\n+b\n\\ No newline at end of file\n", b"a\n", b"b"),
        (
            "@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+b\n\\ No newline at end of file\n",
            b"a",
            b"b",
        ),
        ("@@ -1,2 +1,2 @@\n-a\n+b\n z\n\\ No newline at end of file\n", b"a\nz", b"b\nz"),
    ],
)
def test_a_missing_last_line_end_counts(text: str, before: bytes, after: bytes) -> None:
    assert tried(HEAD + text, before).content == after
    other = before.removesuffix(b"\n") if before.endswith(b"\n") else before + b"\n"
    assert tried(HEAD + text, other).fit is Fit.DIFFERS


MADE = "--- /dev/null\n+++ b/f\n@@ -0,0 +1,2 @@\n+x\n+y\n"
GONE = "--- a/f\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-x\n-y\n"


@pytest.mark.parametrize(
    ("text", "content", "fit", "result"),
    [
        (MADE, None, Fit.APPLIES, b"x\ny\n"),
        (MADE, b"x\ny\n", Fit.PRESENT, b"x\ny\n"),
        (MADE, b"x\n", Fit.DIFFERS, b"x\n"),
        (GONE, b"x\ny\n", Fit.APPLIES, None),
        (GONE, b"x\ny\nz\n", Fit.DIFFERS, None),
        (GONE, None, Fit.PRESENT, None),
    ],
)
def test_whole_files_come_and_go(
    text: str, content: bytes | None, fit: Fit, result: bytes | None
) -> None:
    outcome = tried(text, content)
    assert (outcome.fit, outcome.content) == (fit, result)


LOST = {
    "a hunk with a broken header": HEAD + SWAP + "@@ -4 +4,1\n-d\n+D\n",
    "a line after its hunk": HEAD + SWAP + "+more\n",
    "a line before its hunk": HEAD + "+early\n" + SWAP,
    "words between two files": HEAD + SWAP + "and then\n" + HEAD.replace("/f", "/g") + SWAP,
    "a hunk cut short": HEAD + SWAP.removesuffix(" d\n"),
    "a hunk longer than it says": HEAD + SWAP.replace(",3 +", ",2 +"),
}


@pytest.mark.parametrize("text", LOST.values(), ids=list(LOST))
def test_nothing_of_a_patch_is_passed_over(text: str) -> None:
    error = refusal(text)
    assert error.kind == "bad-patch"
    assert error.why


ODD = {
    "link": "diff --git a/f b/f\nnew file mode 120000\n" + MADE,
    "submodule": "diff --git a/f b/f\nnew file mode 160000\n" + MADE,
    "link by index": "diff --git a/f b/f\nindex 1a..2b 120000\n" + HEAD + SWAP,
    "mode": "diff --git a/f b/f\nold mode 100644\nnew mode 100755\n" + HEAD + SWAP,
    "rename": "diff --git a/f b/g\nsimilarity index 90%\nrename from f\nrename to g\n",
    "copy": "diff --git a/f b/g\ncopy from f\ncopy to g\n",
    "binary": "diff --git a/f b/f\nGIT binary patch\nliteral 3\nKc$xyz\n",
    "binary, told": "Binary files a/f and b/f differ\n",
    "twice": HEAD + SWAP + HEAD + SWAP,
    "twice by case": HEAD + SWAP + HEAD.replace("/f", "/F") + SWAP,
    "made in part": MADE.replace("-0,0 +1,2", "-1 +1,3").replace("+x\n", " w\n+x\n"),
    "made in pieces": MADE + "@@ -0,0 +9 @@\n+z\n",
}


@pytest.mark.parametrize("text", ODD.values(), ids=list(ODD))
def test_what_is_no_plain_text_edit_is_refused(text: str) -> None:
    assert refusal(text).kind == "bad-patch"


def test_a_patch_that_is_not_utf8_is_refused() -> None:
    error = refusal((HEAD + SWAP).encode() + b"\xff\n")
    assert error.kind == "bad-patch"
    assert "parsed" in error.why


LINE = st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"]), max_size=6)
FILE = st.lists(LINE, max_size=12).map("\n".join)


@settings(max_examples=150, deadline=None)
@given(before=FILE, after=FILE)
def test_a_written_patch_gives_back_exactly_what_was_edited(before: str, after: str) -> None:
    old, new = before.encode(), after.encode()
    if old == new or not old or not new or b"\0" in old + new:
        return
    text = patch_text(DRAFT, [Change(path="dir/f", before=old, after=new)])
    (edit,) = parse(text.encode(), "x.patch")
    assert try_edit(edit, old).content == new


@settings(max_examples=150, deadline=None)
@given(text=st.text(alphabet="ab+- @\\\n,0123/\t", max_size=120))
def test_no_text_is_too_odd_to_be_refused_in_words(text: str) -> None:
    try:
        edits = parse((HEAD + text).encode(), "x.patch")
    except PatchError as error:
        assert error.kind in ("bad-patch", "empty-patch", "patch-outside")  # noqa: PT017
    else:
        assert all(e.hunks for e in edits)


@pytest.mark.parametrize(
    ("before", "after", "why"),
    [
        (b"a\0", b"b\n", "no text"),
        (b"a\n", b"a\r\n", "Windows line ends"),
        (b"a\n", b"\xff\n", "not UTF-8"),
        (b"a\n", b"", "empty"),
        (None, b"", "empty"),
    ],
)
def test_what_a_patch_cannot_hold_is_named(before: bytes | None, after: bytes, why: str) -> None:
    with pytest.raises(PatchError) as caught:
        patch_text(DRAFT, [Change(path="f", before=before, after=after)])
    assert caught.value.kind == "bad-patch"
    assert why in caught.value.why
    assert "f cannot" in caught.value.what
