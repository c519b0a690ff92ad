import os

for name in ("LD_PRELOAD", "LD_LIBRARY_PATH", "LD_AUDIT", "PYTHONSTARTUP", "PYTHONHOME"):
    os.environ[name] = os.path.join(os.getcwd(), "evil.so")
