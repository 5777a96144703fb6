"""What was claimed against what was seen, piece by piece."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from llamawright.model.verdict import Device, Numbers, Outcome
from llamawright.verify import evidence
from llamawright.verify.evidence import Evidence, Expected, Kind, Observed
from llamawright.verify.logs import MIB, LoadedBackend, LoadFacts

GPU = Device(
    id="Vulkan1", name="GPU", backend="vulkan", memory=1, software=False, pci="0000:01:00.0"
)
LVP = replace(GPU, id="Vulkan0", name="llvmpipe", software=True, pci="")
EXPECTED = Expected(device=GPU, layers=31, weights=100 * MIB)
HONEST = LoadFacts(
    offloaded=(31, 31), assigned={"Vulkan1": 31},
    weights={"Vulkan1": 100 * MIB, "CPU_Mapped": 30 * MIB},
)  # fmt: skip


def outcomes(found: tuple[Evidence, ...]) -> dict[Kind, Outcome]:
    return {e.kind: e.check.outcome for e in found}


def placed(facts: LoadFacts, expected: Expected = EXPECTED) -> dict[Kind, Outcome]:
    return outcomes(evidence.placement([("run", facts)], expected))


def test_an_honest_log_passes() -> None:
    assert set(placed(HONEST).values()) == {Outcome.PASS}


@pytest.mark.parametrize(
    ("changes", "kind", "outcome"),
    [
        ({"offloaded": (30, 31)}, Kind.OFFLOADED, Outcome.FAIL),
        ({"offloaded": (30, 30)}, Kind.OFFLOADED, Outcome.FAIL),
        ({"offloaded": (0, 31)}, Kind.OFFLOADED, Outcome.FAIL),
        ({"offloaded": None}, Kind.OFFLOADED, Outcome.UNKNOWN),
        ({"offloaded": None, "no_gpu": True}, Kind.OFFLOADED, Outcome.FAIL),
        ({"no_gpu": True}, Kind.OFFLOADED, Outcome.FAIL),
        ({"assigned": {"Vulkan1": 30, "CPU": 1}}, Kind.ASSIGNED, Outcome.FAIL),
        ({"assigned": {"Vulkan0": 31}}, Kind.ASSIGNED, Outcome.FAIL),
        ({"assigned": {"Vulkan1": 31, "Vulkan0": 1}}, Kind.ASSIGNED, Outcome.FAIL),
        ({"assigned": {}}, Kind.ASSIGNED, Outcome.UNKNOWN),
        ({"weights": {"CPU_Mapped": 130 * MIB}}, Kind.WEIGHTS, Outcome.FAIL),
        ({"weights": {"Vulkan10": 100 * MIB}}, Kind.WEIGHTS, Outcome.FAIL),
        ({"weights": {"Vulkan1": 89 * MIB}}, Kind.WEIGHTS, Outcome.FAIL),
        ({"weights": {"Vulkan1": 91 * MIB}}, Kind.WEIGHTS, Outcome.PASS),
        ({"weights": {}}, Kind.WEIGHTS, Outcome.UNKNOWN),
    ],
)
def test_each_claim_is_judged_alone(
    changes: dict[str, object], kind: Kind, outcome: Outcome
) -> None:
    found = placed(replace(HONEST, **changes))  # type: ignore[arg-type]
    assert found[kind] is outcome


def test_of_many_runs_the_worst_counts_and_is_named() -> None:
    bad = replace(HONEST, offloaded=(4, 31))
    found = evidence.placement([("one", HONEST), ("two", bad), ("three", HONEST)], EXPECTED)
    offloaded = next(e for e in found if e.kind is Kind.OFFLOADED)
    assert offloaded.check.outcome is Outcome.FAIL
    assert offloaded.check.seen == "4/31 in 'two'"
    assigned = next(e for e in found if e.kind is Kind.ASSIGNED)
    assert assigned.check.seen == "31 on Vulkan1 in each of 3 runs"
    assert offloaded.share == 1.0


def test_a_cpu_artifact_counts_all_its_own_buffers() -> None:
    expected = Expected(device=replace(GPU, id="CPU"), layers=31, weights=100 * MIB, cpu=True)
    facts = LoadFacts(
        assigned={"CPU": 31}, weights={"CPU_Mapped": 60 * MIB, "CPU_REPACK": 40 * MIB}
    )
    found = placed(facts, expected)
    assert found == {Kind.ASSIGNED: Outcome.PASS, Kind.WEIGHTS: Outcome.PASS}


SEEN = Observed(
    libraries=frozenset({"/a/bin/libggml-vulkan.so", "/usr/lib/libGLX_nvidia.so.580"}),
    settled=True,
    memory=120 * MIB,
    memory_source="nvidia-smi",
    modules=("/a/bin/libggml-vulkan.so",),
)


def test_what_the_system_shows_passes() -> None:
    found = outcomes(evidence.physical(SEEN, EXPECTED))
    assert found == {
        Kind.MODULE: Outcome.PASS, Kind.DRIVER: Outcome.PASS, Kind.MEMORY: Outcome.PASS,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "kind", "outcome"),
    [
        ({"modules": ("/b/bin/libggml-vulkan.so",)}, Kind.MODULE, Outcome.FAIL),
        ({"libraries": frozenset({"/x/libc.so.6"})}, Kind.MODULE, Outcome.FAIL),
        ({"libraries": frozenset({"/x/libc.so.6"})}, Kind.DRIVER, Outcome.FAIL),
        ({"libraries": frozenset({"/usr/lib/libvulkan_lvp.so"})}, Kind.DRIVER, Outcome.FAIL),
        ({"memory": 89 * MIB}, Kind.MEMORY, Outcome.FAIL),
        ({"memory": 0}, Kind.MEMORY, Outcome.FAIL),
        ({"memory": -5}, Kind.MEMORY, Outcome.FAIL),
        ({"memory": None, "memory_source": "nobody tells"}, Kind.MEMORY, Outcome.UNKNOWN),
    ],
)
def test_what_the_system_does_not_show(
    changes: dict[str, object], kind: Kind, outcome: Outcome
) -> None:
    seen = replace(SEEN, **changes)  # type: ignore[arg-type]
    assert outcomes(evidence.physical(seen, EXPECTED))[kind] is outcome


def test_a_process_that_ended_too_soon_is_unknown_and_counts() -> None:
    seen = replace(SEEN, libraries=frozenset(), settled=False)
    module, driver, _memory = evidence.physical(seen, EXPECTED)
    for piece in (module, driver):
        assert piece.check.outcome is Outcome.UNKNOWN
        assert not piece.optional
        assert "ended before" in piece.check.seen


def test_a_system_without_maps_is_unknown_and_does_not_count() -> None:
    seen = replace(SEEN, libraries=None, settled=False, memory=None, memory_source="nobody")
    found = evidence.physical(seen, EXPECTED)
    assert {e.check.outcome for e in found} == {Outcome.UNKNOWN}
    assert all(e.optional for e in found)


def test_a_software_device_needs_the_driver_that_was_given() -> None:
    expected = replace(EXPECTED, device=LVP)
    mine = frozenset({*SEEN.modules, "/given/libvulkan_lvp.so"})
    given = replace(SEEN, libraries=mine, driver_root="/given")
    assert outcomes(evidence.physical(given, expected))[Kind.DRIVER] is Outcome.PASS
    other = replace(given, driver_root="/elsewhere")
    assert outcomes(evidence.physical(other, expected))[Kind.DRIVER] is Outcome.FAIL
    system = replace(given, driver_root="")
    assert outcomes(evidence.physical(system, expected))[Kind.DRIVER] is Outcome.PASS


@pytest.mark.parametrize("name", ["llvmpipe-0", "lavapipe-3", "lp_cs-1", "SwiftShader"])
def test_a_card_for_which_a_software_renderer_computes_is_none(name: str) -> None:
    lying = replace(SEEN, threads=frozenset({"llama-completio", name}))
    (piece,) = [e for e in evidence.physical(lying, EXPECTED) if e.kind is Kind.DRIVER]
    assert piece.check.outcome is Outcome.FAIL
    assert name in piece.check.seen


def test_software_threads_are_seen_before_anything_is_settled() -> None:
    early = replace(SEEN, libraries=frozenset(), settled=False, threads=frozenset({"llvmpipe-0"}))
    assert outcomes(evidence.physical(early, EXPECTED))[Kind.DRIVER] is Outcome.FAIL


def test_honest_threads_are_no_reason() -> None:
    names = frozenset({"llama-completio", "vk-gpu-worker", "cuda-EvtHandlr", "lp"})
    honest = replace(SEEN, threads=names)
    assert outcomes(evidence.physical(honest, EXPECTED))[Kind.DRIVER] is Outcome.PASS
    software = replace(EXPECTED, device=LVP)
    own = frozenset({*SEEN.modules, "/usr/lib/libvulkan_lvp.so"})
    llvmpipe = replace(SEEN, libraries=own, threads=frozenset({"llvmpipe-0"}))
    assert outcomes(evidence.physical(llvmpipe, software))[Kind.DRIVER] is Outcome.PASS


def test_a_cpu_artifact_has_no_driver_and_no_device_memory() -> None:
    expected = replace(EXPECTED, cpu=True)
    assert [e.kind for e in evidence.physical(SEEN, expected)] == [Kind.MODULE]


@pytest.mark.parametrize(
    ("pci", "name", "outcome", "optional"),
    [
        ("0000:01:00.0", "GPU", Outcome.PASS, False),
        ("", "GPU", Outcome.PASS, False),
        ("0000:02:00.0", "GPU", Outcome.FAIL, False),
        ("0000:01:00.0", "Other", Outcome.FAIL, False),
        ("", "", Outcome.UNKNOWN, True),
        ("0000:02:00.0", "", Outcome.FAIL, True),
    ],
)
def test_artifact_and_driver_must_speak_of_one_device(
    pci: str, name: str, outcome: Outcome, *, optional: bool
) -> None:
    piece = evidence.identity(GPU, pci, name, "nobody can be asked")
    assert (piece.check.outcome, piece.optional) == (outcome, optional)


def test_a_known_answer() -> None:
    assert evidence.answer("prompt 1", " Paris.\n\n", "Paris").check.outcome is Outcome.PASS
    piece = evidence.answer("prompt 1", "  \n", "Paris")
    assert (piece.check.outcome, piece.check.seen) == (Outcome.FAIL, "nothing was printed")
    assert len(evidence.answer("p", "x" * 500, "Paris").check.seen) < 100


@pytest.mark.parametrize(
    ("wanted", "seen", "outcome"),
    [
        (" Paris.", " Paris.", Outcome.PASS),
        (" Paris.", " Paris. ", Outcome.FAIL),
        (" Paris.", "", Outcome.FAIL),
        ("", "", Outcome.FAIL),
        ("  \n", "  \n", Outcome.FAIL),
    ],
)
def test_greedy_text_must_be_the_same_to_the_letter(
    wanted: str, seen: str, outcome: Outcome
) -> None:
    assert evidence.tokens("prompt 1", wanted, seen, pinned=True).check.outcome is outcome


def test_another_models_text_may_differ() -> None:
    piece = evidence.tokens("prompt 1", " a", " b", pinned=False)
    assert (piece.check.outcome, piece.optional) == (Outcome.UNKNOWN, True)
    assert evidence.tokens("p", " a", " a", pinned=False).check.outcome is Outcome.PASS


def numbers(kld: float = 0.005, top1: float = 0.95, chunks: int = 2) -> Numbers:
    return Numbers(batch=32, mean_kld=kld, top1=top1, positions=126, per_chunk=(kld,) * chunks)


@pytest.mark.parametrize(
    ("table", "divergence", "agreement"),
    [
        (numbers(), Outcome.PASS, Outcome.PASS),
        (numbers(kld=0.02), Outcome.PASS, Outcome.PASS),
        (numbers(kld=0.0201), Outcome.FAIL, Outcome.PASS),
        (numbers(kld=-0.00001), Outcome.PASS, Outcome.PASS),
        (numbers(kld=-0.5), Outcome.FAIL, Outcome.PASS),
        (numbers(top1=0.75), Outcome.PASS, Outcome.PASS),
        (numbers(top1=0.74), Outcome.PASS, Outcome.FAIL),
        (numbers(kld=math.nan), Outcome.FAIL, Outcome.FAIL),
        (numbers(kld=math.inf), Outcome.FAIL, Outcome.FAIL),
        (numbers(top1=math.nan), Outcome.FAIL, Outcome.FAIL),
        (replace(numbers(), per_chunk=(0.001, math.nan)), Outcome.FAIL, Outcome.FAIL),
        (numbers(chunks=1), Outcome.UNKNOWN, Outcome.UNKNOWN),
        (numbers(chunks=3), Outcome.UNKNOWN, Outcome.UNKNOWN),
        (None, Outcome.UNKNOWN, Outcome.UNKNOWN),
    ],
)
def test_probabilities_are_held_to_both_limits(
    table: Numbers | None, divergence: Outcome, agreement: Outcome
) -> None:
    first, second = evidence.divergence(table, "batch 32", 2, most=0.02, least=0.75)
    assert (first.check.outcome, second.check.outcome) == (divergence, agreement)
    assert not first.optional


def test_a_reference_with_a_device_in_it_is_none() -> None:
    cpu = LoadFacts(backends=(LoadedBackend(name="CPU", path="x"),), assigned={"CPU": 31})
    assert evidence.reference([cpu], ["Vulkan"]).check.outcome is Outcome.PASS
    gpu = replace(cpu, backends=(LoadedBackend(name="Vulkan", path="x"),))
    assert evidence.reference([cpu, gpu], ["Vulkan"]).check.outcome is Outcome.FAIL
    away = replace(cpu, assigned={"CPU": 30, "CUDA0": 1})
    piece = evidence.reference([away], [])
    assert (piece.check.outcome, piece.check.seen) == (Outcome.FAIL, "layers on CUDA0")
    assert evidence.reference([], []).check.outcome is Outcome.UNKNOWN
    assert evidence.reference([LoadFacts()], []).check.outcome is Outcome.UNKNOWN


def test_the_artifacts_own_list_must_hold_the_device() -> None:
    assert evidence.listed(GPU, [LVP, GPU]).check.outcome is Outcome.PASS
    assert evidence.listed(GPU, [LVP]).check.outcome is Outcome.FAIL
    assert evidence.listed(GPU, []).check.seen == "none"
    renamed = replace(GPU, id="Vulkan2")
    assert evidence.listed(GPU, [renamed]).check.outcome is Outcome.FAIL
