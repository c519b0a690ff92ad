def double(values):
    return [2 * value for value in values]


if __name__ == "__main__":
    print("doubled", double([1, 2, 3]))
