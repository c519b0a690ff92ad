import spoils


def answer(values):
    one = spoils.message({"mark": "x"})
    for _ in range(200):
        for byte in one * 5:
            spoils.say(bytes([byte]))
        spoils.say(one * 1000)
    return [0] * len(values)
