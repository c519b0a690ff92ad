import json
import os
import struct

import spoils

TENSORS = [
    {"a": ["F32", [2], [0, 8]], "b": ["F32", [2], [4, 12]]},
    {"a": ["F32", [1 << 40], [0, 1 << 42]]},
    {"a": ["F32", [1 << 62, 4], [0, 16]]},
    {"a": ["F8_E4M3", [16], [0, 16]]},
    {"a": ["F32", [-1], [0, 16]]},
    {"a": ["BOOL", [16], [0, 16]]},
    {"__metadata__": {"a": 1}},
]


def answer(values):
    turn = sum(values) % len(TENSORS)  # another one each time
    header = {
        name: dict(zip(("dtype", "shape", "data_offsets"), entry))
        if isinstance(entry, list)
        else entry
        for name, entry in TENSORS[turn].items()
    }
    text = json.dumps(header).encode()
    blob = struct.pack("<Q", len(text)) + text + b"\x07" * 16
    spoils.say(spoils.message({"value": {"$tensor": "a"}}, blob))
    os._exit(0)
