"""The device stage of a running server: what is seen of it, and what is promised of it."""

import json
import random
import threading
import urllib.request

import pytest
import redis

from harness.server import Tenant
from harness.waiting import eventually

pytestmark = pytest.mark.ours

OPERATOR = Tenant("boss", extra="admin = true")
WRITER = Tenant("writer", sync="never")
PROMISED = Tenant("promised", sync="always", extra='reserve = { get = "200/s", put = "100/s" }')


def api(server, path):
    with urllib.request.urlopen(f"http://127.0.0.1:{server.admin_port}{path}", timeout=10) as answer:
        return json.load(answer)


def client(server, tenant):
    return redis.Redis(port=server.port, username=tenant.name, password=tenant.password, protocol=3)


def emulated(start, more="", tenants=(OPERATOR, PROMISED), handlers=16):
    """A server over an emulated SSD, with so small a cache that first reads need it."""
    options = f"object_cache = '1MiB'\nblock_cache = '8MiB'\nmemtable = '1MiB'\nhandlers = {handlers}\n[device]\nmodel = 'ssd'\n{more}"
    return start(tenants=tenants, engine_options=options)


def test_a_disk_that_is_not_scheduled_is_in_doubt(start):
    server = start(engine_options="[device]\nstage = false")
    told = api(server, "/api/server")
    assert "device" not in told and "device.stage is false" in told["device_doubt"]
    server.says("device.stage is false")
    assert "entremet_device_in_doubt 1" in server.metrics()


def test_each_class_s_part_of_the_device_is_seen(start):
    server = emulated(start)
    tenant = client(server, PROMISED)
    for number in range(400):
        tenant.set(f"key{number}", bytes(8000))
    for number in range(0, 400, 3):
        tenant.get(f"key{number}")

    def used():
        return {(one["class"], one["activity"]) for one in api(server, "/api/tenants/promised")["device"]["used"]}

    # Three memtables were filled, and what was written first is no longer cached.
    eventually(lambda: {("put", "log"), ("none", "flush"), ("get", "get")} <= used())

    def priced():
        device = api(server, "/api/tenants/promised")["device"]
        return device["allocated_vops_per_s"] > 0 and all(cost["measured"] and cost["direct"] > 0 for cost in device["costs"])

    eventually(priced)
    stages = {(row[b"stage"], row[b"tenant"]): row for row in client(server, OPERATOR).execute_command("ENTREMET", "STAGE")}
    at_the_device = stages[b"device", b"promised"]
    assert at_the_device[b"vops-allocated-per-s"] > 0 and at_the_device[b"vops-log"] > 0 and at_the_device[b"admitted"] > 400
    device = api(server, "/api/server")["device"]
    assert device["floor_vops_per_s"] > 1000 and device["reservation_scale"] == 1
    assert {one["operation"] for one in device["operations"] if one["ios"] > 0} >= {"read", "write", "sync"}
    assert any(stage["stage"] == "device" for stage in api(server, "/api/stages"))


def test_more_than_the_floor_is_refused_or_scaled_down(start):
    server = emulated(start)
    operator = client(server, OPERATOR)
    with pytest.raises(redis.ResponseError, match=r"would need \d+ VOP/s, \d+ more than the device's floor"):
        operator.execute_command("ENTREMET", "TENANT", "SET", "promised", "RESERVE-PUT", "50000/s")
    assert api(server, "/api/tenants/promised")["reserve_put_per_s"] == 100
    operator.execute_command("ENTREMET", "TENANT", "SET", "promised", "RESERVE-PUT", "50/s")

    server = emulated(start, "overbook = true\n")
    client(server, OPERATOR).execute_command("ENTREMET", "TENANT", "SET", "promised", "RESERVE-PUT", "50000/s")
    eventually(lambda: api(server, "/api/server")["device"]["overbooked_vops_per_s"] > 0)
    device = api(server, "/api/server")["device"]
    tenant = api(server, "/api/tenants/promised")["device"]
    assert 0 < device["reservation_scale"] < 1
    assert tenant["allocated_vops_per_s"] == pytest.approx(device["floor_vops_per_s"], rel=0.01)
    server.says("all are scaled down evenly")
    # What does not promise more is taken, however much that is.
    for change in ("RESERVE-PUT", "40000/s"), ("WEIGHT", "3"):
        client(server, OPERATOR).execute_command("ENTREMET", "TENANT", "SET", "promised", *change)


def test_handlers_that_are_kept_free_take_nothing_of_the_device(start):
    """`reserved_permits` are handlers. With as many taken from the device's few, an idle tenant would leave one to all others."""
    idle = Tenant("idle", extra="reserved_permits = 12")
    server = emulated(start, tenants=(OPERATOR, idle, WRITER), handlers=64)
    pipeline = client(server, WRITER).pipeline(transaction=False)
    for number in range(8_000):
        pipeline.set(f"key{number}", bytes(4_000))
    pipeline.execute()
    client(server, idle).set("its database", "is open")
    stop = threading.Event()

    def read(seed):
        pick, connection = random.Random(seed), client(server, WRITER)
        while not stop.is_set():
            connection.get(f"key{pick.randrange(8_000)}")

    readers = [threading.Thread(target=read, args=(seed,)) for seed in range(8)]
    for reader in readers:
        reader.start()
    try:

        def held():
            device = next(stage for stage in api(server, "/api/stages") if stage["stage"] == "device")
            return max((one["permits_in_use"] for one in device["principals"] if one["name"] == "writer"), default=0)

        eventually(lambda: held() > 1, 20, "several reads are at the device at the same time")
    finally:
        stop.set()
        for reader in readers:
            reader.join()


def test_who_outruns_its_flushes_pauses_and_nobody_else(start):
    server = emulated(start, tenants=(OPERATOR, PROMISED, WRITER))
    stop = threading.Event()

    def write_at_full_speed():
        pipeline = client(server, WRITER).pipeline(transaction=False)
        while not stop.is_set():
            for number in range(16):
                pipeline.set(f"key{number}", bytes(64 << 10))
            pipeline.execute()

    writers = [threading.Thread(target=write_at_full_speed) for _ in range(2)]
    for writer in writers:
        writer.start()
    try:
        tenant, number = client(server, PROMISED), 0
        # At least a millisecond, which is the least that the command tells.
        while number < 100 or api(server, "/api/tenants/writer")["write_paused_s"] < 1e-3:
            tenant.set(f"key{number}", bytes(1000))
            assert tenant.get(f"key{number // 2}") == bytes(1000)
            number += 1
            assert number < 20_000, "who writes at full speed was never slowed"
            # RocksDB would stall it at 1.
            assert api(server, "/api/tenants/writer")["write_pressure"] < 1
    finally:
        stop.set()
        for writer in writers:
            writer.join()
    assert api(server, "/api/tenants/promised")["write_paused_s"] == 0
    rows = client(server, OPERATOR).execute_command("ENTREMET", "STAGE", "writer")
    later = next(row for row in rows if row[b"stage"] == b"device-background")
    assert later[b"write-paused-ms"] > 0 and later[b"write-pressure-percent"] < 100
