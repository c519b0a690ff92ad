"""Results as JSON and back, for pipes, records and `--json`."""

from __future__ import annotations

import dataclasses
from typing import Any

from gpulab.model import CheckResult, Device, Grade, Hardware, Message, Outcome, Verdict


def to_json(value: Any) -> Any:
    """A dataclass of the model as JSON values."""
    return dataclasses.asdict(value)


def check_result(data: dict[str, Any]) -> CheckResult:
    """A `CheckResult` from its JSON."""
    return CheckResult(
        name=data["name"],
        titles=data["titles"],
        outcome=Outcome(data["outcome"]),
        rationale=_message(data["rationale"]),
        remarks=tuple(Message(**remark) for remark in data["remarks"]),
        evidence=data["evidence"],
    )


def hardware(data: dict[str, Any]) -> Hardware:
    """A `Hardware` from its JSON."""
    return Hardware(**{**data, "device": Device(data["device"])})


def grade(data: dict[str, Any]) -> Grade:
    """A `Grade` from its JSON."""
    return Grade(
        **{
            **data,
            "verdict": Verdict(data["verdict"]),
            "checks": tuple(check_result(check) for check in data["checks"]),
            "hardware": None if data["hardware"] is None else hardware(data["hardware"]),
            "reason": _message(data["reason"]),
        }
    )


def _message(data: dict[str, Any] | None) -> Message | None:
    return None if data is None else Message(**data)
