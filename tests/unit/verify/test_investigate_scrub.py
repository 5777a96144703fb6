"""Nothing private stays in a text: folders, host, user, serial numbers."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from investigate_kit import frame, halt, investigation, thread
from llamawright.verify.investigate_scrub import Scrubber, scrubber

HOME = "/home/maria"
ROOM = f"{HOME}/.cache/llamawright/work/verify-73e3"
PLACES = (
    (ROOM, "WORK"), (f"{ROOM}/artifact", "ARTIFACT"), (f"{HOME}/.cache/llamawright", "STORE"),
    (f"{HOME}/models/tiny.gguf", "tiny.gguf"),
)  # fmt: skip


def scrub(**changes: str) -> Scrubber:
    given = {"user": "maria", "host": "sunflower.lan", "home": HOME, **changes}
    return scrubber(PLACES, user=given["user"], host=given["host"], home=given["home"])


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        (f"{ROOM}/artifact/bin/llama-cli", "ARTIFACT/bin/llama-cli"),
        (f"{ROOM}/empty", "WORK/empty"),
        (f"-m {HOME}/models/tiny.gguf -n 1", "-m tiny.gguf -n 1"),
        (f"cannot open {HOME}/secret plans.txt", "cannot open ~/secret plans.txt"),
        (f"PATH={HOME}/bin:/usr/bin:{ROOM}", "PATH=~/bin:/usr/bin:WORK"),
        ("maria@sunflower.lan: hello", "USER@HOST: hello"),
        ("on sunflower, as Maria", "on HOST, as USER"),
        ("/home/otto/x /Users/eva/y", "/home/USER/x /Users/USER/y"),
        (r"C:\Users\eva\y", r"C:\Users\USER\y"),
        ("GPU-12345678-abcd-1234-abcd-123456789abc", "GPU-UUID"),
        ("MIG-12345678-ABCD-1234-abcd-123456789abc", "MIG-UUID"),
        (f"{ROOM}/artifact/usr/share/../lib/x.so", "ARTIFACT/usr/lib/x.so"),
        (f"{ROOM}/a/b/../../artifact/x", "ARTIFACT/x"),
        ("marianne and sunflowers", "marianne and sunflowers"),
        ("NVIDIA H200, driver 580.159", "NVIDIA H200, driver 580.159"),
        (f"'{ROOM}'", "'WORK'"),
        (f"{ROOM}:", "WORK:"),
        (f"{HOME}.", "~."),
    ],
)  # fmt: skip
def test_what_is_private_is_replaced_and_nothing_else(text: str, clean: str) -> None:
    assert scrub().text(text) == clean


def test_a_folder_of_a_longer_name_is_another_folder() -> None:
    text = scrubber([("/work/x", "WORK")], user="", host="").text("/work/x /work/xy /work/x-1/z")
    assert text == "WORK /work/xy /work/x-1/z"


@pytest.mark.parametrize("name", ["root", "user", "ubuntu", "runner", "", "a"])
def test_names_that_every_machine_has_do_not_tear_words_apart(name: str) -> None:
    text = "the root of a runner's user folder: /root/x, a b"
    assert scrub(user=name, host=name, home="").text(text) == text


def test_the_home_of_the_superuser_is_replaced_by_its_path_alone() -> None:
    clean = scrub(user="root", home="/root").text("/root/work, as root: /rooted")
    assert clean == "~/work, as root: /rooted"


def test_a_home_that_is_the_whole_disk_replaces_nothing() -> None:
    assert scrub(home="/").text("/usr/bin") == "/usr/bin"


def test_the_order_of_the_places_does_not_matter() -> None:
    backwards = scrubber(reversed(PLACES), user="maria", host="sunflower", home=HOME)
    assert backwards.text(f"{ROOM}/artifact/x {ROOM}/y") == "ARTIFACT/x WORK/y"


def test_a_backslash_in_a_name_is_a_backslash() -> None:
    assert scrubber([("/x/y", r"A\1")], user="", host="").text("/x/y/z") == r"A\1/z"


def test_every_text_of_a_value_is_scrubbed() -> None:
    where = f"{ROOM}/artifact/bin/libggml.so"
    found = investigation(
        why=f"in {where}",
        halt=halt(thread("maria-worker", [frame(0, "f", where, source=f"{HOME}/x.c:3")])),
        commands=(f"cd {HOME}", f"{where} -p 'maria'"),
        environment=(("host", "sunflower"),),
    )
    clean = str(scrub().value(found))
    assert "maria" not in clean
    assert "sunflower" not in clean
    assert "ARTIFACT/bin/libggml.so" in clean


def test_numbers_and_words_of_an_enumeration_stay_what_they_are() -> None:
    found = investigation()
    clean = scrub().value(found)
    assert clean.seconds == found.seconds
    assert clean.instruments[0].use is found.instruments[0].use
    assert type(clean.trials[0].same) is bool


@dataclass(frozen=True)
class Odd:
    """Holds what is no text."""

    number: int
    texts: tuple[tuple[str, str], ...]
    nothing: None = None


def test_values_inside_tuples_of_tuples_are_scrubbed() -> None:
    clean = scrub().value(Odd(number=3, texts=(("a", f"{HOME}/x"),)))
    assert clean == Odd(number=3, texts=(("a", "~/x"),))


@given(st.text(alphabet="/.maria sunflower-x:'\"\\", max_size=80))
def test_whatever_the_text_the_home_folder_never_stays(text: str) -> None:
    clean = scrub().text(f"{text} {HOME}/secret {text}")
    assert f"{HOME}/" not in clean


@given(st.text(max_size=200))
def test_scrubbing_twice_changes_nothing_more(text: str) -> None:
    once = scrub().text(text)
    assert scrub().text(once) == once


def test_a_text_of_slashes_takes_no_time() -> None:
    assert scrub().text("/../" * 5000)
