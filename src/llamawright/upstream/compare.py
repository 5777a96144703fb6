"""Two surveyed trees compared, and what of it touches the recipe. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from llamawright.model.bump import Change, Weight
from llamawright.model.recipe import Recipe
from llamawright.upstream.survey import ENTERED, Survey

OPTIONS = "CMake options"
_TOPICS_TO_LOOK_AT = frozenset(
    {
        "least CMake",
        "C and C++ standard",
        "Vulkan header versions asked for",
        "shader compiler tests",
        "CUDA toolkit versions asked for",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What the recipe takes for granted: option names, targets, files below the tree's root."""

    options: frozenset[str]
    targets: frozenset[str]
    tests: frozenset[str]
    files: tuple[str, ...]

    @classmethod
    def of(cls, recipe: Recipe) -> Expected:
        """Return what ``recipe`` names."""
        groups = (recipe.options, recipe.test_options, *(b.options for b in recipe.backends))
        capabilities = [c.feature_test for b in recipe.backends for c in b.capabilities]
        return cls(
            options=frozenset(o.name for group in groups for o in group),
            targets=frozenset((*recipe.programs, *recipe.test_programs, *recipe.libraries)),
            tests=frozenset(capabilities),
            files=tuple(dict.fromkeys((*recipe.source.include, *recipe.licenses))),
        )


def compare_trees(
    old: Survey, new: Survey, expected: Expected, missing: tuple[str, ...]
) -> tuple[Change, ...]:
    """Return every difference; ``missing`` are expected files that the new tree lacks."""
    found = [
        *_options(old, new, expected),
        *(c for topic in new.facts for c in _facts(topic, old, new, expected)),
        *(
            Change(
                topic="files that the recipe names", name=name, before="there", after="",
                weight=Weight.BLOCKS, why="the recipe names it, and it is gone",
            )
            for name in missing
        ),
    ]  # fmt: skip
    order = list(Weight)
    return tuple(sorted(found, key=lambda c: (order.index(c.weight), c.topic, c.name)))


def _options(old: Survey, new: Survey, expected: Expected) -> Iterator[Change]:
    for change in _differences(OPTIONS, old.options, new.options):
        ours = change.name in expected.options
        if not change.before:
            yield replace(change, weight=Weight.LOOK, why="new: does its default fit a release?")
        elif not change.after:
            # It may still be read: then it has only lost its declaration.
            gone = ours and change.name not in new.mentioned
            why = "the recipe sets it, and it is gone: CMake would ignore it" if gone else ""
            yield replace(change, weight=Weight.BLOCKS if gone else Weight.INFO, why=why)
        else:
            why = "the recipe sets it" if ours else "the recipe leaves it to upstream"
            yield replace(change, weight=Weight.INFO if ours else Weight.LOOK, why=why)
    for name in sorted(expected.options & (old.mentioned - new.mentioned) - old.options.keys()):
        yield Change(
            topic=OPTIONS, name=name, before="read", after="", weight=Weight.BLOCKS,
            why="the recipe sets it, and nothing reads it any more",
        )  # fmt: skip


def _facts(topic: str, old: Survey, new: Survey, expected: Expected) -> Iterator[Change]:
    needed = expected.targets | expected.tests
    for change in _differences(topic, old.facts.get(topic, {}), new.facts[topic]):
        if not change.after and change.name in needed:
            yield replace(change, weight=Weight.BLOCKS, why="the recipe names it, and it is gone")
        elif topic == ENTERED:
            lacks = change.after not in {"", "there"}
            why = "add it to `include`, or switch it off" if lacks else ""
            yield replace(change, weight=Weight.LOOK if lacks else Weight.INFO, why=why)
        elif topic in _TOPICS_TO_LOOK_AT:
            yield replace(change, weight=Weight.LOOK, why=_advice(topic, change))
        elif change.before and change.after and topic.startswith("ggml types"):
            why = "its number changed: files of today would be read as another type"
            yield replace(change, weight=Weight.LOOK, why=why)
        else:
            yield change


def _advice(topic: str, change: Change) -> str:
    if topic == "shader compiler tests" and not change.before:
        return "a new capability: add it to [[backends.vulkan.capabilities]]"
    if topic.startswith("Vulkan"):
        return "look whether min_headers still holds"
    if topic == "least CMake":
        return "look whether the tool environment's CMake is new enough"
    return ""


def _differences(topic: str, a: Mapping[str, str], b: Mapping[str, str]) -> Iterator[Change]:
    for name in sorted(a.keys() | b.keys()):
        before, after = (_shown(side, name) for side in (a, b))
        if before != after:
            yield Change(topic=topic, name=name, before=before, after=after)


def _shown(side: Mapping[str, str], name: str) -> str:
    """Return a value that is never empty for a name that is there."""
    return (side[name] or "(empty)") if name in side else ""
