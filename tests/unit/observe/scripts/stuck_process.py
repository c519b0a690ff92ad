"""Hangs: a process waits for a lock that it holds itself. argv[1]: the start method"""

import multiprocessing
import sys
import threading


def take_twice():
    lock = threading.Lock()
    lock.acquire()
    lock.acquire()  # waits here


if __name__ == "__main__":
    process = multiprocessing.get_context(sys.argv[1]).Process(target=take_twice)
    print("START", flush=True)
    process.start()
    process.join()
