"""Hangs: two threads of the main process take two locks in opposite order."""

import threading

first, second = threading.Lock(), threading.Lock()
both_hold_one = threading.Barrier(2)


def other_way():
    with second:
        both_hold_one.wait()
        with first:
            pass


print("START", flush=True)
thread = threading.Thread(target=other_way)
thread.start()
with first:
    both_hold_one.wait()
    with second:  # waits here
        pass
print("DONE", flush=True)
