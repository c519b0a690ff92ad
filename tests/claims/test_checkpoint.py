"""Claims about checkpoints."""

import io

import pytest
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Conv2d(3, 4, 3)
        self.norm = torch.nn.BatchNorm2d(4)


class Larger(Model):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(4, 2)


def saved_on_a_gpu(value, monkeypatch) -> bytes:
    """A checkpoint whose tensors say that they come from cuda:0."""
    file = io.BytesIO()
    with monkeypatch.context() as patch:
        patch.setattr(torch.serialization, "location_tag", lambda _storage: "cuda:0")
        torch.save(value, file)
    return file.getvalue()


@pytest.mark.claim(80)
def test_keys_of_a_norm(part):
    part("it is a function", not isinstance(torch.nn.BatchNorm2d, type))
    part("its keys are missing", "norm.weight" not in Model().state_dict())


@pytest.mark.claim(81)
@pytest.mark.skipif(torch.cuda.is_available(), reason="with a GPU it opens")
def test_checkpoint_from_a_gpu(part, complaint, monkeypatch):
    file = io.BytesIO(saved_on_a_gpu(Model().state_dict(), monkeypatch))
    said = complaint(lambda: torch.load(file, weights_only=True))
    part("it does not open", "Attempting to deserialize object on a CUDA device" in said)


@pytest.mark.claim(82)
def test_map_location(part, complaint, monkeypatch):
    file = io.BytesIO(saved_on_a_gpu(Model().state_dict(), monkeypatch))
    state = torch.load(file, map_location="cpu", weights_only=True)
    part("it opens", {value.device.type for value in state.values()} == {"cpu"})
    whole = io.BytesIO()
    torch.save(nn.Linear(1, 1), whole)
    whole.seek(0)
    assert "Weights only load failed" in complaint(lambda: torch.load(whole))


@pytest.mark.claim(83)
def test_not_strict(part, complaint):
    model = Larger()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    missing = model.load_state_dict(Model().state_dict(), strict=False).missing_keys
    assert missing == ["head.weight", "head.bias"]
    kept = all(torch.equal(before[name], model.get_parameter(name)) for name in missing)
    part("new parameters lose their values", not kept)
    part("NaN", any(parameter.isnan().any() for parameter in model.parameters()))
    prefixed = {f"module.{name}": value for name, value in before.items()}
    assert model.load_state_dict(prefixed, strict=False).unexpected_keys == list(prefixed)
    wrong = {"body.weight": torch.ones(8, 3, 3, 3)}
    assert "size mismatch" in complaint(lambda: model.load_state_dict(wrong, strict=False))


@pytest.mark.claim(84)
def test_keys_with_dots(part, complaint):
    said = complaint(lambda: getattr(Larger(), "head.weight"))
    part("getattr finds it", "no attribute 'head.weight'" not in said)
    assert Larger().get_parameter("head.weight").shape == (2, 4)
