def double(values):
    raise ValueError("\ud800 \x1b[2J\0")
