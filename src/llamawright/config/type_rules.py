"""What a recipe says about types, repeated runs and single operations must make sense."""

from __future__ import annotations

import re

from llamawright.config import checks
from llamawright.config.document import Place, suggestion
from llamawright.model.platform import Backend
from llamawright.model.recipe import ModelType, OperationSet, TypeSource, TypeWork, Verification

# No program prints a table of fewer tokens than this; upstream compares the later half.
LEAST_CONTEXT = 4
TYPE_NAME = re.compile(r"[A-Z][A-Z0-9_]*")
OPERATION_NAME = re.compile(r"[A-Z][A-Z0-9_]*")


def check_types(verification: Verification, place: Place) -> None:
    """Refuse types that cannot be made, work that is none, patterns that are not patterns."""
    for number, kind in enumerate(verification.types):
        _check_type(kind, verification, place.at("types").at(number))
    if verification.synthetic is not None:
        spot = place.at("synthetic")
        _check_work(verification.synthetic.hardware, spot.at("hardware"))
        _check_work(verification.synthetic.software, spot.at("software"))
    if verification.max_repeat is not None:
        limit = place.at("max_repeat").at("value")
        checks.check_positive(verification.max_repeat.value, limit)
    for number, operations in enumerate(verification.operations):
        _check_operations(operations, place.at("operations").at(number))


def _check_type(kind: ModelType, verification: Verification, place: Place) -> None:
    checks.check_positive(kind.max_mean_kld.value, place.at("max_mean_kld").at("value"))
    if not TYPE_NAME.fullmatch(kind.name):
        # The name becomes part of a file's name and an argument of a program.
        raise place.at("name").refuse(
            f"'{kind.name}' is no type of llama-quantize", hint="e.g. Q8_0", kind="bad-value"
        )
    _check_batches(kind.software_batches, place.at("software_batches"))
    words = [str(b) for b in Backend]
    for name, limit in kind.backends.items():
        spot = place.at("backends").at(name)
        if name not in words:
            raise spot.refuse(
                f"there is no backend '{name}'", hint=suggestion(name, words), kind="unknown-key"
            )
        checks.check_positive(limit.value, spot.at("value"))
    synthetic = kind.source is TypeSource.SYNTHETIC
    if synthetic and verification.synthetic is None:
        raise place.at("source").refuse(
            f"{kind.name} is made from the synthetic model, and nothing says how much to compute",
            hint="add [verification.synthetic.hardware] and [verification.synthetic.software]",
            kind="bad-value",
        )
    if kind.importance and not synthetic:
        raise place.at("importance").refuse(
            "the pinned model has no importance matrix",
            hint='make this type of the synthetic model: source = "synthetic"',
            kind="bad-value",
        )


def _check_work(work: TypeWork, place: Place) -> None:
    checks.check_positive(work.chunks, place.at("chunks"))
    if work.context < LEAST_CONTEXT:
        raise place.at("context").refuse(
            f"{work.context} tokens are too few to compare",
            hint=f"at least {LEAST_CONTEXT}",
            kind="bad-value",
        )
    if not work.batches:
        raise place.at("batches").refuse("no batch size", hint="e.g. [32, 1]", kind="bad-value")
    _check_batches(work.batches, place.at("batches"))


def _check_batches(batches: tuple[int, ...], place: Place) -> None:
    for number, batch in enumerate(batches):
        checks.check_positive(batch, place.at(number))
    if len(set(batches)) < len(batches):
        raise place.refuse("a batch size is there twice", kind="bad-value")


def _check_operations(operations: OperationSet, place: Place) -> None:
    checks.check_positive(operations.seconds, place.at("seconds"))
    if not operations.names:
        raise place.at("names").refuse("no operation", hint='e.g. ["ROPE"]', kind="bad-value")
    for number, name in enumerate(operations.names):
        if not OPERATION_NAME.fullmatch(name):
            raise (
                place.at("names")
                .at(number)
                .refuse(
                    f"'{name}' is no name of an operation", hint="e.g. MUL_MAT", kind="bad-value"
                )
            )
    try:
        re.compile(operations.params)
    except re.error as error:
        raise place.at("params").refuse(
            f"this is no regular expression: {error}", kind="bad-value"
        ) from error
