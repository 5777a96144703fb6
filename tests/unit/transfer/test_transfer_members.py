from __future__ import annotations

import posixpath
from dataclasses import replace
from pathlib import PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llamawright.errors import DownloadError, ExitCode
from llamawright.transfer.members import Kind, Member, UnpackLimits, judge, select

LIMITS = UnpackLimits()


def file(name: str, size: int = 1) -> Member:
    return Member(number=0, name=name, kind=Kind.FILE, size=size)


def folder(name: str) -> Member:
    return Member(number=0, name=name, kind=Kind.FOLDER)


def link(name: str, target: str) -> Member:
    return Member(number=0, name=name, kind=Kind.LINK, target=target)


def names(*members: Member, limits: UnpackLimits = LIMITS, size: int = 1 << 20) -> list[str]:
    return [m.name for m in judge(members, limits=limits, archive_size=size, what="a.tar")]


def reason(*members: Member, limits: UnpackLimits = LIMITS, size: int = 1 << 20) -> str:
    with pytest.raises(DownloadError) as caught:
        names(*members, limits=limits, size=size)
    assert caught.value.kind == "unsafe-archive"
    assert caught.value.code is ExitCode.DOWNLOAD
    assert "a.tar" in caught.value.what
    return caught.value.why


@pytest.mark.parametrize(
    ("name", "clean"),
    [
        ("a", "a"),
        ("a/b.c", "a/b.c"),
        ("./a", "a"),
        ("./a/./b", "a/b"),
        ("a//b", "a/b"),
        ("a b/ü", "a b/ü"),
        ("..a/b..", "..a/b.."),
        ("usr/share/man/Foo::Bar.3", "usr/share/man/Foo::Bar.3"),
        ("-rf", "-rf"),
        ("~/x", "~/x"),
        ("a" * 255, "a" * 255),
    ],
)
def test_good_names_become_clean(name: str, clean: str) -> None:
    assert names(file(name)) == [clean]


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("/etc/passwd", "absolute"),
        ("//server/share", "absolute"),
        ("../x", "climbs"),
        ("a/../../x", "climbs"),
        ("a/../b", "climbs"),
        ("..", "climbs"),
        ("C:/x", "drive"),
        ("c:x", "drive"),
        ("C:\\x", "drive"),
        ("a\\..\\..\\x", "backslash"),
        ("\\\\server\\x", "backslash"),
        ("", "no name"),
        ("a\0b", "control"),
        ("a\nb", "control"),
        ("a\x1b[2Jb", "control"),
        ("a\udcffb", "undecodable"),
        ("a" * 256, "too long"),
        ("ü" * 128, "too long"),
        ("a/" * 600 + "b", "too long"),
        (".", "names no file"),
        ("./", "names no file"),
    ],
)
def test_bad_names_refuse_the_whole_archive(name: str, why: str) -> None:
    assert why in reason(file("good"), file(name))


def test_the_top_folder_itself_may_be_listed() -> None:
    assert names(folder("./"), file("./a")) == [".", "a"]


def test_devices_are_refused() -> None:
    assert "device" in reason(Member(number=0, name="dev/sda", kind=Kind.OTHER))


@pytest.mark.parametrize(
    ("name", "target"),
    [
        ("a", "b"),
        ("lib/libx.so", "libx.so.1"),
        ("lib/a", "../bin/a"),
        ("a/b/c", "../../d"),
        ("a", "./b"),
        ("a", "."),
        ("a", "b/c/"),
    ],
)
def test_links_inside_the_archive_are_kept(name: str, target: str) -> None:
    assert names(link(name, target)) == [name]


@pytest.mark.parametrize(
    ("name", "target"),
    [
        ("a", "../x"),
        ("a/b", "../../x"),
        ("a", ".."),
        ("a", "/etc/passwd"),
        ("a", "C:/x"),
        ("a", "..\\x"),
        ("a", ""),
        ("a", "b/../.."),
        ("a", "b/../c"),
        ("a", "b\0c"),
    ],
)
def test_links_that_lead_out_or_hide_where_are_refused(name: str, target: str) -> None:
    assert "leads out" in reason(link(name, target))


def test_a_link_that_is_only_inside_by_its_text_is_refused() -> None:
    """d leads to the top, so ``d/../x`` is outside, whatever normalising the text says."""
    assert "leads out" in reason(link("deep/down/d", "../../t"), link("e", "deep/down/d/../../x"))


@pytest.mark.parametrize(
    ("name", "target", "rebased"),
    [
        ("usr/lib/x", "/usr/lib/y", "y"),
        ("usr/lib/x", "/etc/alternatives/x", "../../etc/alternatives/x"),
        ("x", "/", "."),
        ("a/x", "/b", "../b"),
    ],
)
def test_absolute_links_of_a_package_can_mean_its_own_root(
    name: str, target: str, rebased: str
) -> None:
    limits = UnpackLimits(rebase_links=True)
    (member,) = judge([link(name, target)], limits=limits, archive_size=1, what="a")
    assert member.target == rebased
    resolved = posixpath.normpath(posixpath.join(posixpath.dirname(name), rebased))
    assert resolved == (target.lstrip("/") or ".")


def test_rebasing_does_not_let_links_climb_out() -> None:
    limits = UnpackLimits(rebase_links=True)
    assert "leads out" in reason(link("a", "/../x"), limits=limits)
    assert "leads out" in reason(link("a", "../x"), limits=limits)


@pytest.mark.parametrize(
    "members",
    [
        (file("a"), file("a")),
        (file("a"), file("./a")),
        (file("a"), file("A")),
        (file("dir/a"), file("DIR/b")),
        (folder("dir"), folder("Dir")),
        (file("stra\u00dfe"), file("STRASSE")),
        (file("caf\u00e9"), file("cafe\u0301")),
        (file("a"), link("a", "b")),
        (file("a"), folder("a")),
    ],
)
def test_two_members_in_one_place_are_refused(members: tuple[Member, ...]) -> None:
    assert "the same place" in reason(*members)


def test_case_may_matter_where_the_caller_says_so() -> None:
    limits = UnpackLimits(case_collisions=True)
    assert names(file("a"), file("A"), limits=limits) == ["a", "A"]
    assert "the same place" in reason(file("a"), file("a"), limits=limits)


def test_a_folder_may_be_listed_twice() -> None:
    assert names(folder("a"), file("a/b"), folder("a")) == ["a", "a/b", "a"]


@pytest.mark.parametrize(
    "members",
    [
        (link("a", "b"), file("a/x")),
        (file("a/x"), link("a", "b")),
        (file("a"), file("a/x")),
        (file("a/b/c/x"), file("a/b")),
        (link("A", "b"), file("a/x")),
    ],
)
def test_nothing_is_written_through_a_link_or_below_a_file(members: tuple[Member, ...]) -> None:
    assert "and a folder" in reason(*members)


def test_too_many_members_are_refused() -> None:
    limits = UnpackLimits(members=3)
    assert len(names(*(file(str(n)) for n in range(3)), limits=limits)) == 3
    assert "more than 3 members" in reason(*(file(str(n)) for n in range(4)), limits=limits)


def test_an_endless_archive_is_stopped_while_it_is_listed() -> None:
    def endless() -> object:
        number = 0
        while True:
            number += 1
            yield file(str(number))

    with pytest.raises(DownloadError, match="not unpacked"):
        judge(endless(), limits=UnpackLimits(members=10), archive_size=1, what="a")  # type: ignore[arg-type]


def test_too_many_bytes_are_refused() -> None:
    limits = UnpackLimits(total_bytes=100)
    assert "more than 100 bytes" in reason(file("a", 60), file("b", 60), limits=limits)


def test_a_bomb_is_known_by_its_ratio() -> None:
    assert "times its size" in reason(file("a", 1 << 30), size=1 << 10)
    assert names(file("a", 1 << 30), size=1 << 25) == ["a"]
    assert names(file("a", 1 << 20), size=10) == ["a"]


def below(*members: Member, strip: int = 0, only: str = "") -> list[str]:
    return [m.name for m in select(members, strip=strip, only=only, what="a.tar")]


def test_selecting_everything() -> None:
    assert below(folder("."), file("a"), file("b/c")) == ["a", "b/c"]


def test_the_top_folder_can_be_dropped() -> None:
    assert below(folder("top"), file("top/a"), file("top/b/c"), strip=1) == ["a", "b/c"]


def test_a_file_beside_the_top_folder_is_left_out() -> None:
    assert below(file("pax_global_header"), file("top/a"), strip=1) == ["a"]


def test_a_folder_below_the_top_becomes_the_root() -> None:
    members = (file("top/x"), file("top/vendor/llama.cpp/a"), file("top/vendor/other/b"))
    assert below(*members, strip=1, only="vendor/llama.cpp") == ["a"]
    assert below(*members, strip=1, only="/vendor/llama.cpp/") == ["a"]


def test_a_name_that_merely_starts_alike_is_not_below() -> None:
    assert below(file("a/x"), file("ab/y"), only="a") == ["x"]


def test_two_top_folders_are_not_mixed() -> None:
    with pytest.raises(DownloadError, match="not unpacked") as caught:
        below(file("one/a"), file("two/b"), strip=1)
    assert "several top folders (one, two" in caught.value.why


def test_an_absent_folder_is_told() -> None:
    with pytest.raises(DownloadError, match="not unpacked") as caught:
        below(file("top/a"), strip=1, only="vendor")
    assert "no folder top/vendor" in caught.value.why
    with pytest.raises(DownloadError, match="not unpacked"):
        below()


def test_a_link_that_leaves_the_selected_folder_is_refused() -> None:
    members = judge(
        (file("top/x"), link("top/sub/l", "../x")), limits=LIMITS, archive_size=1, what="a"
    )
    assert below(*members, strip=1) == ["x", "sub/l"]
    with pytest.raises(DownloadError, match="not unpacked"):
        below(*members, strip=1, only="sub")


PARTS = st.sampled_from(["a", "b", "A", "..", ".", "", "c:", "\\", "x y", "é", "\0", "d"])
PATHS = st.lists(PARTS, max_size=5).map("/".join)
MEMBERS = st.builds(
    lambda kind, name, target: Member(number=0, name=name, kind=kind, size=1, target=target),
    st.sampled_from([Kind.FILE, Kind.FOLDER, Kind.LINK]),
    PATHS,
    PATHS,
)


@given(st.lists(MEMBERS, max_size=6))
def test_whatever_passes_stays_inside(members: list[Member]) -> None:
    """Follow every path as the system would, through every link of the archive."""
    try:
        passed = judge(members, limits=LIMITS, archive_size=1 << 20, what="a")
    except DownloadError:
        return
    links = {m.name: m.target for m in passed if m.kind is Kind.LINK}
    for member in passed:
        _walk(PurePosixPath(member.name), links)
        if member.kind is Kind.LINK:
            _walk(PurePosixPath(member.name).parent / member.target, links)


def _walk(path: PurePosixPath, links: dict[str, str]) -> None:
    place: list[str] = []
    parts, hops = list(path.parts), 0
    while parts and hops < 40:
        part = parts.pop(0)
        if part == "..":
            assert place, f"{path} leads out"
            place.pop()
            continue
        assert part != "/"
        place.append(part)
        target = links.get("/".join(place))
        if target is not None:
            hops += 1
            place.pop()
            parts = [*PurePosixPath(target).parts, *parts]


def test_members_keep_everything_else(  # a clean name is all that changes
) -> None:
    member = replace(file("./a", 7), executable=True, mtime=5.0, number=3)
    (clean,) = judge([member], limits=LIMITS, archive_size=1, what="a")
    assert clean == replace(member, name="a")
