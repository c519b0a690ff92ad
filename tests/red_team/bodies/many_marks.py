import spoils


def answer(values):
    one = spoils.message({"mark": "x"})
    for byte in one * 100:
        spoils.say(bytes([byte]))
    for _ in range(100):
        spoils.say(one * 1000)
    return [0] * len(values)
