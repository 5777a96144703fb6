"""A gdb that runs the program and tells of a stack; standard library only.

It understands what llamawright's command file uses. A program that ends by a signal, or is
interrupted, has one stack; one that ends by itself has none.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

STACK = """#0  0x0000000000401010 in pause () from /usr/lib/libc.so.6
#1  0x0000000000402020 in wait_for_the_device () from {program}
"""


def main() -> int:
    if "--version" in sys.argv:
        sys.stdout.write("GNU gdb (Debian 13.1-3) 13.1\n")
        return 0
    script = sys.argv[sys.argv.index("-x") + 1]
    argv = sys.argv[sys.argv.index("--args") + 1 :]
    lines = Path(script).read_text(encoding="utf-8").splitlines()
    rows = [x.split(None, 3) for x in lines if x.startswith("set environment ")]
    env = {row[2]: row[3] if len(row) > 3 else "" for row in rows}
    # A handler, unlike being ignored, is not what the program inherits.
    signal.signal(signal.SIGINT, lambda *_arguments: None)
    child = subprocess.Popen(argv, env=env)
    code = child.wait()
    if code >= 0:
        sys.stdout.write(f"[Inferior 1 (process {child.pid}) exited with code {code:02o}]\n")
        sys.stdout.write("\n@@llamawright where\nNo stack.\n@@llamawright end\n")
        return 0
    name = signal.Signals(-code).name
    stack = STACK.format(program=argv[0])
    thread = f'Thread 1 (process {child.pid} "llama"):\n'
    sys.stdout.write(f"\nThread 1 received signal {name}, x.\n")
    for part, text in (("signal", f"It stopped with signal {name}, x."), ("where", stack),
                       ("threads", thread + stack), ("end", "")):  # fmt: skip
        sys.stdout.write(f"\n@@llamawright {part}\n{text}\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
