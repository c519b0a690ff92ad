"""The pipe between grader and attempt: what goes in comes out, and nonsense is only refused."""

import json
import math
import os
import struct
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from gpulab.attempts import child, messages
from gpulab.attempts.answer import AnswerPipe
from gpulab.attempts.messages import LENGTH, ProtocolError, pack, unpack_all

DTYPES = ["float16", "float32", "float64", "int8", "int64", "uint8", "bool", "complex64"]
arrays = st.sampled_from(DTYPES).flatmap(
    lambda dtype: hnp.arrays(dtype, hnp.array_shapes(min_dims=0, max_dims=3, min_side=0))
)
# `$tensor` and `$path` are how arrays and paths are written, and no keys of anybody's own.
keys = st.text().filter(lambda key: not key.startswith("$"))
paths = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])).map(Path)
plain = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
values = st.recursive(
    plain | arrays | paths,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=4),
    max_leaves=12,
)


def same(one, other) -> bool:
    if isinstance(one, np.ndarray):
        return (
            isinstance(other, np.ndarray)
            and (one.dtype, one.shape) == (other.dtype, other.shape)
            and one.tobytes() == other.tobytes()
        )
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, float) and math.isnan(one):
        return math.isnan(other)
    return type(one) is type(other) and one == other


@given(st.lists(st.dictionaries(keys, values, max_size=3), max_size=3))
def test_round_trip(said: list[dict]) -> None:
    data = b"".join(pack(message) for message in said)
    found = unpack_all(data)
    assert same([message for _, message in found], said)
    assert [end for end, _ in found][-1:] == ([len(data)] if said else [])


@given(plain | st.lists(plain) | st.dictionaries(keys, plain))
def test_the_attempt_side_speaks_the_same(value) -> None:
    ((_, message),) = unpack_all(child.pack({"value": value}))
    assert same(message, {"value": value})


@given(st.dictionaries(keys, plain | paths, max_size=3))
def test_the_attempt_side_reads_the_same(request: dict) -> None:
    read_fd, write_fd = os.pipe()
    with os.fdopen(write_fd, "wb") as pipe:
        pipe.write(pack(request))
    with os.fdopen(read_fd, "rb") as pipe:
        message, blob = child.read_message(pipe)
    assert same(child.decode(message, child.load_tensors(blob)), request)


def test_numpy_scalars_and_tuples() -> None:
    ((_, message),) = unpack_all(pack({"a": (np.int64(3), np.float32(0.5), np.bool_(1))}))
    assert message == {"a": [3, 0.5, True]}


def test_an_array_that_is_not_contiguous() -> None:
    array = np.arange(12).reshape(3, 4).T[::2]
    ((_, message),) = unpack_all(pack({"a": array}))
    assert same(message["a"], np.ascontiguousarray(array))


def test_what_is_no_json_is_refused_before_it_is_sent() -> None:
    with pytest.raises(TypeError):
        pack({"a": object()})


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    try:
        unpack_all(data)
    except ProtocolError as error:
        assert str(error).startswith("it")  # noqa: PT017 - some bytes are a message


@given(st.data())
def test_any_change_of_one_byte_is_read_or_refused(data) -> None:
    whole = bytearray(pack({"value": [1, np.arange(3.0)], "b": Path("x")}))
    whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    try:
        unpack_all(bytes(whole))
    except ProtocolError as error:
        assert str(error).startswith("it")  # noqa: PT017


@given(st.integers(1, 200))
def test_cut_short(left_off: int) -> None:
    whole = pack({"value": list(range(30)), "array": np.zeros(8)})
    with pytest.raises(ProtocolError, match="cut short"):
        unpack_all(whole[: max(1, len(whole) - left_off)])


def raw(text: bytes, blob: bytes = b"") -> bytes:
    return LENGTH.pack(len(text)) + text + LENGTH.pack(len(blob)) + blob


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"nonsense" * 100, "cut short"),
        (LENGTH.pack(2**64 - 1) + b"{}", "cut short"),
        (raw(b"{"), "made no sense"),
        (raw(b"\xff\xfe\x00"), "made no sense"),
        (raw(b"[1]"), "no object"),
        (raw(b"[" * 100_000 + b"]" * 100_000), "made no sense"),
        (raw(b'{"a":' * 150 + b"1" + b"}" * 150), "nested too deeply"),
        (raw(b'{"a": ' + b"9" * 10_000 + b"}"), "made no sense"),
        (raw(b'{"a": {"$tensor": "0"}}'), "made no sense"),
        (raw(b'{"a": {"$tensor": ["0"]}}'), "made no sense"),
        (raw(b'{"a": {"$path": 3}}'), "made no sense"),
        (raw(b"{}", b"no safetensors"), "made no sense"),
        (raw(b"{}", struct.pack("<Q", 2**60) + b"{}"), "made no sense"),
        (raw(b"{}") * 100_001, "said too much"),
        (raw(b'{"a": [' + b"[]," * (2 << 20) + b"0]}"), "said too much"),
        (raw(b"{}", struct.pack("<Q", 2 << 20) + b" " * (2 << 20)), "too many tensors"),
    ],
)
def test_nonsense(data: bytes, said: str) -> None:
    with pytest.raises(ProtocolError, match=said):
        unpack_all(data)


def test_tensors_whose_type_numpy_does_not_know() -> None:
    header = json.dumps({"0": {"dtype": "BF16", "shape": [1], "data_offsets": [0, 2]}}).encode()
    blob = struct.pack("<Q", len(header)) + header + b"\0\0"
    with pytest.raises(ProtocolError, match="made no sense"):
        unpack_all(raw(b'{"value": {"$tensor": "0"}}', blob))


def test_half_characters_are_replaced() -> None:
    ((_, said),) = unpack_all(raw(rb'{"a\udfff": ["\ud800 b"]}'))
    assert said == {"a?": ["? b"]}


def test_a_pickle_is_never_read() -> None:
    blob = safetensors.numpy.save({"0": np.zeros(1)})
    assert b"pickle" not in blob
    assert "pickle" not in Path(messages.__file__).read_text().replace("never a pickle", "")


def feed(*parts: tuple[bytes, float]) -> dict:
    pipe = AnswerPipe()
    for data, at in parts:
        pipe.feed(data, at)
    return pipe.read()


def test_an_answer() -> None:
    assert feed((pack({"value": None}), 1.0)) == {"marks": (), "answer": None, "answered": True}


def test_no_answer() -> None:
    assert feed() == {"marks": ()}


def test_two_answers() -> None:
    said = feed((pack({"value": 1}) + pack({"error": {}}), 0.0))
    assert said == {"marks": (), "broken_answer": "it answered 2 times"}


def test_marks_have_the_time_of_their_last_byte() -> None:
    first, second = pack({"mark": "warm"}), pack({"mark": "done"})
    said = feed((first[:5], 1.0), (first[5:] + second[:1], 2.0), (second[1:], 3.0))
    assert said["marks"] == ((2.0, "warm"), (3.0, "done"))


def test_bytes_that_come_one_by_one_take_no_room() -> None:
    pipe, data = AnswerPipe(), pack({"mark": "x"}) * 1000
    for number, byte in enumerate(data):
        pipe.feed(bytes([byte]), 1e-6 * number)
    assert len(pipe._times) <= 1000 * len(data) * 1e-6 + 1
    assert len(pipe.read()["marks"]) == 1000


def test_an_error() -> None:
    error = {"type": "ValueError", "message": "no", "file": "train.py", "line": 3, "source": "x"}
    failure = feed((pack({"error": error}), 0.0))["error"]
    assert (failure.type, failure.message, failure.line) == ("ValueError", "no", 3)


@given(plain | st.dictionaries(st.sampled_from(["type", "message", "file", "line"]), plain))
def test_an_error_of_any_shape(error) -> None:
    failure = feed((pack({"error": error}), 0.0))["error"]
    assert isinstance(failure.type, str)
    assert failure.line is None or isinstance(failure.line, int)


def test_an_answer_cut_short_keeps_no_half() -> None:
    assert feed((pack({"value": [1, 2]})[:-3], 0.0)) == {
        "broken_answer": "its answer was cut short"
    }
