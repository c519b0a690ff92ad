def double(values):
    return [2 * value for value in values] or None
