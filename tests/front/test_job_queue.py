"""RQ, a job queue that is in use as it is: transactions that watch, waits, streams, channels and scripts, by its own choice of each."""

import subprocess
import sys
import threading
from pathlib import Path

import redis
import rq
from rq.timeouts import TimerDeathPenalty

from harness.server import ALPHA, BETA, Tenant
from harness.waiting import eventually

SCRIPTS = [Tenant(tenant.name, extra="scripts = true") for tenant in (ALPHA, BETA)]


class Worker(rq.SimpleWorker):
    """One that works in a thread: without signals."""

    death_penalty_class = TimerDeathPenalty

    def _install_signal_handlers(self):
        pass


def connect(server, tenant):
    return redis.Redis(port=server.port, username=tenant.name, password=tenant.password)


def add(one, other):
    return one + other


def fail():
    raise ValueError("on purpose")


def test_two_teams_have_a_job_queue_of_the_same_name(engine, front):
    server = front(tenants=SCRIPTS, server_options="cores = 2")
    done = {}

    def team(tenant):
        connection = connect(server, tenant)
        queue = rq.Queue("jobs", connection=connection, death_penalty_class=TimerDeathPenalty)
        base = sum(tenant.name.encode())
        jobs = [queue.enqueue(add, base, number) for number in range(20)]
        after = queue.enqueue(add, 1, 1, depends_on=jobs[:3])
        once = queue.enqueue(add, 2, 2, job_id="once", unique=True)
        broken = queue.enqueue(fail)
        worker = Worker([queue], connection=connection, name=f"worker-{tenant.name}")
        worker.work(burst=True, with_scheduler=False, logging_level="ERROR")
        results = [job.return_value(refresh=True) for job in (*jobs, after, once)]
        assert broken.get_status(refresh=True) == rq.job.JobStatus.FAILED
        done[tenant.name] = results == [*range(base, base + 20), 2, 4]
        connection.close()

    teams = [threading.Thread(target=team, args=(tenant,)) for tenant in SCRIPTS]
    for thread in teams:
        thread.start()
    for thread in teams:
        thread.join(120)
    assert done == {tenant.name: True for tenant in SCRIPTS}


def test_a_worker_that_waits_is_given_what_comes_and_can_be_told_to_stop(engine, front, tmp_path):
    server = front(tenants=SCRIPTS)
    url = f"redis://{ALPHA.name}:{ALPHA.password}@127.0.0.1:{server.port}"
    program = Path(sys.executable).parent / "rq"
    connection = connect(server, ALPHA)
    queue = rq.Queue("jobs", connection=connection)
    with open(tmp_path / "worker.log", "w", encoding="utf-8") as log:
        worker = subprocess.Popen([program, "worker", "--url", url, "--name", "waits", "jobs"], stdout=log, stderr=log)
    try:
        eventually(lambda: rq.Worker.count(connection=connection) == 1, 30, "it is there")
        jobs = [queue.enqueue("operator.add", number, 1) for number in range(5)]
        eventually(lambda: [job.return_value(refresh=True) for job in jobs] == [1, 2, 3, 4, 5], 30, "it was given the jobs")
        # By a channel to which the worker listens.
        rq.command.send_shutdown_command(connection, "waits")
        assert worker.wait(60) == 0, (tmp_path / "worker.log").read_text()
        assert rq.Worker.count(connection=connection) == 0
    finally:
        worker.kill()
    # A lock is made of scripts, too.
    with connection.lock("lock", timeout=10) as lock:
        assert not connection.lock("lock").acquire(blocking=False)
        assert lock.extend(5)
    connection.close()
