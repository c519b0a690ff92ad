import os
import pickle

import spoils


class Trap:
    def __reduce__(self):
        return os.system, ("touch /tmp/" + spoils.MARK,)


TRAP = pickle.dumps(Trap())


def save(path, folder):
    (folder / "answers.json").write_bytes(TRAP)
    (folder / "checkpoint.pt").write_bytes(TRAP)


def answer(values):
    spoils.say(spoils.message({"value": {"$tensor": "0", "py/reduce": [1]}}, TRAP))
    spoils.say(spoils.message(TRAP))
    os._exit(0)
