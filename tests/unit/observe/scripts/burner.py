"""A child burns 0.5 s of CPU time and is reaped."""

import os
import time

if os.fork() == 0:
    while time.process_time() < 0.6:
        pass
    os._exit(0)
os.wait()
print("DONE", flush=True)
time.sleep(60)
