import ctypes
import sys

libc = ctypes.CDLL(None)
for name in (b") Z 0 0 0", b"a (b) S 1", b"\xff\n) X 1"):
    libc.prctl(15, name)  # PR_SET_NAME
sys.argv[:] = ["-c", "from multiprocessing.resource_tracker import main;main(1)"]
