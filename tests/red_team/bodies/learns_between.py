import json
import os

KEPT = ("/tmp/red-team-mark-kept", "/dev/shm/red-team-mark-kept", "red-team-mark-kept")


def answer(values):
    known = [path for path in KEPT if os.path.exists(path)]
    for path in known:
        print("kept from before:", path)
        os.remove(path)
    if not known:
        for path in KEPT:
            with open(path, "w") as file:
                json.dump(values, file)
    return [0] * len(values)
