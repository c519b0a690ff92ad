import pathlib
import re

import spoils


def key():
    tops = ["/work", "/tmp", "/dev/shm"] if spoils.ISOLATED else [".."]
    for top in map(pathlib.Path, tops):
        for path in top.rglob("train.py"):
            spoils.read(str(path))
            found = re.search(r'^KEY = "(.*)"', path.read_text(), re.M)
            if found and found.group(1) != KEY:
                return found.group(1)
    return KEY


KEY = key()
