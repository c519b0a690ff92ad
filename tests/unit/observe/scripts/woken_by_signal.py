"""No hang: a process waits for a lock of its own, and a timer's signal wakes it after 2 s."""

import multiprocessing
import signal
import threading

lock = threading.Lock()


def wait_for_alarm():
    signal.signal(signal.SIGALRM, lambda *_: lock.release())
    signal.alarm(2)
    lock.acquire()
    lock.acquire()


process = multiprocessing.get_context("fork").Process(target=wait_for_alarm)
print("START", flush=True)
process.start()
process.join()
print("DONE", flush=True)
