def double(values):
    return [float("nan")] * len(values)
