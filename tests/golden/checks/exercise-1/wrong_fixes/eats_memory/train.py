def double(values):
    return [2 * value for value in values]


if __name__ == "__main__":
    kept = []
    while True:
        kept.append(bytearray(8 << 20))
