"""A llama program that does what ``behaviour.json`` beside it says; standard library only.

Copied into an artifact under the names of upstream's programs, it prints what they print
and misbehaves where it is told to. Plain keys apply when ``--device`` names a device and to
the device list, ``reference_…`` keys to all other runs.
"""

from __future__ import annotations

import json
import mmap
import os
import signal
import sys
import time
from pathlib import Path
from typing import cast

PROGRAM = Path(sys.argv[0])
HERE = PROGRAM.resolve().parent
ARGS = sys.argv[1:]
SPEC: dict[str, object] = json.loads((HERE / "behaviour.json").read_text())
MODULE = HERE / str(SPEC.get("module", "libggml-vulkan.so"))
BACKEND = str(SPEC.get("backend", "Vulkan"))
KEPT: list[mmap.mmap] = []
HELD: list[bytes] = []


def flag(name: str) -> str:
    return ARGS[ARGS.index(name) + 1] if name in ARGS else ""


DEVICE = flag("--device")
ON_DEVICE = DEVICE not in ("", "none")
WHO = "" if ON_DEVICE or "--list-devices" in ARGS else "reference_"


def spec(name: str, default: object) -> object:
    return SPEC.get(WHO + name, default)


def number(name: str, default: float) -> float:
    return float(cast("float", spec(name, default)))


def say(text: str, level: str = "I") -> None:
    sys.stderr.write(f"0.00.000.001 {level} {text}\n")
    sys.stderr.flush()


def out(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def close(who: str) -> None:
    """Print the closing line, unless the end of this run's output is to be lost."""
    if not spec("cut_off", False):
        say(f"{who}:    graphs reused =          1")


def mapped(path: Path) -> None:
    with path.open("rb") as stream:
        KEPT.append(mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ))


def misbehave(phase: str) -> None:
    """Do what is to be done in a phase; the program's own name may narrow it down."""
    action = str(spec(f"at_{phase}", spec(f"at_{phase}_of_{PROGRAM.name}", "")))
    word, _, value = action.partition(":")
    if word == "hang":
        time.sleep(600)
    elif word == "signal":
        os.kill(os.getpid(), int(value))
        time.sleep(5)
    elif word == "exit":
        sys.exit(int(value))
    elif word == "endless":
        while True:
            out(">" * 4096 + ("\n" if value == "lines" else ""))
    elif word == "lost":
        say("vk::Queue::submit: ErrorDeviceLost")
        os.kill(os.getpid(), signal.SIGABRT)
    elif word == "say":
        say(value)
        sys.exit(1)
    elif word == "remove":
        (HERE / value).unlink()


def load_backends() -> None:
    if MODULE.exists():
        misbehave("init")
    if MODULE.exists() and spec("module_loads", True):
        for line in cast("list[str]", spec("init_lines", [])):
            say(line)
        for name in cast("list[str]", spec("tells", [])):
            say(f"{name}={os.environ.get(name, 'unset')}")
        say(f"load_backend: loaded {BACKEND} backend from {MODULE}")
        if spec("module_mapped", True):
            mapped(MODULE)
        driver = os.environ.get("FAKE_DRIVER", str(spec("driver", "")))
        if driver:
            mapped(Path(driver))
        for library in cast("list[str]", spec("maps", [])):
            mapped(HERE / library)
    elif spec("sneaks_device", False):
        say(f"load_backend: loaded Vulkan backend from {MODULE}")
    say(f"load_backend: loaded CPU backend from {HERE}/libggml-cpu-x64.so")
    if (HERE / "libggml-cpu-x64.so").exists():
        mapped(HERE / "libggml-cpu-x64.so")


def listed() -> list[list[object]]:
    devices = cast("list[list[object]]", SPEC.get("devices", []))
    hidden = SPEC.get("software_devices", [])
    if os.environ.get("GGML_VK_VISIBLE_DEVICES") is not None:
        devices = cast("list[list[object]]", hidden)
    shown = os.environ.get("CUDA_VISIBLE_DEVICES")
    if BACKEND == "CUDA" and shown is not None:
        kept = [int(w) for w in shown.split(",") if w.isdigit() and int(w) < len(devices)]
        devices = [[f"CUDA{n}", *devices[i][1:]] for n, i in enumerate(kept)]
    return devices if MODULE.exists() else []


def list_devices() -> None:
    load_backends()
    misbehave("list")
    out(str(SPEC.get("list_header", "Available devices:\n")))
    for name, label, mib in listed():
        out(f"  {name}: {label} ({mib} MiB, {mib} MiB free)\n")
    if not listed():
        out("  (none)\n")
    misbehave("listed")


def load_model() -> None:
    busy = os.environ.get("FAKE_BUSY")
    if busy and ON_DEVICE and spec("memory_rises", True):
        Path(busy).write_text(str(os.getpid()))
        HELD.append(os.urandom(8 << 20))
    say("llama_model_loader: loaded meta data with 1 key-value pairs and 2 tensors")
    misbehave("load")
    time.sleep(number("load_s", 0.0))
    layers = int(number("layers", 31))
    if ON_DEVICE:
        name, place = SPEC.get("using_name", "a"), SPEC.get("using_pci", "unknown id")
        say(f"llama_prepare_model_devices: using device {DEVICE} ({name}) ({place}) - 9 MiB free")
    default = {DEVICE if ON_DEVICE else "CPU": layers}
    for where, count in cast("dict[str, int]", spec("assigned", default)).items():
        for layer in range(count):
            say(f"load_tensors: layer {layer:3} assigned to device {where}, is_swa = 0", "D")
    if spec("warning", ""):
        sys.stderr.write(f"warning: {spec('warning', '')}\n")
    if ON_DEVICE:
        done = spec("offloaded", f"{layers}/{layers}")
        if done:
            say(f"load_tensors: offloaded {done} layers to GPU")
    buffers = {DEVICE: 1.0, "CPU_Mapped": 0.5} if ON_DEVICE else {"CPU_Mapped": 1.5}
    for where, mib in cast("dict[str, float]", spec("weights", buffers)).items():
        say(f"load_tensors: {where:>12} model buffer size = {mib:8.2f} MiB")


def compile_first() -> None:
    """Take the time of a driver that compiles PTX, once for each cache."""
    cache = Path(os.environ.get("CUDA_CACHE_PATH", "/nowhere"))
    if not ON_DEVICE or not number("jit_s", 0.0):
        return
    if not cache.exists():
        time.sleep(number("jit_s", 0.0))
        cache.mkdir()
    elif flag("-p") == next(iter(cast("dict[str, str]", SPEC["answers"]))):
        misbehave("again")


def wait_to_be_seen() -> None:
    """Wait until the tool has looked at this process: on a busy machine that takes a while."""
    seen = Path(os.environ.get("FAKE_SEEN", "/nowhere")) / str(os.getpid())
    deadline = time.monotonic() + (5 if seen.parent.is_dir() else 0)
    while not seen.exists() and time.monotonic() < deadline:
        time.sleep(0.005)


def complete() -> None:
    load_model()
    wait_to_be_seen()
    time.sleep(number("linger", 0.0))
    say(f"generate: n_ctx = 256, n_batch = 32, n_predict = {flag('-n')}, n_keep = 0")
    misbehave("first_token")
    compile_first()
    compile_shaders()
    text = prompt()
    time.sleep(number("token_s", 0.0) * len(text.split()))
    answers = cast("dict[str, str]", {**cast("dict[str, str]", SPEC["answers"])})
    if ON_DEVICE:
        answers.update(cast("dict[str, str]", SPEC.get("device_answers", {})))
    for left in range(int(flag("-n")) - 1, -1, -1):
        say(f"n_remain: {left}", "D")
    out(answers.get(text, " and") + str(spec("ending", "\n\n")))
    tokens = len(text.split())
    say(f"common_perf_print: prompt eval time = 9.99 ms / {tokens:5} tokens ( 1.99 ms per token)")
    close("common_perf_print")
    misbehave("done")


def perplexity() -> None:
    load_model()
    chunks = int(flag("--chunks"))
    if "--save-all-logits" in ARGS:
        say(f"perplexity: calculating perplexity over {chunks} chunks, n_ctx=8")
        misbehave("first_token")
        Path(flag("--save-all-logits")).write_bytes(b"_logits_")
        out("0.01 minutes\n[1]5.0000,[2]6.0000,\n")
        close("llama_perf_context_print")
        misbehave("done")
        return
    say(f"kl_divergence: computing over {chunks} chunks, n_ctx=8, batch_size=8, n_seq=1")
    misbehave("first_token")
    by_batch = cast("dict[str, list[str]]", SPEC.get("kld", {}))
    honest = ["0.00300 100.000", "0.00400 96.774"]
    of_type = f"{Path(flag('-m')).stem} {flag('-ub')}"
    rows = by_batch.get(of_type, by_batch.get(flag("-ub"), honest))
    later = cast("dict[str, list[str]]", SPEC.get("later_kld", {}))
    if of_type in later and measured(f"kld-{of_type.replace(' ', '-')}", cast("float", [0, 1])):
        rows = later[of_type]
    out("0.01 minutes\n\nchunk   PPL   ln(PPL(Q)/PPL(base))  KL Divergence  Δp RMS  Same top p\n")
    for at, row in enumerate(rows[: int(number("chunks_done", chunks))]):
        kld, top = row.split()
        out(
            f"{at + 1:4}      32.5331 ±   22.2913       0.00002 ±       -nan    "
            f"{kld:>10} ±    0.00000     0.001 ±  0.000 %    {top} ±  0.000 %\n"
        )
    close("llama_perf_context_print")
    misbehave("done")


def compile_shaders() -> None:
    """Take the time of a driver that compiles shaders, once for each cache."""
    cache = Path(os.environ.get("XDG_CACHE_HOME", "/nowhere")) / "shaders"
    if ON_DEVICE and number("shader_s", 0.0) and not cache.exists():
        time.sleep(number("shader_s", 0.0))
        cache.write_text("compiled")


def prompt() -> str:
    return Path(flag("-f")).read_text() if flag("-f") else flag("-p")


def measured(name: str, default: float) -> float:
    """Return one figure, or the next of several: speed and noise are data."""
    told = spec(name, default)
    figures = cast("list[float]", told) if isinstance(told, list) else [cast("float", told)]
    count = Path(os.environ.get("TMPDIR", "/nowhere")) / f"count-{name}"
    done = int(count.read_text()) if count.exists() else 0
    if count.parent.is_dir():
        count.write_text(str(done + 1))
    return float(figures[done % len(figures)])


def burn(seconds: float) -> None:
    """Compute for so long: what a driver that polls costs the host."""
    until = time.process_time() + seconds
    while time.process_time() < until:
        pass


def bench() -> None:
    misbehave("bench")
    burn(number("burn_s", 0.0))
    time.sleep(number("bench_s", 0.0))
    rate = measured("prompt_tps", 1234.5)
    out(f'{{"n_prompt": 128, "n_gen": 0, "avg_ts": {rate}}}\n')
    rate = measured("generation_tps", 67.8)
    out(f'{{"n_prompt": 0, "n_gen": 64, "avg_ts": {rate}}}\n')


def operations() -> None:
    """Print what upstream's test program was told to find of the first operation."""
    misbehave("operations")
    told = cast("dict[str, str]", SPEC.get("operations", {}))
    out(told.get(flag("-o").partition(",")[0], "  3/3 tests passed\n"))


def quantize() -> None:
    misbehave("make")
    source, made, kind = ARGS[-3:]
    Path(made).write_bytes(Path(source).read_bytes())
    say(f"main: quantizing '{source}' to '{made}' as {kind}")


def main() -> None:
    sys.stdout.reconfigure(encoding="utf-8")  # type: ignore[union-attr]
    if "--list-devices" in ARGS:
        list_devices()
        return
    misbehave("start")
    load_backends()
    programs = {
        "llama-completion": complete,
        "llama-perplexity": perplexity,
        "llama-bench": bench,
        "llama-quantize": quantize,
        "test-backend-ops": operations,
    }
    programs[PROGRAM.name]()
    sys.exit(int(number("status", 0)))


if __name__ == "__main__":
    main()
