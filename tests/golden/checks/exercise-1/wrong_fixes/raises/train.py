def double(values):
    raise ValueError("no")
