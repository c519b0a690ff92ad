import os
import tempfile

if __name__ == "__main__":
    for top in (tempfile.mkdtemp(), tempfile.mkdtemp(dir=".")):
        deep = top
        for _ in range(30):
            deep = os.path.join(deep, "d" * 100)
            os.mkdir(deep)
        open(os.path.join(deep, "file"), "w").close()
        os.chmod(deep, 0)
        os.chmod(top, 0)
