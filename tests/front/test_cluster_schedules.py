"""Random schedules: processes of a cluster die, hang, move and fail over while clients write, and a register model says what was possible.

`ENTREMET_SEED=N` begins with that schedule, `ENTREMET_SCHEDULES=N` is how many there are, and `ENTREMET_EVENTS="kill master 1 + hang
front 0"` plays these instead, so many times.
"""

import itertools
import os
import random
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from mishaps import SHARDS, is_master, made
from scene import Scene, in_step

from harness.cluster import place
from harness.engine import engines
from harness.waiting import eventually

SEED = int(os.environ.get("ENTREMET_SEED", "1"))
SCHEDULES = int(os.environ.get("ENTREMET_SCHEDULES", "200"))
EVENTS = os.environ.get("ENTREMET_EVENTS")
# Most of a schedule is waiting for nodes to miss each other.
CLUSTERS = 6
FAILURES_MAX = 5
# One schedule in some hundreds meets what is not mended yet (tests/README.md). `make soak` lets none pass.
TOLERATED = SCHEDULES // 100 if SCHEDULES < 1_000 else 0
# A move of a partition with a dozen keys sends about as often; where it stands still later it has ended.
STEPS = range(1, 40, 1 if SCHEDULES >= 1_000 else 6)

pytestmark = pytest.mark.ours
before_engines = pytest.mark.parametrize("program", engines(), ids=lambda program: Path(program).name)


class Season:
    """Schedules, one after the other, on several clusters at once. Each is a seed and what happens."""

    def __init__(self, folder, program, schedules):
        self.folder, self.program, self.schedules, self.wanted = folder, program, iter(schedules), len(schedules)
        self.numbers, self.one_at_a_time, self.failures, self.figures = itertools.count(), threading.Lock(), [], []

    def scene(self):
        # Two that look for free ports at a time may find the same.
        with self.one_at_a_time:
            return Scene(self.folder / f"scene{next(self.numbers)}", self.program)

    def next(self):
        with self.one_at_a_time:
            return next(self.schedules, None)

    def run(self):
        """Plays what is left, on a cluster of its own; on a new one after what went wrong."""
        while len(self.failures) < FAILURES_MAX:
            scene = self.scene()
            try:
                scene.start()
                while (schedule := self.next()) is not None:
                    if not self.went_well(scene, *schedule):
                        break
                else:
                    return
            finally:
                scene.kill()

    def went_well(self, scene, seed, texts):
        try:
            wrong, figures = scene.play(seed, texts)
            self.figures.append(figures)
        except Exception as problem:  # noqa: BLE001 (it must not hide the seed)
            wrong = [f"{type(problem).__name__}: {problem}"]
        if wrong:
            self.failures.append(f'ENTREMET_SEED={seed} ENTREMET_EVENTS="{" + ".join(texts)}", logs in {scene.folder}, {len(wrong)} things are wrong:\n  ' + "\n  ".join(wrong[:12]))
        return not wrong

    def told(self):
        """What it came to, in words."""
        total = lambda name: sum(figures[name] for figures in self.figures)
        text = f"{len(self.figures)} schedules: {total('answers')} answers, {total('errors')} errors, {total('lost')} writes of the last moment lost"
        if back := sorted(time for figures in self.figures for time in figures["back"]):
            part = lambda percent: back[(len(back) - 1) * percent // 100]
            text += f"; {len(back)} times a client waited for a new master: after its election {part(50):.2f} s (median), {part(95):.2f} s (95 %), {part(100):.2f} s (longest)"
        return text


def play(program, folder, schedules, capsys, tolerated=0):
    season = Season(folder, program, schedules)
    with ThreadPoolExecutor(CLUSTERS) as lanes:
        for lane in [lanes.submit(season.run) for _ in range(min(CLUSTERS, len(schedules)))]:
            lane.result()
    with capsys.disabled():
        print("\n".join(["", season.told(), *season.failures]))
    assert len(season.failures) <= tolerated, "\n".join(season.failures)
    assert len(season.figures) + len(season.failures) >= len(schedules)


@pytest.mark.timeout(300 + 10 * SCHEDULES)
@before_engines
def test_random_schedules(program, tmp_path, capsys):
    events = lambda seed: EVENTS.split(" + ") if EVENTS else made(random.Random(seed))
    play(program, tmp_path, [(seed, events(seed)) for seed in range(SEED, SEED + SCHEDULES)], capsys, TOLERATED)


@pytest.mark.timeout(1_200)
@before_engines
def test_an_engine_is_lost_at_each_step_of_a_move(program, tmp_path, capsys):
    losses = ("kill source", "kill target", "hang source until replaced")
    play(program, tmp_path, [(step, [f"move alpha to {step % 3} held at {step}", lost]) for lost in losses for step in STEPS], capsys)


@pytest.mark.timeout(1_200)
@before_engines
def test_a_mover_stands_still_at_each_step_while_another_takes_over(program, tmp_path, capsys):
    untils = ("taken over", "done", "moved on")
    # Before these there is nothing to take over yet, and after them nothing any more.
    steps = range(30, 46, 1 if SCHEDULES >= 1_000 else 4)
    play(program, tmp_path, [(step, [f"move alpha to {step % 3} held at {step} until {until}"]) for until in untils for step in steps], capsys)


@pytest.mark.timeout(1_200)
@before_engines
def test_a_front_is_lost_at_each_step_of_a_move(program, tmp_path, capsys):
    losses = [f"{how} front {front}" for how in ("hang", "kill") for front in range(SHARDS)]
    held = [(step, number, lost) for number, lost in enumerate(losses) for step in STEPS[number % 2 :: 2]]
    play(program, tmp_path, [(step, [f"move alpha to {(step + number) % SHARDS} held at {step}", lost]) for step, number, lost in held], capsys)


@pytest.mark.xfail(reason="now and then keys of the slot are left at a master that does not have it, as `entremet cluster check` says; clients read those of its owner", strict=False)
@pytest.mark.timeout(1_200)
@before_engines
def test_a_target_hangs_at_each_step_of_a_move(program, tmp_path, capsys):
    play(program, tmp_path, [(step, [f"move alpha to {step % 3} held at {step}", "hang target until replaced"]) for step in STEPS], capsys)


@pytest.fixture(params=engines(), ids=lambda program: Path(program).name)
def scene(request, tmp_path):
    one = Scene(tmp_path, request.param)
    yield one.start()
    one.kill()


def test_a_source_that_fails_over_while_keys_go(scene):
    wrong = []
    for step in range(25, 40, 2):
        wrong += scene.play(step, [f"move alpha to {step % 3} held at {step}", "hang source until replaced"])[0]
    assert not wrong, "\n".join(wrong[:12])


def test_a_source_that_comes_back_as_a_replica_before_its_move_goes_on(scene):
    wrong = []
    for step in range(31, 41):
        wrong += scene.play(step, [f"move alpha to {step % 3} held at {step}", "kill source"])[0]
    assert not wrong, "\n".join(wrong[:12])


def test_a_replica_that_hangs_and_is_named_first_holds_up_no_move(scene):
    scene.look()
    slot = scene.slot_of("alpha", 0)
    scene.replica[0].ask("CLUSTER", "FAILOVER")
    eventually(lambda: is_master(scene.replica[0]) and in_step(scene.cluster.nodes[0::3]), 30, "the former master is a replica")
    scene.look()
    scene.replica[0].hold()
    assert scene.cluster.url.startswith(f"redis-cluster://{place(scene.replica[0])},")
    target = scene.master[(scene.owners[slot] + 1) % 3]
    with subprocess.Popen(scene.cluster.command("move", "alpha", "--to", place(target)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        try:
            # It takes some 2 s, and may take as long as it takes to find that a node is away.
            eventually(lambda: process.poll() is not None, 20, "the move has ended")
            assert process.returncode == 0, process.stdout.read()
        finally:
            process.kill()
