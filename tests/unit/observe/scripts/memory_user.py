"""Uses 300 MiB. argv[1]: peak (for 0.3 s), fork (a child shares them), file (maps one)."""

import mmap
import os
import sys
import time

if sys.argv[1] == "file":
    with open(sys.argv[2], "rb") as file:  # noqa: PTH123 - a plain script
        mapped = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
    assert not any(mapped[::4096])
    print("READY", flush=True)
    time.sleep(60)
data = bytearray(300 << 20)
data[::4096] = b"x" * len(data[::4096])
if sys.argv[1] == "peak":
    time.sleep(0.3)
    del data
    time.sleep(0.3)
else:
    os.fork()
    print("READY", flush=True)
    time.sleep(60)
