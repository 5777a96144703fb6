"""Make the failing case smaller, one quantity after the other, as long as there is time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from llamawright.model.investigation import Reduction
from llamawright.model.platform import Backend
from llamawright.verify import commands
from llamawright.verify.investigate_case import (
    BATCH,
    CHUNKS,
    DEVICE,
    LAYERS,
    PROMPT,
    TOKENS,
    Case,
    Kind,
    Shape,
    number_of,
    value_of,
)
from llamawright.verify.investigate_lab import Lab
from llamawright.verify.investigate_search import Found, bisect, first

# Made by the artifact's own quantiser, each with kernels of its own on every backend.
TYPES = ("F16", "Q8_0", "Q4_0", "Q4_K_M", "IQ4_NL")
# Upstream's own switches, by ggml-vulkan.cpp and ggml-cuda of commit 0c1e57098: a failure that
# goes away with one of them is in the code that it leaves out.
SWITCHES = {
    Backend.VULKAN: (
        "GGML_VK_DISABLE_FUSION", "GGML_VK_DISABLE_GRAPH_OPTIMIZE", "GGML_VK_DISABLE_COOPMAT",
        "GGML_VK_DISABLE_COOPMAT2", "GGML_VK_DISABLE_INTEGER_DOT_PRODUCT", "GGML_VK_DISABLE_F16",
        "GGML_VK_DISABLE_MMVQ", "GGML_VK_DISABLE_ASYNC", "GGML_VK_SERIALIZE_SUBMISSIONS",
    ),
    Backend.CUDA: (
        "GGML_CUDA_DISABLE_GRAPHS", "GGML_CUDA_DISABLE_FUSION", "CUDA_LAUNCH_BLOCKING",
        "GGML_CUDA_NO_PINNED",
    ),
}  # fmt: skip
FLASH = ("-fa", "off")


def reductions(
    lab: Lab, backend: Backend, *, layers: int, quantiser: Path | None, model: Path
) -> Iterator[tuple[Shape, Reduction]]:
    """Yield each step with the smallest shape that is known by then to fail.

    ``layers`` is how many there are to offload; without a ``quantiser`` no other model types
    are tried.
    """
    shape = Shape()
    if lab.case.on_device and _has_device(lab.case):
        yield from ((shape, step) for step in _on_cpu(lab))
    for reduced, step in _quantities(lab, layers):
        shape = reduced
        yield shape, step
    if lab.case.on_device:
        yield from ((shape, step) for step in _switches(lab, backend, shape))
        if quantiser is not None:
            yield from ((shape, step) for step in _types(lab, shape, quantiser, model))


def _quantities(lab: Lab, layers: int) -> Iterator[tuple[Shape, Reduction]]:
    """Yield the shape after each quantity; what cannot fail smaller stays as it was."""
    shape = Shape()
    argv = lab.case.argv
    if number_of(argv, TOKENS) > 1:
        shape, step = _numbers(lab, shape, TOKENS, (1, number_of(argv, TOKENS)))
        yield shape, step
    if number_of(argv, CHUNKS) > 1:
        shape, step = _numbers(lab, shape, CHUNKS, (1, number_of(argv, CHUNKS)))
        yield shape, step
    if value_of(argv, PROMPT) and lab.case.kind is not Kind.NUMBERS:
        shape, step = _prompt(lab, shape)
        yield shape, step
    if lab.case.on_device and number_of(argv, BATCH) > 1:
        shape, step = _numbers(lab, shape, BATCH, powers(number_of(argv, BATCH)))
        yield shape, step
    if lab.case.on_device and _has_device(lab.case) and layers:
        shape, step = _layers(lab, shape, layers)
        yield shape, step


def powers(most: int) -> tuple[int, ...]:
    """Return 1, 2, 4 … up to a number, which is the last one whether a power or not."""
    return (*(1 << n for n in range(most.bit_length()) if 1 << n < most), most)


def with_number(shape: Shape, flag: str, value: int) -> Shape:
    """Return a shape with one of its numbers set."""
    match flag:
        case "-n":
            return replace(shape, tokens=value)
        case "-ub":
            return replace(shape, batch=value)
        case "--chunks":
            return replace(shape, chunks=value)
        case "-ngl":
            return replace(shape, layers=value)
        case _:
            raise AssertionError(flag)


NAMES = {
    TOKENS: "tokens generated", BATCH: "batch (-ub)", CHUNKS: "chunks", LAYERS: "layers (-ngl)",
}  # fmt: skip
LABELS = {TOKENS: "tokens", BATCH: "batch", CHUNKS: "chunks"}


def _numbers(lab: Lab, shape: Shape, flag: str, values: Sequence[int]) -> tuple[Shape, Reduction]:
    def fails(value: int) -> bool | None:
        return lab.fails(f"{LABELS[flag]} {value}", with_number(shape, flag, value))

    found = first(values, fails)
    return with_number(shape, flag, found.least), _step(NAMES[flag], str(values[-1]), found)


def _layers(lab: Lab, shape: Shape, layers: int) -> tuple[Shape, Reduction]:
    def fails(value: int) -> bool | None:
        return lab.fails(f"layers {value}", replace(shape, layers=value))

    found = bisect(range(layers + 1), fails)
    step = _step(NAMES[LAYERS], f"{value_of(lab.case.argv, LAYERS)} (all)", found)
    return replace(shape, layers=found.least), step


def _prompt(lab: Lab, shape: Shape) -> tuple[Shape, Reduction]:
    words = value_of(lab.case.argv, PROMPT).split()

    def text(count: int) -> str:
        return " ".join(words[:count])

    def fails(count: int) -> bool | None:
        return lab.fails(f"prompt of {count} words", replace(shape, prompt=text(count)))

    found = bisect(range(1, len(words) + 1), fails)
    step = _step("prompt, words", str(len(words)), found)
    least = text(found.least) if found.least < len(words) else None
    return replace(shape, prompt=least), replace(step, told=f"{text(found.least)!r}")


def _step(name: str, before: str, found: Found[int]) -> Reduction:
    unsure = "" if found.sure else "not looked at to the end"
    passes = "" if found.passes is None else str(found.passes)
    return Reduction(name=name, before=before, least=str(found.least), passes=passes, told=unsure)


def _has_device(case: Case) -> bool:
    return LAYERS in case.argv and DEVICE in case.argv


def _on_cpu(lab: Lab) -> Iterator[Reduction]:
    """Ask whether the device is needed at all."""
    answer = lab.fails("on the CPU", Shape(device="none", layers=0))
    if answer is None:
        return
    told = "fails on the CPU too" if answer else "passes on the CPU"
    yield Reduction(name="device", before=value_of(lab.case.argv, DEVICE),
                    least="none" if answer else "needed", told=told)  # fmt: skip


def _switches(lab: Lab, backend: Backend, shape: Shape) -> Iterator[Reduction]:
    names = SWITCHES.get(backend, ())
    cures, fails, unsure = list[str](), list[str](), list[str]()
    tries = [(f"{n}=1", replace(shape, variables=((n, "1"),))) for n in names]
    if backend in SWITCHES:
        tries.append((" ".join(FLASH), replace(shape, flags=FLASH)))
    for name, changed in tries:
        answer = lab.fails(f"with {name}", changed)
        if answer is False:
            # A failure that comes now and then must not be taken for one that was cured.
            answer = lab.fails(f"with {name}, again", changed)
        (unsure if answer is None else fails if answer else cures).append(name)
    if cures or fails:
        yield Reduction(
            name="switches",
            before="none set",
            least=f"{len(fails)} change nothing",
            passes=", ".join(cures),
            told=f"fails with: {', '.join(fails) or 'none of them'}{_unsure(unsure)}",
        )


def _types(lab: Lab, shape: Shape, quantiser: Path, model: Path) -> Iterator[Reduction]:
    """Make other types of the model, and try the smallest case with each."""
    passed, failed, unsure = list[str](), list[str](), list[str]()
    for kind in TYPES:
        made = lab.work / f"{kind}.gguf"
        argv = commands.requantise(quantiser, model, made, kind)
        done = lab.run(f"make {kind}", argv, lab.case.reference_env or lab.case.env,
                       on_device=False, judged=False)  # fmt: skip
        if done is None or not done.clean:
            unsure.append(kind)
            continue
        answer = lab.fails(f"model type {kind}", replace(shape, model=made))
        (unsure if answer is None else failed if answer else passed).append(kind)
        made.unlink(missing_ok=True)
        base = lab.bases.pop(made.name, None)
        if base is not None:
            base.unlink(missing_ok=True)
    if passed or failed:
        yield Reduction(
            name="model type",
            before="as given",
            least=", ".join(failed) or "only as given",
            passes=", ".join(passed),
            told=_unsure(unsure).removeprefix("; "),
        )


def _unsure(names: Sequence[str]) -> str:
    return f"; not told in the time: {', '.join(names)}" if names else ""
