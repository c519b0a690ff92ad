import os
import sys


def double(values):
    os.write(int(sys.orig_argv[-1]), b"nonsense" * 100)
    os._exit(0)
