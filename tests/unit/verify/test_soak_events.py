"""Lines of the kernel's log: which are a device's trouble, and whose."""

from __future__ import annotations

import pytest

from llamawright.model.soak import Tie
from llamawright.verify.soak_events import MOST_TEXT, place_of, read_events, tie

OURS = "0000:01:00.0"
XID = "NVRM: Xid (PCI:0000:01:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."

TROUBLE = [
    (XID, "xid"),
    ("NVRM: Xid (PCI:0000:01:00): 13, pid=4242, name=llama-bench, Graphics Exception", "xid"),
    ("NVRM: GPU 0000:01:00.0: GPU has fallen off the bus.", "lost"),
    ("amdgpu 0000:01:00.0: amdgpu: GPU reset begin!", "reset"),
    ("amdgpu 0000:01:00.0: amdgpu: GPU reset(3) succeeded!", "reset"),
    ("amdgpu 0000:01:00.0: [drm] VRAM is lost due to GPU reset!", "reset"),
    ("amdgpu 0000:01:00.0: amdgpu: ring comp_1.0.1 timeout, emitted seq=11", "hang"),
    ("i915 0000:01:00.0: [drm] GPU HANG: ecode 12:1:85dffffb, in llama-cli [9]", "hang"),
    ("i915 0000:01:00.0: [drm] Resetting rcs0 for stopped heartbeat on rcs0", "reset"),
    ("xe 0000:01:00.0: [drm] GT0: reset started", "reset"),
    ("xe 0000:01:00.0: [drm] device wedged, but recovered through reset", "lost"),
    ("nouveau 0000:01:00.0: fifo: channel 3 [llama] killed", "hang"),
    ("radeon 0000:01:00.0: GPU softreset: 0x00000009", "reset"),
    ("drm: 0000:01:00.0 device lost", "lost"),
]  # fmt: skip


@pytest.mark.parametrize(("line", "kind"), TROUBLE)
def test_each_drivers_words_are_known_and_tied_by_place(line: str, kind: str) -> None:
    (event,) = read_events([line], pci=OURS, at=12.0)
    assert (event.kind, event.tie, event.at) == (kind, Tie.OURS, 12.0)
    assert event.pci == OURS
    (other,) = read_events([line], pci="0000:41:00.0", at=12.0)
    assert other.tie is Tie.OTHER


@pytest.mark.parametrize(
    "line",
    [
        "",
        "usb 1-1: device lost power",
        "nvidia 0000:01:00.0: enabling device (0000 -> 0003)",
        "NVRM: loading NVIDIA UNIX x86_64 Kernel Module  580.82.07",
        "[drm] amdgpu kernel modesetting enabled.",
        "i915 0000:00:02.0: [drm] Finished loading DMC firmware i915/tgl_dmc_ver2_12.bin",
        "llama-completio[8954]: segfault at e8 ip 00007f error 4 in libvulkan_lvp.so",
        "systemd[1]: Reset device nothing",
        "EXT4-fs (vda1): resetting journal",
        "ata1: hard resetting link",
    ],
)
def test_other_lines_are_no_events(line: str) -> None:
    assert read_events([line], pci=OURS, at=0.0) == ()


def test_a_line_without_a_place_is_nobodys_yet() -> None:
    line = "[drm:amdgpu_job_timedout [amdgpu]] *ERROR* ring gfx timeout, signaled seq=1"
    (event,) = read_events([line], pci=OURS, at=0.0)
    assert (event.pci, event.tie) == ("", Tie.UNNAMED)


def test_a_device_without_a_place_cannot_be_tied() -> None:
    (event,) = read_events([XID], pci="", at=0.0)
    assert (event.pci, event.tie) == (OURS, Tie.UNNAMED)


def test_order_is_kept_and_long_lines_are_cut() -> None:
    found = read_events([f"{XID} {'x' * 9000}", "noise", TROUBLE[3][0]], pci=OURS, at=0.0)
    assert [e.kind for e in found] == ["xid", "reset"]
    assert len(found[0].text) == MOST_TEXT


@pytest.mark.parametrize(
    ("line", "place"),
    [
        ("NVRM: Xid (PCI:0000:41:00): 31", "0000:41:00.0"),
        ("NVRM: Xid (PCI:00000000:C1:00): 31", "0000:c1:00.0"),
        ("amdgpu 0000:03:00.1: GPU reset", "0000:03:00.1"),
        ("time 12:34:56 is no place", ""),
        ("0000:gg:00.0", ""),
        ("", ""),
    ],
)
def test_places_are_read_in_every_spelling(line: str, place: str) -> None:
    assert place_of(line) == place


def test_functions_of_one_card_are_one_device() -> None:
    assert tie("0000:01:00.1", OURS) is Tie.OURS
    assert tie("0000:01:00.0", "00000000:01:00.0") is Tie.OURS
    assert tie("0000:01:01.0", OURS) is Tie.OTHER
    assert tie("0001:01:00.0", OURS) is Tie.OTHER
