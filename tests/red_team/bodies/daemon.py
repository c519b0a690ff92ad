import os
import signal
import time

import spoils


def leave():
    for number in range(1, 32):
        if number not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(number, signal.SIG_IGN)
    for fd in range(100):
        try:
            os.close(fd)
        except OSError:
            pass
    time.sleep(3)
    for top in ("/dev/shm/", "/tmp/"):
        open(top + spoils.MARK + "-later", "w").close()
    time.sleep(60)


if __name__ == "__main__" and os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        leave()
    os._exit(0)
