"""Real logs to facts; every fixture is the output of upstream's own programs."""

from __future__ import annotations

import math

import pytest

from llamawright.verify.logs import (
    MIB,
    failure_reason,
    read_bench,
    read_devices,
    read_load,
    read_numbers,
    strip_prefix,
)
from llamawright.verify.patterns import (
    BUILD_11312,
    DRIVER_LIBRARIES,
    PATTERN_SETS,
    SOFTWARE_LIBRARIES,
    SOFTWARE_NAMES,
    patterns_for,
)
from verify_kit import GOLDEN


def golden(name: str) -> str:
    return (GOLDEN / name).read_text(encoding="utf-8")


def load(name: str) -> object:
    return read_load(golden(name).splitlines(), BUILD_11312)


def test_the_h200_lists_itself_as_hardware() -> None:
    devices = read_devices(golden("h200-list.log"), BUILD_11312, backend="vulkan")
    assert devices is not None
    (device,) = devices
    assert (device.id, device.name, device.software) == ("Vulkan0", "NVIDIA H200", False)
    assert device.memory == 143771 * MIB


def test_llvmpipe_lists_itself_with_brackets_in_its_name_and_is_software() -> None:
    devices = read_devices(golden("llvmpipe-list.log"), BUILD_11312, backend="vulkan")
    assert devices is not None
    assert [(d.name, d.software) for d in devices] == [("llvmpipe (LLVM 15.0.6, 256 bits)", True)]


def test_none_is_an_empty_list_and_silence_is_no_list() -> None:
    none = "Available devices:\n  (none)\n"
    assert read_devices(none, BUILD_11312, backend="vulkan") == ()
    assert read_devices("", BUILD_11312, backend="vulkan") is None
    assert read_devices("Available devices:\n", BUILD_11312, backend="vulkan") is None
    assert read_devices("usage: llama-completion\n", BUILD_11312, backend="vulkan") is None


def test_windows_line_ends_make_no_difference() -> None:
    text = "Available devices:\r\n  CUDA0: NVIDIA X (9000 MiB, 8000 MiB free)\r\n"
    devices = read_devices(text, BUILD_11312, backend="cuda")
    assert devices is not None
    assert devices[0].name == "NVIDIA X"


@pytest.mark.parametrize("name", ["h200-prompt.log", "h200-probabilities.log"])
def test_the_h200_run_went_to_the_device_at_its_pci_place(name: str) -> None:
    facts = read_load(golden(name).splitlines(), BUILD_11312)
    assert facts.offloaded == (31, 31)
    assert facts.assigned == {"Vulkan0": 31}
    assert facts.weights == {
        "CPU_Mapped": int(28.69 * MIB), "Vulkan0": int(92.10 * MIB),
    }  # fmt: skip
    assert facts.using == ("Vulkan0",)
    assert facts.pci == "0000:00:06.0"
    assert [b.name for b in facts.backends] == ["Vulkan", "CPU"]
    assert not facts.no_gpu
    assert not facts.cpu_type


@pytest.mark.parametrize("name", ["llvmpipe-prompt.log", "llvmpipe-probabilities.log"])
def test_the_llvmpipe_run_has_no_pci_place_and_says_cpu_type(name: str) -> None:
    facts = read_load(golden(name).splitlines(), BUILD_11312)
    assert facts.offloaded == (31, 31)
    assert facts.assigned == {"Vulkan0": 31}
    assert facts.pci == ""
    assert [b.name for b in facts.backends] == ["Vulkan", "CPU"]
    assert facts.cpu_type


@pytest.mark.parametrize(
    "name", ["llvmpipe-reference-prompt.log", "llvmpipe-reference-probabilities.log"]
)
def test_the_reference_ran_on_the_cpu_alone(name: str) -> None:
    facts = read_load(golden(name).splitlines(), BUILD_11312)
    assert [b.name for b in facts.backends] == ["CPU"]
    assert facts.assigned == {"CPU": 31}
    assert facts.offloaded is None
    assert set(facts.weights) == {"CPU_Mapped"}


def test_a_cpu_run_names_its_variant() -> None:
    facts = read_load(golden("cpu-prompt.log").splitlines(), BUILD_11312)
    assert facts.backends[-1].path.endswith("/libggml-cpu-zen4.so")


def test_a_second_load_in_one_log_replaces_the_first() -> None:
    """Upstream's --fit loads twice, first without allocating: those lines prove nothing."""
    begin = "0.00.101.510 I llama_model_loader: loaded meta data with 33 key-value pairs"
    first = [begin, "load_tensors: offloaded 31/31 layers to GPU",
             "load_tensors:      Vulkan0 model buffer size =     0.00 MiB"]  # fmt: skip
    second = [begin, "load_tensors: offloaded 4/31 layers to GPU"]
    facts = read_load([*first, *second], BUILD_11312)
    assert facts.offloaded == (4, 31)
    assert facts.weights == {}


def test_two_buffers_of_one_name_add_up() -> None:
    line = "load_tensors:      Vulkan0 model buffer size =    10.50 MiB"
    facts = read_load([line, line], BUILD_11312)
    assert facts.weights == {"Vulkan0": 21 * MIB}


def test_the_silent_cpu_warning_is_seen() -> None:
    line = "warning: no usable GPU found, --gpu-layers option will be ignored"
    assert read_load([line], BUILD_11312).no_gpu


def test_an_empty_log_claims_nothing() -> None:
    facts = read_load([], BUILD_11312)
    assert (facts.offloaded, facts.assigned, facts.weights) == (None, {}, {})


def test_the_prefix_is_stripped_once_and_only_where_it_is_one() -> None:
    assert strip_prefix("0.01.148.712 D n_remain: 3", BUILD_11312) == "n_remain: 3"
    assert strip_prefix("n_remain: 3\r", BUILD_11312) == "n_remain: 3"
    assert strip_prefix("1.2.3 I x", BUILD_11312) == "1.2.3 I x"


def test_tokens_and_phases_are_seen_in_a_real_log() -> None:
    lines = [strip_prefix(x, BUILD_11312) for x in golden("h200-prompt.log").splitlines()]
    assert sum(1 for x in lines if BUILD_11312.token.search(x)) == 4
    assert sum(1 for x in lines if BUILD_11312.load_begins.search(x)) == 1
    assert sum(1 for x in lines if BUILD_11312.compute_begins.search(x)) == 1
    table = [strip_prefix(x, BUILD_11312) for x in golden("h200-probabilities.log").splitlines()]
    assert sum(1 for x in table if BUILD_11312.compute_begins.search(x)) == 1


def test_the_h200_numbers_are_read_and_taken_apart_by_chunk() -> None:
    numbers = read_numbers(golden("h200-probabilities.log"), BUILD_11312, context=128, batch=32)
    assert numbers is not None
    assert numbers.mean_kld == pytest.approx(0.00285)
    assert numbers.top1 == pytest.approx(0.93651)
    assert numbers.positions == 126
    assert sum(numbers.per_chunk) / 2 == pytest.approx(0.00285)
    assert numbers.per_chunk[0] == pytest.approx(0.00327)


def row(chunk: int, kld: str, top: str = "100.000") -> str:
    return (
        f"{chunk:4}      32.5331 ±   22.2913       0.00002 ±       -nan    {kld:>10} ±    0.00000"
        f"     0.001 ±  0.000 %    {top} ±  0.000 %"
    )


def test_a_number_that_is_none_stays_visible() -> None:
    numbers = read_numbers(row(1, "nan", "0.000"), BUILD_11312, context=8, batch=1)
    assert numbers is not None
    assert math.isnan(numbers.mean_kld)
    text = "\n".join([row(1, "0.10000"), row(2, "-nan")])
    numbers = read_numbers(text, BUILD_11312, context=8, batch=1)
    assert numbers is not None
    assert math.isnan(numbers.per_chunk[1])
    assert numbers.per_chunk[0] == pytest.approx(0.1)


def test_a_table_with_a_gap_is_no_table() -> None:
    text = "\n".join([row(1, "0.1"), row(3, "0.1")])
    assert read_numbers(text, BUILD_11312, context=8, batch=1) is None
    assert read_numbers("", BUILD_11312, context=8, batch=1) is None


def test_the_base_run_prints_no_comparison() -> None:
    text = golden("llvmpipe-reference-probabilities.log")
    assert read_numbers(text, BUILD_11312, context=32, batch=32) is None


def test_the_benchmark_is_read_by_what_it_measured() -> None:
    text = (
        '{"n_prompt": 128, "n_gen": 0, "avg_ts": 12543.0}\n'
        "load_backend: loaded CPU backend\n"
        '{"n_prompt": 0, "n_gen": 64, "avg_ts": 440.7}\n'
    )
    assert read_bench(text) == (12543.0, 440.7)
    assert read_bench("") == (0.0, 0.0)
    assert read_bench('{"n_prompt": 128}\n[1]\n{"avg_ts": "x"}\n') == (0.0, 0.0)


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("vk::Queue::submit: ErrorDeviceLost", "device-lost"),
        ("ggml_vulkan: Device memory allocation of size 1 failed.\nErrorOutOfDeviceMemory",
         "out-of-device-memory"),
        ("CUDA error: no kernel image is available for execution on the device",
         "no-kernel-image"),
        ("ggml_vulkan: Error: Vulkan 1.2 required.", "driver-too-old"),
        ("CUDA driver version is insufficient for CUDA runtime version", "driver-too-old"),
        ("./llama-cli: error while loading shared libraries: libx.so", "library-missing"),
        ("/lib/libc.so.6: version `GLIBC_2.38' not found", "library-missing"),
        ('error while handling argument "--device": invalid device: Vulkan7', "invalid-device"),
        ("llama_model_load: error loading model: bad magic", "model-refused"),
    ],
)  # fmt: skip
def test_the_programs_own_words_name_the_class(line: str, kind: str) -> None:
    reason = failure_reason(["something harmless", *line.splitlines()])
    assert reason is not None
    assert reason[0] == kind


def test_harmless_words_name_no_class() -> None:
    """Upstream prints this in builds without modules; alone it means nothing (case P12)."""
    assert failure_reason(["failed to find ggml_backend_init in libggml-vulkan.so"]) is None
    assert failure_reason([]) is None


@pytest.mark.parametrize(
    "name",
    ["llvmpipe (LLVM 15.0.6, 256 bits)", "SwiftShader Device (LLVM 10.0.0)",
     "Microsoft Basic Render Driver", "Virtio-GPU Venus (llvmpipe (LLVM 17))",
     "Apple Paravirtual device", "Microsoft Direct3D12 (WARP)"],
)  # fmt: skip
def test_names_of_software_devices(name: str) -> None:
    assert SOFTWARE_NAMES.search(name)


@pytest.mark.parametrize(
    "name", ["NVIDIA H200", "AMD Radeon RX 7900 XTX (RADV NAVI31)", "Intel(R) Arc(tm) A770",
             "Apple M3 Max", "Warplane Graphics"],
)  # fmt: skip
def test_names_of_hardware_devices(name: str) -> None:
    assert not SOFTWARE_NAMES.search(name)


@pytest.mark.parametrize(
    ("name", "driver", "software"),
    [
        ("libGLX_nvidia.so.580.159.04", True, False),
        ("libvulkan_radeon.so", True, False),
        ("libvulkan_intel.so", True, False),
        ("libvulkan_lvp.so", True, True),
        ("libcuda.so.580.159.04", True, False),
        ("amdvlk64.so", True, False),
        ("libvulkan.so.1.3.239", False, False),
        ("libggml-vulkan.so", False, False),
    ],
)
def test_which_libraries_are_drivers(name: str, *, driver: bool, software: bool) -> None:
    assert bool(DRIVER_LIBRARIES.match(name)) is driver
    assert bool(SOFTWARE_LIBRARIES.match(name)) is software


def test_the_table_is_chosen_by_upstreams_build_number() -> None:
    assert patterns_for(11312) is BUILD_11312
    assert patterns_for(10**6) is PATTERN_SETS[-1]
    assert patterns_for(-1) in PATTERN_SETS
    assert len({p.version for p in PATTERN_SETS}) == len(PATTERN_SETS)


def test_the_h200_s_cuda_run_names_card_capability_and_buffers() -> None:
    """Recorded from an artifact of CUDA 12.4 whose PTX the driver compiled."""
    facts = read_load(golden("h200-cuda-prompt.log").splitlines(), BUILD_11312)
    assert facts.offloaded == (31, 31)
    assert facts.assigned == {"CUDA0": 31}
    assert facts.using == ("CUDA0",)
    assert facts.pci == "0000:00:06.0"
    assert [b.name for b in facts.backends] == ["CUDA", "CPU"]
    assert facts.weights["CUDA0"] > 92 * MIB
    assert facts.cards == {0: ("NVIDIA H200", 90)}


def test_the_h200_lists_itself_under_cuda_too() -> None:
    devices = read_devices(golden("h200-cuda-list.log"), BUILD_11312, backend="cuda")
    assert devices is not None
    (device,) = devices
    assert (device.id, device.name, device.software) == ("CUDA0", "NVIDIA H200", False)
    assert device.memory == 143155 * MIB
