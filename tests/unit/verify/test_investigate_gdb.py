"""What gdb is told, and what is read out of its words: real output and odd output."""

from __future__ import annotations

import pytest

from investigate_kit import GOLDEN
from llamawright.verify.investigate_gdb import (
    MARK,
    MOST_THREADS,
    Mapped,
    argv,
    commands,
    read_frames,
    read_halt,
    read_mappings,
    read_threads,
    sections,
    why_not,
)

CRASH = (GOLDEN / "investigate-gdb-crash.txt").read_text()
LAMBDA = "ggml::f(int, std::vector<int>)::{lambda(int)#1}::operator()(int) const"
MAPPINGS = """process 7
Mapped address spaces:

          Start Addr           End Addr       Size     Offset  Perms  objfile
            0x400000           0x401000     0x1000        0x0  r--p   /opt/a b/bin/llama
            0x401000           0x402000     0x1000     0x1000  r-xp   /opt/a b/bin/llama
      0x7fff00000000     0x7fff00001000     0x1000        0x0  rw-p   [heap]
      0x7fff10000000     0x7fff10002000     0x2000        0x0  r-xp   /opt/libx.so
"""


def said(**parts: str) -> str:
    """Return output as the command file makes gdb print it."""
    given = {"where": "#0  0x0000000000401010 in f () from /opt/libx.so", **parts}
    run = given.pop("run", "")
    return run + "".join(f"\n{MARK}{name}\n{text}" for name, text in given.items())


def test_a_real_crash_in_a_driver_is_read() -> None:
    halt = read_halt(CRASH, hung=False)
    assert halt is not None
    assert (halt.signal, halt.address) == ("SIGSEGV", "0xe8")
    assert halt.instruction == "call *0xe8(%rax)"
    top = halt.threads[0].frames
    assert [f.function for f in top[:2]] == ["??", "??"]
    assert top[0].module.endswith("/libvulkan_lvp.so")
    assert (top[0].offset, top[1].offset) == (0x29C3EB, 0x1F9741)
    assert (top[-1].function, top[-1].module[-9:]) == ("clone3", "libc.so.6")


def test_a_real_crash_names_what_the_artifact_was_at_meanwhile() -> None:
    halt = read_halt(CRASH, hung=False)
    assert halt is not None
    names = [f.function for t in halt.threads for f in t.frames]
    assert "ggml_vk_wait_for_fence(ggml_backend_vk_context*)" in names
    assert len(halt.threads) == 8
    assert [t.name for t in halt.threads].count("llvmpipe-0") == 1


def test_the_thread_that_stopped_is_not_told_twice() -> None:
    halt = read_halt(CRASH, hung=False)
    assert halt is not None
    tops = [t.frames[0].offset for t in halt.threads]
    assert tops.count(0x29C3EB) == 1
    assert halt.threads[0].name == "llama-completio"


def test_a_hang_is_one_whatever_signal_woke_it() -> None:
    halt = read_halt(said(signal="It stopped with signal SIGINT, Interrupt."), hung=True)
    assert halt is not None
    assert (halt.signal, halt.address) == ("hang", "")


@pytest.mark.parametrize(
    ("parts", "signal"),
    [
        ({"signal": "It stopped with signal SIGABRT, Aborted."}, "SIGABRT"),
        ({"run": "Thread 3 received signal SIGBUS, Bus error.\n"}, "SIGBUS"),
        ({"run": "Catchpoint 1 (exception thrown), 0x0 in __cxa_throw ()\n"}, "exception"),
        ({"run": "Catchpoint 2 (call to syscall exit_group), 0x1 in _exit ()\n"}, "exit"),
        ({}, "stopped"),
    ],
)  # fmt: skip
def test_why_it_stopped_is_told(parts: dict[str, str], signal: str) -> None:
    halt = read_halt(said(**parts), hung=False)
    assert halt is not None
    assert halt.signal == signal


def test_the_address_counts_only_where_memory_was_touched() -> None:
    parts = {"address": "$2 = (void *) 0x2a00000007", "signal": "stopped with signal SIGABRT"}
    halt = read_halt(said(**parts), hung=False)
    assert halt is not None
    assert halt.address == ""


@pytest.mark.parametrize(
    ("line", "function", "module", "source"),
    [
        ("#0  0x00401010 in main ()", "main", "/opt/a b/bin/llama", ""),
        ("#12 main (argc=..., argv=...) at src/main.cpp:12", "main", "", "src/main.cpp:12"),
        ("#1  0x7fff10000004 in ?? () from /opt/liby.so", "??", "/opt/libx.so", ""),
        ("#1  0x000000000004 in ?? () from /opt/liby.so", "??", "/opt/liby.so", ""),
        ("#1  0x000000000004 in ?? ()", "??", "", ""),
        (
            f"#3  0x7fff10000010 in {LAMBDA} () from /opt/libx.so",
            LAMBDA,
            "/opt/libx.so",
            "",
        ),
        ("#4  <signal handler called>", "<signal handler called>", "", ""),
        ("#5  0x7fff10000010 in odd", "odd", "/opt/libx.so", ""),
    ],
)  # fmt: skip
def test_calls_of_every_form_are_read(line: str, function: str, module: str, source: str) -> None:
    (frame,) = read_frames(line, read_mappings(MAPPINGS))
    assert (frame.function, frame.module, frame.source) == (function, module, source)


def test_lines_that_are_no_calls_are_left_out() -> None:
    text = "warning: x\n#0 no number here\nNo stack.\n(More stack frames follow...)\n"
    found = list(read_frames(text, Mapped()))
    assert [f.function for f in found] == ["no number here"]


def test_offsets_are_from_the_start_of_the_file_in_memory() -> None:
    mapped = read_mappings(MAPPINGS)
    assert mapped.find(0x401010) == ("/opt/a b/bin/llama", 0x1010)
    assert mapped.find(0x7FFF10000004) == ("/opt/libx.so", 4)
    assert mapped.find(0x7FFF00000004) is None
    assert mapped.find(0x402000) is None


def test_threads_without_a_name_are_threads() -> None:
    text = 'Thread 2 (LWP 7 "worker"):\n#0  f ()\n\nThread 1 (process 7):\n#0  g ()\n#1  h ()\n'
    found = list(read_threads(text, Mapped()))
    assert [(t.name, len(t.frames)) for t in found] == [("worker", 1), ("", 2)]


def test_a_thread_may_be_called_anything() -> None:
    text = 'Thread 5 (Thread 0x7ff6 (LWP 9) "llama-c:disk$0 (x)"):\n#0  f ()\n'
    (found,) = read_threads(text, Mapped())
    assert found.name == "llama-c:disk$0 (x)"


def test_a_thousand_threads_are_some() -> None:
    text = "".join(f'Thread {n} (LWP {n} "t{n}"):\n#0  f{n} ()\n' for n in range(1, 1001))
    halt = read_halt(said(threads=text), hung=True)
    assert halt is not None
    assert len(halt.threads) == MOST_THREADS


@pytest.mark.parametrize(
    "output",
    ["", "No stack.", said(where="No stack."), "#0  f ()", f"{MARK}where", "\0" * 99],
)  # fmt: skip
def test_without_a_stack_there_is_no_halt(output: str) -> None:
    assert read_halt(output, hung=False) is None


@pytest.mark.parametrize(
    ("output", "word"),
    [
        ("warning: ptrace: Operation not permitted", "forbids tracing"),
        ("Could not trace the inferior process.", "SYS_PTRACE"),
        ("[Inferior 1 (process 9) exited normally]", "status 0"),
        ("[Inferior 1 (process 9) exited with code 03]", "status 03"),
        ("", "nothing of a stack"),
    ],
)  # fmt: skip
def test_why_there_is_no_stack_is_told(output: str, word: str) -> None:
    assert word in why_not(output)


def test_the_program_gets_its_own_environment_and_no_other() -> None:
    script = commands({"B": "2 3", "A": "'x' $y"}, thrown=False)
    lines = script.splitlines()
    at = lines.index("unset environment")
    assert lines[at + 1 : at + 4] == ["set environment A 'x' $y", "set environment B 2 3", "run"]
    assert lines[-1] == "kill"


def test_a_variable_with_a_line_break_cannot_become_a_command() -> None:
    script = commands({"EVIL": "x\nshell rm -rf /", "C": "\r!", "GOOD": "1"}, thrown=False)
    assert "shell" not in script
    assert "EVIL" not in script
    assert "set environment GOOD 1" in script


def test_a_program_that_gives_up_is_stopped_where_it_does() -> None:
    thrown = commands({}, thrown=True).splitlines()
    assert thrown.index("tcatch throw") < thrown.index("run")
    assert "tcatch throw" not in commands({}, thrown=False)


def test_nothing_is_looked_up_on_the_network_and_no_file_of_the_user_is_read() -> None:
    assert "set debuginfod enabled off" in commands({}, thrown=False)
    line = argv("/usr/bin/gdb", "/w/script", ("/a/program", "-p", "two words"))
    assert line[:4] == ("/usr/bin/gdb", "--batch", "--nx", "-q")
    assert line[-4:] == ("--args", "/a/program", "-p", "two words")


def test_every_section_is_marked() -> None:
    script = commands({}, thrown=False)
    for name in ("signal", "where", "code", "mappings", "threads", "end"):
        assert f"echo \\n{MARK}{name}\\n" in script


def test_what_comes_before_the_first_mark_is_the_run_itself() -> None:
    found = sections(f"hello\n{MARK}where\n#0  f ()\n{MARK}end")
    assert found == {"run": "hello", "where": "#0  f ()", "end": ""}
