import os
import time


def double(values):
    if os.fork() == 0:
        os.setsid()
        time.sleep(60)
        os._exit(0)
    return [2 * value for value in values]


if __name__ == "__main__":
    print("doubled", double([1, 2, 3]))
