import threading

lock = threading.Lock()


def double(values):
    with lock, lock:
        return values
