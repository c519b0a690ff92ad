import os
import socket


def save(path, folder):
    os.mkfifo(folder / "answers.json")
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(str(folder / "socket"))
    (folder / "closed").write_text("x")
    os.chmod(folder / "closed", 0)
    for name in (
        b"\xff\xfe",
        b"line\nbreak",
        b"\xe2\x80\xaegnp.exe",
        b"-rf",
        b"x" * 255,
        b"\x1b[2J",
    ):
        (folder / os.fsdecode(name)).write_text("x")
