import threading

import spoils


def save(path, folder):
    wait = threading.Event()
    kept = []
    try:
        while len(kept) < (2000 if spoils.ISOLATED else 50):
            kept.append(threading.Thread(target=wait.wait, daemon=True))
            kept[-1].start()
    finally:
        print(len(kept), "threads")
