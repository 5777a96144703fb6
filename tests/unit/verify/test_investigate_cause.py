"""Everything that was seen to its first cause."""

from __future__ import annotations

from dataclasses import replace

import pytest

from investigate_kit import ARTIFACT, DRIVER, MODULE, case, frame, halt, thread
from llamawright.model.investigation import Frame, Message
from llamawright.verify.investigate_cause import (
    Seen,
    address_word,
    culprit,
    first_cause,
    place,
    segfaults,
    stopped,
)

LIBC = "/usr/lib/x86_64-linux-gnu/libc.so.6"
STDCPP = "/usr/lib/x86_64-linux-gnu/libstdc++.so.6.0.30"
CRASHED = halt(thread("llvmpipe-0", [frame(0, "??", DRIVER)]), address="0xe8")
ERROR = Message(source="layers", id="VUID-a (error)", text="vkA(): bad")


def seen(**changes: object) -> Seen:
    base = Seen(case=case(), halt=None, messages=(), kernel=(), artifact=ARTIFACT, reproduced=2)
    return replace(base, **changes)  # type: ignore[arg-type]


def test_the_devices_own_word_goes_before_all() -> None:
    cause = first_cause(
        seen(halt=CRASHED, messages=(ERROR,), kernel=("NVRM: Xid (PCI:0000:41:00): 31",))
    )
    assert cause.evidence == "the kernel's log"
    assert "Xid" in cause.told


def test_a_broken_rule_goes_before_the_crash_that_follows() -> None:
    cause = first_cause(seen(halt=CRASHED, messages=(ERROR,)))
    assert cause.evidence == "layers"
    assert cause.told.startswith("VUID-a (error): vkA(): bad; then it stopped: SIGSEGV in")


@pytest.mark.parametrize(
    "message",
    [
        replace(ERROR, doubt="the layer is old"),
        replace(ERROR, id="VUID-a (warning)"),
        replace(ERROR, id="x (performance warning)"),
    ],
)
def test_what_is_doubted_or_only_a_warning_is_no_cause(message: Message) -> None:
    assert first_cause(seen(halt=CRASHED, messages=(message,))).evidence == "gdb"


def test_without_any_instrument_the_program_itself_is_quoted() -> None:
    cause = first_cause(seen())
    assert cause.evidence == "the run's own log"
    assert "ended by SIGSEGV" in cause.told


def test_what_did_not_happen_again_is_not_explained() -> None:
    assert first_cause(seen(reproduced=0)).told.startswith("not found: it did not happen again")


def test_a_crash_in_the_driver_says_what_the_artifact_waited_for() -> None:
    waiting = thread("llama", [frame(0, "futex", LIBC), frame(1, "ggml_vk_wait_for_fence")])
    told = stopped(halt(*CRASHED.threads, waiting, address="0xe8"), ARTIFACT)
    assert told.startswith("SIGSEGV in the driver's libvulkan_lvp.so+0x1000")
    assert "(mov %eax,(%rdi))" in told
    assert "address 0xe8, a null pointer on thread llvmpipe-0" in told
    assert "while ggml_vk_wait_for_fence, the artifact's libggml-vulkan.so+0x1001" in told


@pytest.mark.parametrize("function", ["common_log::run()", "ggml_threadpool_wait"])
def test_threads_that_wait_for_work_explain_nothing(function: str) -> None:
    idle = thread("llama", [frame(0, "futex", LIBC), frame(1, function)])
    assert "while" not in stopped(halt(*CRASHED.threads, idle), ARTIFACT)


def test_a_crash_in_the_c_library_is_its_callers() -> None:
    frames = [frame(0, "__memcpy_avx", LIBC), frame(1, "ggml_vk_buffer_write")]
    told = stopped(halt(thread("llama", frames)), ARTIFACT)
    assert told.startswith("SIGSEGV in ggml_vk_buffer_write, the artifact's libggml-vulkan.so")


def test_a_driver_that_crashes_below_the_artifact_names_the_call() -> None:
    frames = [frame(0, "??", DRIVER), frame(1, "??", DRIVER), frame(2, "ggml_vk_submit")]
    told = stopped(halt(thread("llama", frames)), ARTIFACT)
    assert "called by ggml_vk_submit, the artifact's libggml-vulkan.so+0x1002" in told


@pytest.mark.parametrize(
    "names",
    [
        ("__pthread_kill_implementation", "raise", "abort", "ggml_abort"),
        ("__GI_raise", "__GI_abort"),
        ("__cxa_throw",),
        ("raise", "abort", "__gnu_cxx::__verbose_terminate_handler", "std::terminate"),
        ("_Exit", "__run_exit_handlers", "exit"),
        ("std::__throw_out_of_range_fmt",),
    ],
)  # fmt: skip
def test_the_ways_to_end_a_program_are_not_its_fault(names: tuple[str, ...]) -> None:
    frames = [frame(n, name, LIBC) for n, name in enumerate(names)]
    frames.append(frame(9, "llama_decode"))
    found = culprit(frames)
    assert found is not None
    assert found.function == "llama_decode"


def test_a_stack_of_system_calls_alone_still_names_one() -> None:
    found = culprit([frame(0, "abort", LIBC), frame(1, "free", LIBC)])
    assert found is not None
    assert found.function == "free"
    only = culprit([frame(0, "abort", LIBC)])
    assert only is not None
    assert only.function == "abort"
    assert culprit([]) is None


def test_a_hang_names_the_thread_below_the_artifact() -> None:
    idle = thread("llvmpipe-0", [frame(0, "futex", LIBC), frame(1, "??", DRIVER)], "sleeps")
    stuck = thread(
        "llama",
        [frame(0, "pause", LIBC), frame(1, "wait_for_the_device"), frame(2, "graph_compute")],
        "sleeps, in pause",
    )
    told = stopped(halt(idle, stuck, signal="hang", address=""), ARTIFACT)
    assert told.startswith("hangs in wait_for_the_device, the artifact's libggml-vulkan.so")
    assert "inside pause" in told
    assert "thread llama sleeps, in pause" in told


def test_a_hang_in_the_driver_names_who_called_it() -> None:
    stuck = thread("llama", [frame(0, "ioctl", LIBC), frame(1, "??", DRIVER),
                             frame(2, "ggml_vk_wait_for_fence")], "waits for a device")  # fmt: skip
    told = stopped(halt(stuck, signal="hang", address=""), ARTIFACT)
    assert told.startswith("hangs in the driver's libvulkan_lvp.so")
    assert "called by ggml_vk_wait_for_fence" in told


def test_a_hang_without_stacks_says_what_the_kernel_shows() -> None:
    told = stopped(halt(thread("llama", waits="waits for a device"), signal="hang"), ARTIFACT)
    assert told == "hangs, thread llama waits for a device"


def test_a_halt_without_threads_is_no_error() -> None:
    assert stopped(halt(signal="SIGBUS", address=""), ARTIFACT).startswith("SIGBUS in an unknown")
    assert stopped(halt(signal="hang"), ARTIFACT) == "hangs"


@pytest.mark.parametrize(
    ("address", "word"),
    [
        ("0x0", "a null pointer"),
        ("0xe8", "address 0xe8, a null pointer"),
        ("0x7fff12345678", "address 0x7fff12345678"),
        ("0xffffffffffffffff", "address 0xffffffffffffffff"),
    ],
)  # fmt: skip
def test_addresses_near_nothing_are_null_pointers(address: str, word: str) -> None:
    assert address_word(address) == word


@pytest.mark.parametrize(
    ("frame_", "word"),
    [
        (Frame(number=0, function="f", module=MODULE, offset=16),
         "f, the artifact's libggml-vulkan.so+0x10"),
        (Frame(number=0, function="??", module=DRIVER, offset=16),
         "the driver's libvulkan_lvp.so+0x10"),
        (Frame(number=0, function="f", module="/opt/libx.so", offset=None), "f, libx.so"),
        (Frame(number=0, function="f", source="a.c:3"), "f, a.c:3"),
        (Frame(number=0, function="??"), "unknown memory"),
    ],
)  # fmt: skip
def test_a_place_names_function_module_and_whose_it_is(frame_: Frame, word: str) -> None:
    assert place(frame_, ARTIFACT) == word


def test_without_an_artifact_nothing_is_the_artifacts() -> None:
    assert place(frame(0, "f"), "") == "f, libggml-vulkan.so+0x1000"


def test_the_kernels_notes_of_crashes_are_kept() -> None:
    crash = ("llama[7]: segfault at e8 ip 00007f sp 00007f error 4 in libvulkan_lvp.so[29c3eb,7f+3]"
             " likely on CPU 1")  # fmt: skip
    assert segfaults(["usb 1-1: new device", crash, "segfault"]) == (crash,)
