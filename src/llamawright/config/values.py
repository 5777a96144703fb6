"""One setting's text to its value; every refusal names where it was said and the cure."""

from __future__ import annotations

import re
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import TypeVar

from llamawright.config.document import suggestion
from llamawright.config.settings import Said
from llamawright.model.cuda import parse_code
from llamawright.model.platform import Backend
from llamawright.model.request import CacheChoice, VulkanChoice

COMPILERS = ("auto", "gcc", "clang")
ORIGINS = ("auto", "index", "archive", "git")
GIT_SOURCE = re.compile(r"git\+(?P<url>(?:https|file)://\S+)@(?P<commit>[^@\s]+)")
FULL_COMMIT = re.compile(r"[0-9a-f]{40}")
ARCH_WORDS = ("native", "all-major", "release")
TOOLKITS = ("auto", "system", "provided")
TRUE = ("1", "true", "on", "yes")
FALSE = ("0", "false", "off", "no")
MAX_JOBS = 1024
Choice = TypeVar("Choice", Backend, CacheChoice, VulkanChoice)


def choice(said: Said, kind: type[Choice]) -> Choice:
    """Return one word of a fixed list."""
    words = [str(m) for m in kind]
    text = plain_text(said)
    if text not in words:
        raise said.refuse(
            f"{said.name} cannot be '{text}'",
            why=f"it is one of: {', '.join(words)}",
            hint=suggestion(text, words),
        )
    return kind(text)


def switch(said: Said) -> bool:
    """Return on or off."""
    if isinstance(said.value, bool):
        return said.value
    word = plain_text(said).lower()
    if word not in (*TRUE, *FALSE):
        raise said.refuse(
            f"{said.name} is on or off, not '{word}'", hint=f"one of: {', '.join((*TRUE, *FALSE))}"
        )
    return word in TRUE


def jobs(said: Said) -> int | None:
    """Return the number of compile jobs; ``auto`` leaves it to cores and memory."""
    text = plain_text(said)
    if text == "auto":
        return None
    if not (text.isascii() and text.isdigit() and 1 <= int(text) <= MAX_JOBS):
        raise said.refuse(
            f"jobs cannot be '{text}'",
            why=f"it is a whole number from 1 to {MAX_JOBS}",
            hint="leave it out: the number then comes from cores and memory",
        )
    return int(text)


def path(said: Said) -> Path:
    """Return a path; a relative one starts at the folder it was said in."""
    text = str(said.value) if isinstance(said.value, Path) else plain_text(said)
    try:
        return said.base / Path(text).expanduser()
    except RuntimeError as error:
        raise said.refuse(f"{text}: there is no such home folder", why=str(error)) from error


def compiler(said: Said) -> str:
    """Return ``auto``, ``gcc``, ``clang`` or an absolute path."""
    text = plain_text(said)
    if text in COMPILERS:
        return text
    if not _is_path(text):
        raise said.refuse(
            f"the compiler cannot be '{text}'",
            why="it is auto, gcc, clang or the path of a C++ compiler",
            hint=f"{suggestion(text, COMPILERS)} Or name its path, e.g. /usr/bin/{text}",
        )
    return path(said).as_posix()


def tool(said: Said) -> str:
    """Return ``auto`` or an absolute path."""
    text = plain_text(said)
    if text != "auto" and not _is_path(text):
        raise said.refuse(
            f"{said.name} cannot be '{text}'",
            why="it is auto or the path of the program",
            hint=f"name its path, e.g. /usr/bin/{said.name}, or leave it out",
        )
    return text if text == "auto" else path(said).as_posix()


def source(said: Said) -> str:
    """Return an origin's word, ``path:<absolute folder>`` or ``git+<url>@<full commit>``."""
    text = plain_text(said)
    if text in ORIGINS:
        return text
    if text.startswith("path:"):
        folder = path(Said(said.name, text.removeprefix("path:"), said.origin, said.base))
        return f"path:{folder.as_posix()}"
    if text.startswith("git+"):
        return _git(text, said)
    hint = suggestion(text, ORIGINS)
    if text.startswith(("https:", "http:", "ssh:", "git@")):
        hint = "a repository is written git+https://…@<full commit>"
    elif _is_path(text) or text in (".", ".."):
        hint = f"a folder on this machine is written path:{text}"
    raise said.refuse(
        f"the source cannot be '{text}'",
        why="it is auto, index, archive, git, path:DIR or git+URL@COMMIT",
        hint=hint,
    )


def _git(text: str, said: Said) -> str:
    parts = GIT_SOURCE.fullmatch(text)
    if parts is None:
        raise said.refuse(
            f"'{text}' is no git source",
            why="it needs an https:// or file:// address, an @ and a full commit",
            hint="git+https://github.com/ggml-org/llama.cpp@<40 hex digits>",
        )
    if not FULL_COMMIT.fullmatch(parts["commit"]):
        raise said.refuse(
            f"'{parts['commit']}' is no full commit",
            why="a branch, a tag or a short id can mean other code tomorrow",
            hint=f"git ls-remote {parts['url']} shows the 40 digits",
        )
    return text


def archs(said: Said) -> tuple[str, ...]:
    """Return CUDA device code as it was said, each word understood; the same twice is once."""
    given = said.value if isinstance(said.value, list | tuple) else [said.value]
    words: dict[str, None] = {}
    for item in given:
        text = str(item) if isinstance(item, float) else plain_text(replace(said, value=item))
        for word in re.split(r"[\s,;]+", text.strip(" ,;")):
            _check_arch(said, word)
            words[word.lower()] = None
    return tuple(words)


def _check_arch(said: Said, word: str) -> None:
    if word.lower() in ARCH_WORDS or parse_code(word):
        return
    near = get_close_matches(word.lower(), ARCH_WORDS, n=1)
    raise said.refuse(
        f"'{word}' is no CUDA device code",
        why="a compute capability is meant: 6.1, 61 and sm_61 are machine code for 6.1, "
        "61-virtual is PTX, 120a is code for exactly 12.0",
        hint=f"did you mean {near[0]}?"
        if near
        else "nvidia-smi --query-gpu=name,compute_cap "
        "--format=csv shows a card's own; or one of: " + ", ".join(ARCH_WORDS),
    )


def cuda_toolkit(said: Said) -> str:
    """Return ``auto``, ``system``, ``provided``, a version's beginning, or an absolute path."""
    text = plain_text(said)
    if text in TOOLKITS or re.fullmatch(r"\d{1,2}(\.\d{1,3}){0,2}", text):
        return text
    if _is_path(text):
        return str(path(said))
    raise said.refuse(
        f"'{text}' names no CUDA toolkit",
        hint=f"one of: {', '.join(TOOLKITS)}, a version such as 12.4, or a folder (./cuda)",
    )


def plain_text(said: Said) -> str:
    """Return the value as one line of text."""
    value = said.value
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise said.refuse(f"{said.name} needs one word", why=f"it is {value!r}")
    text = str(value).strip()
    if not text or set(text) & set("\n\r\0"):
        raise said.refuse(f"{said.name} needs one word", why=f"it is {value!r}")
    return text


def _is_path(text: str) -> bool:
    return "/" in text or "\\" in text or text.startswith("~")
