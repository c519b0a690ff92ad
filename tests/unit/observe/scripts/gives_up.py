"""No hang: the main process waits 2 s for a process that is stuck, then ends it and goes on."""

import multiprocessing
import threading

lock = threading.Lock()
lock.acquire()
process = multiprocessing.get_context("fork").Process(target=lock.acquire)
print("START", flush=True)
process.start()
process.join(2)
process.kill()
print("DONE", flush=True)
