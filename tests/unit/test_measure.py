"""The measurements: their tables and plots, what they refuse, and that nothing measured is lost."""

import csv
import json
from pathlib import Path

import pytest

from gpulab import attempts
from gpulab.measure import Amp, Deadlock, Leak, Loader, Results, Spawn, Taking, ZeroGrad, in_words
from gpulab.model import Device, LabError
from gpulab.tasks.measure import MEASUREMENTS, _take, _tell

MOMENTS = [("cleared", 32.0), ("forward", 64.0), ("a layer's backward", 60.0), ("step", 64.0)]
EXAMPLES = {
    Loader: [
        {"workers": n, "memory_mib": 400.0 + n, "busy": 0.2, "epoch_s": 9.0} for n in (0, 2, 4, 8)
    ],
    Deadlock: [
        {"cause": c, "method": m, "hung": m == "fork", "ended": m == "spawn", "refused": False}
        | {"seconds": 2.0}
        for c in ("nothing", "inherited_pool")
        for m in ("fork", "spawn", "forkserver")
    ],
    ZeroGrad: [
        {"leaves": leaves, "cleared_mib": 32.0, "peak_mib": peak, "step_ms": 9.0}
        | {"moments": MOMENTS}
        for leaves, peak in (("default", 64.0), ("none", 64.0), ("zeros", 80.0))
    ],
    Leak: [
        {"kept": kept, "kib_a_step": 1.0, "step_ms": 2.0, "gb_an_hour": 0.1, "grown": [0, 99999]}
        for kept in ("loss.item()", "prediction, no_grad")
    ],
    Amp: [
        {"trained": name, "zeros": 0.4, "left_out": 1, "scale": scale, "scales": [65536.0, 32768.0]}
        | {"state": "finite", "step_ms": 2.0, "article": None}
        for name, scale in (("float16", None), ("float16, scaled", 32768.0))
    ],
    Spawn: [
        {"method": m, "workers": n, "first_s": 0.1 * n} for n in (1, 2) for m in ("fork", "spawn")
    ],
}


def results_of(kind) -> Results:
    results = Results.begin(kind(), Device.CPU, None, "2.14.1")
    results.rows = EXAMPLES[kind] * 2
    results.complete = True
    return results


@pytest.mark.parametrize("kind", MEASUREMENTS, ids=lambda kind: kind.name)
def test_every_form(kind, tmp_path: Path, capsys) -> None:
    pytest.importorskip("matplotlib")
    results = results_of(kind)
    plots = [tmp_path / "plot.png", tmp_path / "plot.svg"]
    for plot in plots:
        assert _tell(results, str(plot), str(tmp_path / "table.csv"), json=False) == 0
    assert kind.title in capsys.readouterr().out.replace("\n", " ").replace("  ", " ")
    with (tmp_path / "table.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(results.merged) == len(EXAMPLES[kind])
    assert any(row.get("article") or row.get("article_busy") for row in rows) or kind is Amp
    assert plots[0].read_bytes().startswith(b"\x89PNG")
    assert kind.title in plots[1].read_text(encoding="utf-8")
    assert len(json.loads(json.dumps(results.as_json()))["runs"]) == len(results.rows)


def test_shares_and_distances() -> None:
    hung = {(row["cause"], row["method"]): row["hung"] for row in results_of(Deadlock).merged}
    assert hung["inherited pool", "fork"] == 2
    saved = {row["leaves"]: row["saved"] for row in results_of(ZeroGrad).merged}
    assert saved == {"default": 0, "none": 0, "zeros": -0.25}
    assert results_of(Spawn).merged[1]["later_s"] == 0
    memory = [row["article_memory_gb"] for row in results_of(Loader).merged]
    assert memory == [8.2, 14.7, 22.3, 38.1]


def test_a_plot_of_what_there_is(tmp_path: Path) -> None:
    """Stopped after the first run, or a choice of cases."""
    pytest.importorskip("matplotlib")
    for kind in MEASUREMENTS:
        results = results_of(kind)
        results.rows = results.rows[-1:]
        results.save_plot(tmp_path / f"{kind.name}.png")


def taking(monkeypatch, *outcomes) -> Taking:
    """A taking of the leak whose attempts end like this: a dictionary is an answer."""
    todo = iter(outcomes)

    def run(_job):
        outcome = next(todo)
        if isinstance(outcome, BaseException):
            raise outcome
        fields = {"ended": attempts.Ended.EXIT, "exit_code": 0, "lines": (), "evidence": None}
        return attempts.Attempt(**fields | outcome)

    made = Taking(Leak(), 1, "loss", Device.CPU)
    monkeypatch.setattr(attempts, "run", run)
    return made


ANSWER = {"answered": True, "answer": {"grown": [0, 1024, 2048], "step_ms": 2.0}}


def test_ctrl_c_keeps_what_was_measured(monkeypatch, capsys) -> None:
    stopped = taking(monkeypatch, ANSWER, KeyboardInterrupt())
    assert _take(stopped, quiet=False) == 130
    assert len(stopped.results.rows) == 1
    assert not stopped.results.complete
    assert _tell(stopped.results, "", "", json=True) == 0
    said = capsys.readouterr()
    assert json.loads(said.out[said.out.index("{\n") :])["complete"] is False
    assert "about 32 s" in said.out
    assert "what was measured is kept" in said.err


def test_a_case_that_fails_is_named(monkeypatch, capsys) -> None:
    failed = {"error": attempts.attempt.Failure("RuntimeError", "no memory")}
    silent = {"exit_code": 9}
    half = taking(monkeypatch, ANSWER, failed, ANSWER, silent)
    assert len(list(half)) == 4
    assert half.results.failures == [
        "kept loss.detach(), steps 120: RuntimeError: no memory",
        "kept loss, without backward, steps 120: exit code 9",
    ]
    assert _tell(half.results, "", "", json=False) == 4
    assert "no memory" in capsys.readouterr().err


def test_nothing_measured() -> None:
    results = results_of(Leak)
    results.rows = []
    with pytest.raises(LabError, match="Nothing was measured"):
        _tell(results, "", "", json=False)


@pytest.mark.parametrize("kind", MEASUREMENTS, ids=lambda kind: kind.name)
def test_choosing_cases(kind) -> None:
    every = kind().cases
    assert kind().chosen(2, "") == every * 2
    first = in_words(every[0])
    assert kind().chosen(1, first) == every[:1]
    with pytest.raises(LabError, match=f"No case names 'xyzzy'; there are: {first[:5]}"):
        kind().chosen(1, "xyzzy")


def test_one_for_real(commands, tmp_path: Path) -> None:
    table = tmp_path / "table.csv"
    words = ("--only", "fork, workers 1", "--runs", "1", "--csv", str(table))
    said = json.loads(commands.run("measure.spawn", *words, "--json", expect=0).stdout)
    assert (said["complete"], said["machine"]["device"]) == (True, "cpu")
    assert 0 < said["rows"][0]["first_s"] < 60
    assert table.is_file()


def test_a_hang_for_real(commands) -> None:
    words = ("--only", "cause lock_held_by_a_thread, method fork", "--json", "--device", "cpu")
    said = json.loads(commands.run("measure.deadlock", *words, expect=0).stdout)
    (row,) = said["rows"]
    assert (row["hung"], row["ended"], row["refused"]) == (1, 0, 0)


def test_refusals(commands, tmp_path: Path) -> None:
    def refused(*words: str) -> str:
        return commands.refused("measure.amp", *words)

    assert "must be at least 1" in refused("--runs", "0")
    assert "end in .png or .svg" in refused("--plot", str(tmp_path / "plot.pdf"))
    assert "there is no folder" in refused("--csv", str(tmp_path / "no" / "table.csv"))
    assert "on the rehearsal device" in refused("--device", "rehearsal")
    assert "choose one of" in refused("--device", "tpu")
