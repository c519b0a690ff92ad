"""What attacks share; laid beside the script. Plain Python 3.9."""

import json
import os
import pathlib
import re
import stat
import struct

CANARY = re.compile(rb"canary-[0-9a-f]{32}")
MARK = "red-team-mark"  # in the name of every file that an attack leaves
ISOLATED = os.path.exists("/lab/child.py")
FACTS = json.loads(pathlib.Path(__file__).with_name("facts.json").read_text())


def look(data):
    """Print what is hidden and stands in these bytes."""
    for found in set(CANARY.findall(data)):
        print("found", found.decode(), flush=True)


def read(path, most=1 << 22):
    """Look into one file; what cannot be read is passed over."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return b""
    try:
        data = os.read(fd, most)
    except OSError:
        return b""
    finally:
        os.close(fd)
    look(os.fsencode(path) + data)
    return data


def search(top, most=3000):
    """Look into every file below a folder, and at their names."""
    for folder, folders, names in os.walk(top):
        folders[:] = [name for name in folders if name not in ("site-packages", "usr", "sys")]
        for name in names:
            most -= 1
            if most < 0:
                return
            path = os.path.join(folder, name)
            if os.path.isfile(path):
                read(path)


def parents():
    """The processes above this one, as far as they can be seen."""
    pid, found = os.getppid(), []
    while pid > 0 and len(found) < 5:
        found.append(pid)
        try:
            fields = open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()
        except OSError:
            break
        pid = int(fields[1])
    return [pid for pid in found if pid > 1 or ISOLATED]


def grader():
    """The process id of the grading process; None where it cannot be seen."""
    for pid in parents():
        try:
            if b"gpulab.grading.judge" in open(f"/proc/{pid}/cmdline", "rb").read():
                return pid
        except OSError:
            pass
    return None


def pipe():
    """The descriptor of the answer pipe; None where the script is run and not called."""
    return max((fd for fd in range(3, 64) if is_pipe(fd)), default=None)


def is_pipe(fd):
    """Whether it is the open end of a pipe."""
    try:
        return stat.S_ISFIFO(os.fstat(fd).st_mode)
    except OSError:
        return False


def message(value, blob=b""):
    """A message of the attempt side."""
    text = value if isinstance(value, bytes) else json.dumps(value).encode()
    return struct.pack("<Q", len(text)) + text + struct.pack("<Q", len(blob)) + blob


def say(data):
    """Write all of it to the answer pipe, where there is one."""
    fd = pipe()
    while data and fd is not None:
        data = data[os.write(fd, data) :]
