import os


def save(path, folder):
    for number in range(20_000):
        (folder / str(number)).touch()
    deep = folder
    for _ in range(60):
        deep = deep / "d"
        deep.mkdir()
    with open(folder / "answers.json", "wb") as file:
        file.truncate(4 << 30)
        os.pwrite(file.fileno(), b"[", 0)
