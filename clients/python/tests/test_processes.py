import contextlib
import math
import multiprocessing
import os
import select
import signal
import subprocess
import sys
import threading
import time

import pytest

from vernier_hpo import Study, VernierError, choice, integer, loguniform, tune

SPACE = {"lr": loguniform(1e-5, 0.1), "layers": integer(1, 4)}


def loss(lr, layers):
    return (math.log10(lr) + 2) ** 2 + layers


def crash(lr, layers):
    if layers == 2:
        os.kill(os.getpid(), 9)
    return loss(lr, layers)


def reporting(lr, layers, trial):
    for step in range(3):
        trial.report(step=step, loss=loss(lr, layers) / (step + 1))


def test_a_process_that_crashes_fails_its_trial_only():
    tuned = tune(crash, SPACE, trials=12, workers=2, mode="processes", algorithm="random")
    for r in tuned.trials:
        assert r.state == ("failed" if r.params["layers"] == 2 else "succeeded")
        if r.state == "failed":
            assert "SIGKILL" in r.why


def test_processes_report():
    tuned = tune(reporting, SPACE, minimize="loss", trials=4, workers=2, mode="processes")
    assert all(math.isclose(r.value, loss(**r.params) / 3) for r in tuned.trials)


def diverging(lr, layers, trial):
    for value in (1, math.nan, 1):
        trial.report(loss=value)


@pytest.mark.parametrize("mode", ["threads", "processes"])
def test_a_stopping_rule_stops_a_function(mode):
    tuned = tune(diverging, SPACE, minimize="loss", stopper="threshold", trials=2, mode=mode)
    assert [r.state for r in tuned.trials] == ["pruned", "pruned"]


def seeded(lr, layers, trial):
    return {"loss": trial.number, "seed": trial.seed, "resource": trial.resource, "attempt": trial.attempt}


def test_a_function_in_a_process_knows_its_trial():
    here, there = (tune(seeded, SPACE, minimize="loss", trials=3, repeats=True, mode=m) for m in ("threads", "processes"))
    assert there.rows() == here.rows() and all(r.state == "succeeded" for r in there.trials)


def waiting(lr, layers, trial, fifo):
    if trial.number == 0:
        os.kill(os.getpid(), 9)
    pipe = os.open(fifo, os.O_RDWR)
    if trial.number == 1:
        return len(select.select([pipe], [], [], 30)[0])
    return os.write(pipe, b"x")


def test_a_crash_is_seen_while_a_process_that_started_with_it_lives(monkeypatch, tmp_path):
    os.mkfifo(tmp_path / "fifo")
    kept = os.open(tmp_path / "fifo", os.O_RDWR)  # what is written stays until it is read
    together = threading.Barrier(2)

    def wait_after(function):
        def called(*arguments):
            result = function(*arguments)
            try:
                together.wait(1)  # for the other worker, unless that waits for this one
            except threading.BrokenBarrierError:
                pass
            return result
        return called

    monkeypatch.setattr(multiprocessing, "Pipe", wait_after(multiprocessing.Pipe))
    monkeypatch.setattr(multiprocessing.Process, "start", wait_after(multiprocessing.Process.start))
    space = {**SPACE, "fifo": choice(tmp_path / "fifo")}
    tuned = tune(waiting, space, minimize="seen", trials=3, workers=2, mode="processes")
    os.close(kept)
    assert [r.values for r in tuned.trials] == [{}, {"seen": 1}, {"seen": 1}]


def reporting_for_long(lr, layers, pid, trial):
    if trial.number == 1:
        os.kill(pid, signal.SIGINT)
    end = time.monotonic() + 60
    while time.monotonic() < end:
        trial.report(loss=1)


def computing_for_long(lr, layers, pid, trial):
    if trial.number == 1:
        os.kill(pid, signal.SIGINT)
    select.select([], [], [], 60)
    return 1


@pytest.mark.parametrize("function, mode", [(reporting_for_long, "threads"), (computing_for_long, "processes")])
def test_ctrl_c_hands_the_trials_of_several_workers_back(monkeypatch, function, mode):
    monkeypatch.setattr("vernier_hpo.tuning._Run.grace", 0)
    space = {**SPACE, "pid": choice(os.getpid())}  # the parent of a process may be a server that forks
    with Study(space, minimize="loss", trials=2, parallel=2) as study:
        with pytest.raises(KeyboardInterrupt):
            tune(function, space, study=study, workers=2, mode=mode)
        assert [r.state for r in study.trials] == ["pending", "pending"]


@pytest.mark.parametrize("error, ends", [(KeyboardInterrupt, []), (None, ["closed"])])
def test_trials_that_threads_run_when_a_study_is_closed_are_kept(tmp_path, error, ends):
    file, said = str(tmp_path / "study.jsonl"), []
    begun, close = threading.Barrier(3, timeout=30), threading.Event()

    def work(study):
        try:
            for trial in study:
                with trial:
                    begun.wait()
                    close.wait(30)
                    trial.report(loss=trial.number)
        except VernierError as e:
            said.append(str(e))

    def wait(study):  # for results: the first generation has been handed out
        try:
            assert study.ask() is None
        except VernierError as e:
            said.append(str(e))

    options = {"minimize": "loss", "algorithm": "pbt", "settings": {"n_population": 2}, "stopper": "medianstop"}
    with pytest.raises(error) if error else contextlib.nullcontext(), Study(SPACE, file=file, **options) as study:
        threads = [threading.Thread(target=work, args=[study], daemon=True) for _ in range(2)]
        for thread in threads:
            thread.start()
        begun.wait()
        threads.append(threading.Thread(target=wait, args=[study], daemon=True))
        threads[-1].start()
        if error:
            raise error
    with pytest.raises(VernierError, match="open"):
        Study(SPACE, file=file, **options)
    close.set()
    for thread in threads:
        thread.join(30)
        assert not thread.is_alive()
    assert ["closed" for text in said if "the study is closed" in text] == ends * 3 and len(said) == len(ends) * 3
    assert [(r.state, r.values) for r in study.trials] == [("succeeded", {"loss": 0}), ("succeeded", {"loss": 1})]
    with Study(SPACE, file=file, **options) as again:
        assert again.trials == study.trials


def test_a_trial_of_the_thread_that_closed_the_study_does_not_end_any_more():
    with Study(SPACE, minimize="loss") as study:
        trial = study.ask()
    with pytest.raises(VernierError, match="closed before trial 0 ended"):
        trial.succeed(1)


@pytest.mark.parametrize("succeeds", [True, False])
def test_failures_wait_for_what_trials_that_run_come_to(succeeds):
    failed, ended = threading.Semaphore(0), []

    def function(lr, layers, trial):
        if trial.number > 0 and not (ended and succeeds):
            failed.release()
            raise OSError("no data")
        if trial.number == 0:
            for _ in range(3):
                assert failed.acquire(timeout=60)
            ended.append(trial.number)
            if not succeeds:
                raise OSError("no data")
        return 1

    with Study(SPACE, minimize="loss", trials=9, parallel=4) as study:
        with contextlib.nullcontext() if succeeds else pytest.raises(OSError, match="no data"):
            tune(function, SPACE, study=study, workers=4)
        states = [r.state for r in study.trials]
    # Of four workers three may have begun another one before the third failure.
    assert 3 <= states.count("failed") - (not succeeds) <= 6
    assert states.count("succeeded") == (9 - states.count("failed") if succeeds else 0)


@pytest.mark.parametrize("method", multiprocessing.get_all_start_methods())
def test_the_processes_of_trials_end_with_the_program(tmp_path, method):
    program = tmp_path / "program.py"
    program.write_text("""
import multiprocessing, os, sys, time
from vernier_hpo import tune, uniform
def function(x, trial):
    os.write(1, b"%d\\n" % os.getpid())
    time.sleep(600)
if __name__ == "__main__":
    multiprocessing.set_start_method(sys.argv[1])
    tune(function, {"x": uniform(0, 1)}, workers=2, mode="processes")
""")
    with subprocess.Popen([sys.executable, program, method], stdout=subprocess.PIPE) as process:
        try:
            of_trials = [int(process.stdout.readline()) for _ in range(2)]
        finally:
            process.kill()
        # The pipe ends with the last of those that can write to it.
        ended, _, _ = select.select([process.stdout], [], [], 60)
        for pid in [] if ended else of_trials:
            os.kill(pid, signal.SIGKILL)
        assert ended and process.stdout.read() == b"" and process.pid not in of_trials


def reporting_until_stopped(lr, layers, pid, file, trial):
    if trial.number == 1:
        os.kill(pid, signal.SIGINT)
    try:
        for _ in range(600):
            trial.report(loss=1)
            time.sleep(0.1)
    except BaseException as e:
        with open(file, "a") as f:
            f.write(type(e).__name__ + "\n")
        raise


@pytest.mark.parametrize("method", multiprocessing.get_all_start_methods())
def test_ctrl_c_ends_a_process_at_its_next_report(monkeypatch, tmp_path, method):
    monkeypatch.setattr("vernier_hpo.tuning._Run.grace", 60)
    monkeypatch.setattr(multiprocessing, "Process", multiprocessing.get_context(method).Process)
    file = tmp_path / "seen"
    space = {**SPACE, "pid": choice(os.getpid()), "file": choice(str(file))}
    with pytest.raises(KeyboardInterrupt):
        tune(reporting_until_stopped, space, minimize="loss", workers=2, mode="processes")
    assert set(file.read_text().split()) == {"TrialStopped"}


@pytest.mark.parametrize("workers", [1, 2])
def test_a_second_ctrl_c_does_not_wait_for_a_process(tmp_path, workers):
    program = tmp_path / "program.py"
    program.write_text("""
import sys, time
from vernier_hpo import tune, uniform
def function(x):
    print(flush=True)
    time.sleep(600)
if __name__ == "__main__":
    import vernier_hpo.tuning
    vernier_hpo.tuning._Run.grace = 600
    tune(function, {"x": uniform(0, 1)}, workers=int(sys.argv[1]), mode="processes")
""")
    with subprocess.Popen([sys.executable, program, str(workers)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        for _ in range(workers):
            process.stdout.readline()
        for _ in range(60):
            process.send_signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(1)
                break
        ended = process.returncode is not None
        process.kill()
        assert ended


@pytest.mark.skipif(not hasattr(os, "fork"), reason="NOT RUN: needs fork")
def test_a_process_that_was_forked_does_not_take_trials(tmp_path):
    refused = multiprocessing.get_context("fork").SimpleQueue()

    def work():
        for use in (study.ask, lambda: trial.succeed(1)):
            try:
                use()
                refused.put("")
            except VernierError as e:
                refused.put(str(e))

    with Study(SPACE, minimize="loss", trials=2, file=str(tmp_path / "s.jsonl")) as study:
        trial = study.ask()
        process = multiprocessing.get_context("fork").Process(target=work)
        process.start()
        process.join()
        assert all("mode='processes'" in refused.get() for _ in range(2))
        trial.succeed(2)
        for trial in study:
            trial.succeed(1)
        assert [r.value for r in study.trials] == [2, 1]
