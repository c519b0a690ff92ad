import ctypes
import os
import sys

libc = ctypes.CDLL(None)
for name in (b") Z 0 0 0", b"\xff\n) X 1", b"a (b) S 1"):
    libc.prctl(15, name)  # PR_SET_NAME
if __name__ == "__main__" and os.fork() == 0:
    os.setsid()
    sleeper = "import time; time.sleep(60)"
    os.execv(sys.executable, ["-", "-c", sleeper, "multiprocessing.resource_tracker"])
