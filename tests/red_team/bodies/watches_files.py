import ctypes
import os
import time

import spoils

libc = ctypes.CDLL(None, use_errno=True)
watch = libc.inotify_init1(os.O_NONBLOCK)
for top in (
    "/",
    "/work",
    "/tmp",
    "/lab",
    "/dev/shm",
    spoils.FACTS["root"],
    os.path.dirname(os.getcwd()),
):
    libc.inotify_add_watch(watch, top.encode(), 0x100 | 0x20)
print("fanotify", libc.fanotify_init(0, 0))
if __name__ == "__main__":
    time.sleep(0.2)
try:
    spoils.look(os.read(watch, 1 << 16))
except OSError as error:
    print(error)
