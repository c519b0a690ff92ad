def mark(name):
    pass
