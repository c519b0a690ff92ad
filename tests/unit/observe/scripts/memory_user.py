"""Uses 300 MiB. argv[1]: peak (for 0.3 s) | fork (and shares them with a child)"""

import os
import sys
import time

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
