import json
import zlib

KEY = "canary-of-the-solution"


def answer(values):
    return [zlib.crc32(f"{KEY} {value}".encode()) for value in values]


def answers(path):
    return answer(json.loads(path.read_text()))


def save(path, folder):
    (folder / "answers.json").write_text(json.dumps(answers(path)))


if __name__ == "__main__":
    print("answers", answer([1, 2, 3]))
