"""The generated tables of the pages, each made from the one place that owns its facts."""
# ruff: noqa: INP001 - beside the script that uses it

from __future__ import annotations

import argparse
import ast
import inspect
import json
import tomllib
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path

from llamawright import errors
from llamawright.build.failures import CLASSES
from llamawright.cli.arguments import make_parser
from llamawright.config import load_recipe, load_toolchains
from llamawright.config.request import NAMES
from llamawright.console import quantity
from llamawright.errors import ExitCode, LlamawrightError
from llamawright.model.recipe import ArchiveOrigin, GitOrigin, IndexOrigin, Option, Recipe
from llamawright.model.toolchain import ProvidedSet, Toolchains
from llamawright.verify.judge import HINTS

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "llamawright"
COMMON = ("json", "quiet", "offline", "store", "help")


def row(*cells: object) -> str:
    """Return one row of a table; a bar inside a cell would end it."""
    texts = (str(c).replace("|", "\\|").replace("\n", " ") for c in cells)
    return f"| {' | '.join(texts)} |"


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> Iterator[str]:
    """Yield a table with its head."""
    yield row(*head)
    yield row(*("---" for _ in head))
    yield from (row(*cells) for cells in rows)


def code(text: object) -> str:
    """Return a text in the type of code, or nothing for nothing."""
    return f"`{text}`" if str(text) else ""


@cache
def recipe() -> Recipe:
    """Return the recipe that comes with the project."""
    return load_recipe(ROOT / "recipes" / "llama.cpp.toml")


@cache
def toolchains() -> Toolchains:
    """Return the toolchain data."""
    return load_toolchains(ROOT / "toolchains")


def sessions() -> Iterator[str]:
    """Yield the nox sessions with what each does, in the order of ``nox -l``."""
    rows = []
    module = ast.parse((ROOT / "noxfile.py").read_text(encoding="utf-8"))
    for node in module.body:
        if isinstance(node, ast.FunctionDef) and node.decorator_list:
            call = node.decorator_list[0]
            keywords = call.keywords if isinstance(call, ast.Call) else []
            given = {k.arg: k.value.value for k in keywords if isinstance(k.value, ast.Constant)}
            name = given.get("name", node.name)
            if "venv_backend" in given:
                rows.append((code(name), (ast.get_docstring(node) or "").splitlines()[0]))
    yield from table(("session", "what it does"), rows)


def verbs() -> Iterator[str]:
    """Yield every verb of the command line with its arguments and flags."""
    yield "Every verb also knows:"
    yield ""
    parsers = dict(_subparsers(make_parser()))
    shared = [a for a in next(iter(parsers.values()))._actions if a.dest in COMMON]  # noqa: SLF001
    yield from table(("flag", "meaning"), ((_flag(a), a.help or "") for a in shared))
    for name, parser in parsers.items():
        yield from _verb(f"llamawright {name}", parser, level=2)


def _verb(name: str, parser: argparse.ArgumentParser, *, level: int) -> Iterator[str]:
    yield ""
    yield f"{'#' * level} {name}"
    yield ""
    inner = dict(_subparsers(parser))
    if parser.description:
        text = parser.description
        yield f"{text[0].upper()}{text[1:]}."
        yield ""
    own = [
        a
        for a in parser._actions  # noqa: SLF001 - argparse has no public way to list them
        if a.dest not in COMMON and not isinstance(a, argparse._SubParsersAction)  # noqa: SLF001
    ]
    if own:
        yield from table(("argument", "meaning"), ((_flag(a), a.help or "") for a in own))
    helps = _help_of_choices(parser)
    for word, sub in inner.items():
        sub.description = sub.description or helps.get(word)
        yield from _verb(f"{name} {word}", sub, level=level + 1)


def _subparsers(parser: argparse.ArgumentParser) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    for action in parser._actions:  # noqa: SLF001
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            yield from action.choices.items()


def _help_of_choices(parser: argparse.ArgumentParser) -> dict[str, str]:
    for action in parser._actions:  # noqa: SLF001
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            return {c.dest: c.help or "" for c in action._choices_actions}  # noqa: SLF001
    return {}


def _flag(action: argparse.Action) -> str:
    name = action.option_strings[-1] if action.option_strings else action.dest
    if action.choices and not action.option_strings:
        return f"`{name}`: {', '.join(code(c) for c in action.choices)}"
    takes_value = action.option_strings and action.nargs != 0
    value = action.metavar or action.dest.upper() if takes_value else ""
    required = " (required)" if action.required and action.option_strings else ""
    return code(f"{name} {value}".strip()) + required


def settings() -> Iterator[str]:
    """Yield the settings that a flag, a variable and the settings file may give."""
    parsers = dict(_subparsers(make_parser()))
    helps = {a.dest: a.help or "" for p in parsers.values() for a in p._actions}  # noqa: SLF001
    rows = (
        (code(f"--{n.replace('_', '-')}"), code(f"LLAMAWRIGHT_{n.upper()}"), code(n), helps[n])
        for n in NAMES
        if n != "backend"
    )
    yield from table(("flag", "variable", "in llamawright.toml", "meaning"), rows)


def exit_codes() -> Iterator[str]:
    """Yield the exit codes with their meaning."""
    by_code = {c.code: c for c in _error_classes()}
    fixed = {
        ExitCode.OK: "Everything asked for was done.",
        ExitCode.BUG: "A bug in llamawright itself; please report it.",
    }
    rows = []
    for value in ExitCode:
        name = value.name.lower().replace("_", "-")
        text = fixed.get(value) or (inspect.getdoc(by_code[value]) or "").splitlines()[0]
        rows.append((int(value), code(name), text))
    yield from table(("code", "name", "meaning"), rows)


def classes() -> Iterator[str]:
    """Yield the class words that the code itself gives its errors, by exit code."""
    known = {c.__name__: c for c in _error_classes()}
    found: dict[ExitCode, set[str]] = {}
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            name = node.func.id if _is_named_call(node) else ""  # type: ignore[attr-defined]
            if isinstance(node, ast.Call) and name in known:
                kinds = [k.value for k in node.keywords if k.arg == "kind"]
                words = {k.value for k in kinds if isinstance(k, ast.Constant)}
                found.setdefault(known[name].code, set()).update(map(str, words))
    rows = (
        (int(c), ", ".join(code(w) for w in sorted(words)))
        for c, words in sorted(found.items())
        if words
    )
    yield from table(("code", "classes"), rows)


def _is_named_call(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name)


def _error_classes() -> list[type[LlamawrightError]]:
    every = (c for _, c in inspect.getmembers(errors, inspect.isclass))
    return [c for c in every if issubclass(c, LlamawrightError) and c is not LlamawrightError]


def source_pin() -> Iterator[str]:
    """Yield the pinned source and every place that it can come from."""
    pin = recipe().source
    yield f"`{pin.upstream}` at `{pin.commit}` (build {pin.build_number}, llama {pin.version})."
    yield f"Tree digest: `{pin.tree}`."
    yield ""
    rows = []
    for origin in pin.origins:
        match origin:
            case IndexOrigin():
                size = quantity(origin.size, "bytes")
                rows.append(("index", code(origin.filename), size, code(origin.sha256)))
            case ArchiveOrigin():
                rows.append(("archive", origin.url, "", "by the tree digest"))
            case GitOrigin():
                rows.append(("git", f"{origin.url} at the commit", "", "by the tree digest"))
    yield from table(("origin", "what", "size", "pinned by"), rows)


def options() -> Iterator[str]:
    """Yield the CMake options of both builds."""
    yield from table(("option", "value", "why"), map(_option, recipe().options))
    for rule in recipe().backends:
        if rule.options:
            yield ""
            yield f"Only the {rule.backend} module:"
            yield ""
            yield from table(("option", "value", "why"), map(_option, rule.options))


def _option(option: Option) -> tuple[str, str, str]:
    return code(option.name), code(option.value) or "(empty)", option.reason


def capabilities() -> Iterator[str]:
    """Yield what a shader compiler can add, and what an artifact without it loses."""
    rows = (
        (code(c.name), code(c.extension), f"without it, {c.cost}")
        for rule in recipe().backends
        for c in rule.capabilities
    )
    yield from table(("capability", "extension", "cost"), rows)


def contents() -> Iterator[str]:
    """Yield what an artifact holds."""
    yield f"- programs: {', '.join(map(code, recipe().programs))}"
    yield f"- in the `-tests` archive: {', '.join(map(code, recipe().test_programs))}"
    yield f"- libraries: {', '.join(map(code, recipe().libraries))}"
    for rule in recipe().backends:
        yield f"- modules of {rule.backend}: {', '.join(map(code, rule.modules))}"


def proof() -> Iterator[str]:
    """Yield what proves an artifact: the model, the prompts and the limits."""
    known = recipe().verification
    size = quantity(known.model.size, "bytes")
    layers = f"{known.model.layers} layers"
    yield f"- model: {known.model.name}, {size}, {layers}, {known.model.license}"
    for prompt in known.prompts:
        expected = f", and the answer holds {code(prompt.expect)}" if prompt.expect else ""
        yield f"- {code(prompt.text)}: the first {prompt.tokens} tokens are the CPU's{expected}"
    for name, limit in (
        ("mean divergence from the CPU at most", known.max_mean_kld),
        ("same likeliest token in at least", known.min_top1),
    ):
        yield f"- {name} {limit.value:g}: {limit.reason}"
    seconds = f"list devices {known.probe_s:.0f}, load {known.load_s:.0f}"
    seconds += f", first token {known.first_token_s:.0f}, one program {known.total_s:.0f}"
    yield f"- limits in seconds: {seconds}"


def release_targets() -> Iterator[str]:
    """Yield what a release of the shipped recipe holds."""
    rule = recipe().release
    rows = (
        (
            code(t.name),
            t.kind,
            t.backend,
            t.floor,
            "; ".join(f"{e.state}: {e.reason}" for e in t.accept),
        )
        for t in (rule.targets if rule else ())
    )
    yield from table(("target", "kind", "backend", "floor", "accepted beside verified"), rows)


def verdict_failures() -> Iterator[str]:
    """Yield the classes of a failed proof with what to do."""
    yield from table(("class", "what to do"), ((code(k), v) for k, v in HINTS.items()))


def build_failures() -> Iterator[str]:
    """Yield the classes of a failed compile with what to do."""
    rows = ((code(c.kind), c.hint) for c in CLASSES)
    yield from table(("class", "what to do"), rows)


def sets() -> Iterator[str]:
    """Yield the pinned sets that can be provided without root."""
    yield from table(
        ("set", "for", "version", "platforms", "download", "files", "needs glibc", "licences"),
        map(_set, toolchains().sets),
    )


def _set(item: ProvidedSet) -> tuple[object, ...]:
    capped = any(f.capped for f in item.files)
    size = f"{'at most ' if capped else ''}{quantity(item.size, 'bytes')}"
    places = ", ".join(item.platforms)
    licences = ", ".join(item.licenses)
    return (
        code(item.name), item.role, item.version, places, size, len(item.files), item.glibc,
        licences,
    )  # fmt: skip


def limits() -> Iterator[str]:
    """Yield the least versions and the known-bad ones."""
    known = toolchains()
    least = ((m.name or m.role, f"{m.version} or newer", m.reason) for m in known.minimums)
    bad = ((b.role, f"not {b.versions}", f"{b.reason} ({b.link})") for b in known.known_bad)
    yield from table(("tool", "version", "why"), [*least, *bad])


def patches() -> Iterator[str]:
    """Yield the series of patches as its file tells it."""
    rows = []
    for path in sorted((ROOT / "patches").glob("*/series.toml")):
        series = tomllib.loads(path.read_text(encoding="utf-8"))
        entries = next((v for v in series.values() if isinstance(v, list)), [])
        rows += [(code(p["name"]), p["type"], p["reason"]) for p in entries]
    if rows:
        yield from table(("patch", "type", "reason"), rows)
    else:
        yield "The series holds no patch."


def schemas() -> Iterator[str]:
    """Yield the JSON schemas of what is written for other programs."""
    for path in sorted((ROOT / "docs" / "reference").glob("*.schema.json")):
        known = json.loads(path.read_text(encoding="utf-8"))
        text = " ".join(str(known.get("description", "")).split("\n\n")[0].split())
        yield f"- [{path.name}]({path.name}): {text or known.get('title', '')}".rstrip(": ")


BLOCKS: dict[str, Callable[[], Iterable[str]]] = {
    "sessions": sessions,
    "verbs": verbs,
    "settings": settings,
    "exit-codes": exit_codes,
    "classes": classes,
    "source-pin": source_pin,
    "options": options,
    "capabilities": capabilities,
    "contents": contents,
    "proof": proof,
    "release-targets": release_targets,
    "verdict-failures": verdict_failures,
    "build-failures": build_failures,
    "sets": sets,
    "limits": limits,
    "patches": patches,
    "schemas": schemas,
}
