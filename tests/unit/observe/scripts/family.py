"""Starts processes of several kinds, prints their ids, and waits. argv[1] names the kind."""

import ctypes
import os
import subprocess
import sys
import threading
import time


def say_and_sleep():
    os.write(1, f"{os.getpid()}\n".encode())
    time.sleep(60)


def fork_and_sleep():
    os.fork()
    say_and_sleep()


def grandchild(*, new_session):
    """An orphan: its parent ends at once."""
    if os.fork() == 0:
        if new_session:
            os.setsid()
        if os.fork() == 0:
            say_and_sleep()
        os._exit(0)
    os.wait()


def respawn(depth):
    """A process that starts another one and ends, again and again."""
    while True:
        if os.fork():
            time.sleep(0.03)
            os._exit(0)
        os.setsid()
        depth += 1


kind = sys.argv[1]
if kind == "orphan":
    grandchild(new_session=False)
elif kind == "daemon":
    grandchild(new_session=True)
elif kind == "deaf":
    os.system("trap '' TERM INT HUP; sleep 60 & echo $!; wait")  # noqa: S605 - a shell is meant
elif kind == "respawn":
    if os.fork() == 0:
        respawn(0)
elif kind == "storm":
    for _ in range(60):
        if os.fork() == 0:
            time.sleep(0.06)
            os._exit(0)
        os.wait()
elif kind == "headless":  # the main thread ends, another goes on: the process reads as a zombie
    threading.Thread(target=say_and_sleep).start()
    ctypes.CDLL(None).pthread_exit(None)
elif kind == "sandbox":  # a shell under the name of the sandbox, with Python below it
    shell = f"exec -a bwrap bash -c '{sys.executable} {__file__} family; true'"
    os.execvp("bash", ["bash", "-c", shell])  # noqa: S606 - no other shell around it
elif kind == "program":
    subprocess.Popen(["sleep", "60"])
elif kind == "family":
    for _ in range(9):
        if os.fork() == 0:
            say_and_sleep()
elif kind == "named":  # the loader's name on one child; the other is about to become a program
    for name in (b"pt_data_worker", b"python"):
        if os.fork() == 0:
            ctypes.CDLL(None).prctl(15, name, 0, 0, 0)
            say_and_sleep()
elif kind == "starter":  # a spawned worker that is about to start a program
    import multiprocessing

    if __name__ == "__main__":
        multiprocessing.get_context("spawn").Process(target=fork_and_sleep).start()
elif kind == "spawn":
    import multiprocessing

    if __name__ == "__main__":
        method = sys.argv[2]
        multiprocessing.get_context(method).Process(target=say_and_sleep).start()
if __name__ == "__main__":
    print("READY", flush=True)
    time.sleep(60)
