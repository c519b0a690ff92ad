import os
import signal


def double(values):
    return [2 * value for value in values]


if __name__ == "__main__":
    os.kill(os.getpid(), signal.SIGKILL)
