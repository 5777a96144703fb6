"""Rules on the ``[release]`` table: names, exemptions with reasons, variants that fit."""

from __future__ import annotations

import re
from collections.abc import Collection

from llamawright.config import checks
from llamawright.config.document import Place, suggestion
from llamawright.model.cuda import parse_code
from llamawright.model.platform import Backend
from llamawright.model.release import ReleaseRule, ReleaseTarget, VariantRule

LABEL = re.compile(r"[0-9a-z._]+")
NAMESPACE = re.compile(r"[a-z0-9_]+")
PROPERTY = re.compile(r"([a-z0-9_]+) :: ([a-z0-9_]+) :: ([a-z0-9_.]+)")
FLOOR = re.compile(r"manylinux_2_[0-9]{1,3}")
NULL = "null"


def check_release(rule: ReleaseRule, backends: Collection[str], place: Place) -> None:
    """Refuse what cannot be released, with the line that says it."""
    if not rule.targets:
        raise place.refuse(
            "the release has no target", hint="add [[release.targets]]", kind="bad-value"
        )
    names = [t.name for t in rule.targets]
    for number, target in enumerate(rule.targets):
        spot = place.at("targets").at(number)
        if names.index(target.name) != number:
            raise spot.at("name").refuse(f"'{target.name}' is there twice", kind="bad-value")
        _check_target(target, backends, spot)
    _check_variants(rule, place)


def _check_target(target: ReleaseTarget, backends: Collection[str], place: Place) -> None:
    checks.check_name(target.name, place.at("name"))
    if target.backend not in backends:
        raise place.at("backend").refuse(
            f"this recipe has no backend '{target.backend}'",
            hint=suggestion(str(target.backend), backends),
            kind="bad-value",
        )
    if target.archs and target.backend is not Backend.CUDA:
        raise place.at("archs").refuse(f"{target.backend} has no CUDA code", kind="bad-value")
    if target.floor and (target.backend is Backend.CUDA or not FLOOR.fullmatch(target.floor)):
        raise place.at("floor").refuse(
            f"'{target.floor}' is no floor of a {target.backend} target",
            hint="manylinux_2_28, for the CPU and for Vulkan",
            kind="bad-value",
        )
    for number, code in enumerate(target.archs):
        if parse_code(code) is None:
            raise (
                place.at("archs")
                .at(number)
                .refuse(
                    f"'{code}' is no CUDA device code",
                    hint="e.g. 61, 89, 90-virtual",
                    kind="bad-value",
                )
            )
    for number, exemption in enumerate(target.accept):
        if not exemption.reason.strip():
            raise (
                place.at("accept")
                .at(number)
                .at("reason")
                .refuse(
                    "an exemption needs its reason",
                    why="it is printed in the release notes beside the verdict",
                    kind="bad-value",
                )
            )


def _check_variants(rule: ReleaseRule, place: Place) -> None:
    namespaces = [p.namespace for p in rule.providers]
    for number, namespace in enumerate(namespaces):
        if not NAMESPACE.fullmatch(namespace) or namespaces.index(namespace) != number:
            raise (
                place.at("providers")
                .at(number)
                .at("namespace")
                .refuse(
                    f"'{namespace}' is no namespace, or is there twice",
                    hint="lower-case letters, digits and _",
                    kind="bad-value",
                )
            )
    labels = [v.label for v in rule.variants]
    for number, variant in enumerate(rule.variants):
        spot = place.at("variants").at(number)
        known = LABEL.fullmatch(variant.label) and labels.index(variant.label) == number
        if not known or variant.label == NULL:
            raise spot.at("label").refuse(
                f"'{variant.label}' cannot be a variant's label",
                why="it is there once, of lower-case letters, digits, . and _, and not 'null'",
                kind="bad-value",
            )
        _check_properties(variant, namespaces, spot.at("properties"))


def _check_properties(variant: VariantRule, namespaces: Collection[str], place: Place) -> None:
    if not variant.properties:
        raise place.refuse("only the null variant has no property", kind="bad-value")
    for number, text in enumerate(variant.properties):
        match = PROPERTY.fullmatch(text)
        if match is None:
            raise place.at(number).refuse(
                f"'{text}' is no variant property",
                hint="write it as namespace :: feature :: value",
                kind="bad-value",
            )
        if match.group(1) not in namespaces:
            raise place.at(number).refuse(
                f"no provider answers for '{match.group(1)}'",
                hint="add [[release.providers]] with that namespace",
                kind="bad-value",
            )
