"""An admin address that says what the test wants: tenants whose names no server would take, or two hundred of them.

It serves the dashboard's own files from the repository, under the same headers as the real one, so what is seen is the page's doing.
"""

import json
import re
import threading
import time
import zlib
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote

from harness.paths import ROOT

WEB = ROOT / "web"
PAGES = (ROOT / "crates/telemetry/src/admin/pages.rs").read_text("utf-8")
# `file!("name", KIND)` or `file!("name", KIND, "path")`: the table that the binary is built from.
FILES = {name: path or name for name, path in re.findall(r'file!\("([^"]+)", \w+(?:, "([^"]+)")?\)', PAGES)}
POLICY = re.sub(r"\s*\\\s*", " ", re.search(r'const POLICY: &str = "(.*?)";', PAGES, re.DOTALL)[1])
TYPES = {"html": "text/html; charset=utf-8", "js": "text/javascript; charset=utf-8", "css": "text/css; charset=utf-8"}
# The words of the parts of a request's time, in the order of the table that the binary is built
# from.
PARTS = re.findall(r'row\(Part::\w+, "\w+", \("([^"]+)"', (ROOT / "crates/telemetry/src/parts.rs").read_text("utf-8"))
# Quicker than a real server, so that tests are.
STEP_S = 0.05


def tenant(name, rate=0.0, got=0.0, entitled=0.0, **more):
    """A tenant as /api/live tells it."""
    stages = [
        {"stage": "request", "waiting": 0, "permits_busy": 0.25, "admitted_per_s": rate, "asked_per_s": rate, "wait_mean_ms": 0.2 if rate else None},
        {"stage": "handler", "waiting": 0, "permits_busy": 0.0, "admitted_per_s": 0.0, "asked_per_s": 0.0, "wait_mean_ms": None},
    ]
    return {
        "name": name, "number": zlib.crc32(name.encode()) % 1000 + 1, "weight": 1.0, "requests_per_s": rate, "asked_per_s": rate, "throttled_per_s": 0.0, "bytes_in_per_s": 0.0, "bytes_out_per_s": 0.0,
        "errors_per_s": 0.0, "cpu_charged_per_s": 0.0, "occupancy": 0.0, "connections": 1,
        "share": {"configured_percent": entitled, "entitled_percent": entitled, "got_percent": got},
        "class": "get" if rate else None, "p50_ms": 0.1 if rate else None, "p99_ms": 1.5 if rate else None, "stages": stages, **more,
    }  # fmt: skip


def stage(name, core, waiting=()):
    """A stage of a core with these (tenant, number) in line."""
    principals = [{"name": who, "waiting": count, "permits_in_use": 0, "reserved_permits": 0, "admitted": 9} for who, count in waiting]
    return {
        "stage": name, "core": core, "policy": "fair", "permits": 8, "permits_busy": 2.5, "admitted_per_s": 1234.5,
        "waiting": sum(count for _, count in waiting), "principals": principals, "principals_total": len(principals),
    }  # fmt: skip


def snapshot(name):
    """A tenant as /api/tenants tells it."""
    return {
        "name": name, "weight": 1.0, "reserved_permits": 0, "sync": "every 1s", "connections": 1, "waiting": 0, "keys": 1000,
        "cache_hits": 90, "cache_misses": 10, "cache_bytes": 5e6, "cache_granted_bytes": 8e6,
        "cache_allotment_bytes": 9e6,
        "block_cache_hits": 5, "block_cache_misses": 5, "block_cache_bytes": 2e6, "block_cache_granted_bytes": 4e6,
        "block_cache_allotment_bytes": 3e6, "write_buffer_bytes": 1e6, "write_buffer_granted_bytes": 8e6,
        "write_buffer_allotment_bytes": 8e6, "uncommitted_bytes": 0, "disk_bytes": 7e8,
        "limit_requests_per_s": 5000.0, "stages": [], "promises": [promise()],
    }  # fmt: skip


def promise():
    """A p99 that is missed, with where its late requests lost their time."""
    hour = {"windows_met": 342, "windows_missed": 18, "windows_without_data": 0, "met_percent": 95.0, "budget_left_percent": -40.0}
    days = {"windows_met": 0, "windows_missed": 0, "windows_without_data": 9, "met_percent": None, "budget_left_percent": None}
    delays = [{"line": "device", "behind": "<b>batch</b>", "mean_ms": 24.5}, {"line": "core", "behind": "shop", "mean_ms": 0.5}]
    late = {"looked_at": 40, "parts": [{"part": "device", "words": "waiting for the disk", "short": "disk queue", "about": "", "mean_ms": 30.0}], "delays": delays}
    return {
        "workload": "pages", "class": "get", "percentile": 99.0, "at_most_ms": 20.0, "window_s": 10.0, "throughput_per_s": None, "contract_per_s": 1500.0, "contract_portion": 1.0, "throughput_portion": 1.0,
        "importance": 80, "requests": 100000, "late": 1400, "beyond": 0, "beyond_late": 0,
        "last": {"outcome": "missed", "latency_ms": 31.5, "sample": 12000, "sample_late": 170, "served_per_s": 1200.0}, "hour": hour, "days": days, "late_time": late,
    }  # fmt: skip


def delays():
    """Rows of /api/delays."""
    rows = [("web", "pages", "batch", 24.5), ("web", "pages", "shop", 0.5), ("shop", None, "batch", 3.0)]
    return [{"tenant": tenant, "workload": workload, "class": "get", "looked_at": 40, "line": "device", "behind": behind, "mean_ms": ms} for tenant, workload, behind, ms in rows]


def attainment(now_s):
    """Two promises as /api/attainment/{name} tells them: one is missed for ten minutes, and overdrawn, the other is of a rate."""

    def step(at_s, missed, late):
        return {"at_ms": at_s * 1000, "windows_met": 6 - missed, "windows_missed": missed, "windows_without_data": 0, "requests": 1000, "requests_late": late}

    minutes = [now_s // 60 * 60 - 60 * ago for ago in range(59, -1, -1)]
    days = [now_s // 21600 * 21600 - 21600 * ago for ago in range(119, -1, -1)]
    hour = [step(at_s, *((4, 90) if 30 <= place < 40 else (0, 2))) for place, at_s in enumerate(minutes)]
    late = [step(at_s, 1 if place % 17 == 3 else 0, 4) for place, at_s in enumerate(days)]
    return [
        {"workload": "pages", "class": "get", "percentile": 99.0, "hour": hour, "days": late},
        {"workload": None, "class": "scan", "percentile": None, "hour": hour[20:], "days": late[100:]},
    ]


# As /api/live/{name} tells them: also what the page has never heard of.
SETTINGS = [
    {"key": "weight", "value": "2.5", "text": "2.5", "default": False, "set_at_run_time": True, "effect": "Its share."},
    {"key": "colour", "value": None, "text": "red", "default": False, "set_at_run_time": False, "effect": "How it looks."},
]


def device():
    """A device stage as /api/server tells it: overbooked."""
    operations = [{"operation": "read", "ios": 1000, "vops": 1200.0, "device_s": 2.5}, {"operation": "delete", "ios": 0, "vops": 0.0, "device_s": 0.0}]
    return {
        "floor_vops_per_s": 18000.0, "promisable_vops_per_s": 19000.0, "capacity_vops_per_s": 17000.0, "missing_vops_per_s": 1000.0, "used_vops_per_s": 16000.0,
        "reserved_vops_per_s": 20000.0, "overbooked_vops_per_s": 2000.0, "reservation_scale": 0.9, "learn_prices": True, "permits": 12, "in_flight": 5,
        "waiting": 3, "operations": operations,
    }  # fmt: skip


def together(of="get", workload=None, **more):
    """A promise of three fronts as /api/cluster tells it."""
    hour = {"windows_met": 351, "windows_missed": 9, "windows_without_data": 0, "met_percent": 97.5, "budget_left_percent": 12.5}
    days = {"windows_met": 0, "windows_missed": 0, "windows_without_data": 9, "met_percent": None, "budget_left_percent": None}
    kept = "at_most_ms" in more
    last = {"outcome": "met" if kept else "missed", "latency_ms": 12.5 if kept else None, "sample": 12000, "sample_late": 17, "served_per_s": 1200.0}
    return {
        "workload": workload, "class": of, "fronts": 3, "percentile": None, "at_most_ms": None, "window_s": 10.0, "contract_per_s": None, "contract_portion": 1.0,
        "throughput_per_s": None, "throughput_portion": 1.0, "last": last, "hour": hour, "days": days, **more,
    }  # fmt: skip


def cluster():
    """A cluster as /api/cluster tells it: two nodes, of which one has no front, and a move."""
    web = [{"at": "10.0.0.1:7001", "partitions": 6, "busy": 0.4}, {"at": "10.0.0.2:7001", "partitions": 2, "busy": 0.05}]
    return {
        "nodes": [
            {"at": "10.0.0.1:7001", "slots": 10000, "partitions": 7, "fronts": ["10.0.0.1:6381"], "here": True, "busy": 0.75},
            {"at": "10.0.0.2:7001", "slots": 6384, "partitions": 2, "fronts": [], "here": False, "busy": 0.05},
        ],
        "tenants": [
            {"name": "web", "partitions": 8, "weight": 10.0, "weight_here": 7.5, "waits": True, "nodes": web, "promises": [together(at_most_ms=20.0, percentile=99.0, contract_per_s=1500.0, contract_portion=0.25)]},
            {
                "name": "<b>batch</b>", "partitions": 1, "weight": 1.0, "weight_here": 1.0, "waits": False, "nodes": [{"at": "10.0.0.1:7001", "partitions": 1, "busy": 0.35}],
                "promises": [together("scan", "<i>nightly</i>", throughput_per_s=2000.0, throughput_portion=0.4)],
            },
        ],
        "tenants_total": 2,
        "moves": [{"slots": "7-90", "tenants": ["web"], "from": "10.0.0.1:7001"}],
    }  # fmt: skip


def tenant_device():
    """One tenant's part of it, as /api/tenants tells it."""
    used = [("put", "log", 60.0), ("none", "flush", 30.0), ("get", "get", 10.0)]
    return {
        "reserved_vops_per_s": 1000.0, "allocated_vops_per_s": 900.0, "used_vops_per_s": 950.0,
        "costs": [{"request": "put", "direct": 0.5, "flush": 0.25, "compaction": 0.125, "measured": True}],
        "used": [{"class": who, "activity": what, "ios": 4, "vops": vops} for who, what, vops in used],
    }  # fmt: skip


class StandIn:
    """The server. `tenants` and `stages` may be changed while it runs; `silent` makes it stop answering."""

    def __init__(self, tenants=(), stages=()):
        self.tenants, self.stages = list(tenants), list(stages)
        self.silent, self.streams = False, True
        self.state, self.reason = "ready", None
        self.device, self.doubt, self.control_failure = None, None, None
        self.cluster, self.attainment, self.explained = None, [], []
        self.past = []
        self.newcomers = tenant("(newcomers)")
        self.stopped = threading.Event()
        outer = self

        class Handler(_Handler):
            server_of = outer

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.http.server_port}"
        threading.Thread(target=self.http.serve_forever, daemon=True).start()

    def stop(self):
        self.stopped.set()
        self.http.shutdown()
        self.http.server_close()

    def live(self):
        """GET /api/live."""
        total = sum(one["requests_per_s"] for one in self.tenants)
        server = {
            "state": self.state, "version": "0.1.0", "uptime_s": 4000, "scheduler": "fair", "cores": 2, "connections": 7, "connections_max": 100,
            "memory_resident": 3e8, "memory_process_max": 1e9, "memory_used": 5e7, "memory_max": 2e8, "cpu_per_s": 1.25, "requests_per_s": total, "throttled_per_s": 0.0,
            "bytes_in_per_s": 0.0, "bytes_out_per_s": 0.0, **({"reason": self.reason} if self.reason else {}),
            **({"device": self.device} if self.device else {}), **({"device_doubt": self.doubt} if self.doubt else {}),
            **({"control_failure": self.control_failure} if self.control_failure else {}),
        }  # fmt: skip
        at_ms = int(time.time() * 1000)
        return {"at_ms": at_ms, "span_s": 3.0, "server": server, "tenants": self.tenants, "tenants_total": len(self.tenants), "newcomers": self.newcomers, "stages": self.stages}

    def detail(self, name):
        """GET /api/live/{name}."""
        found = [one for one in self.tenants if one["name"] == name]
        if not found:
            return None
        spent = {"waiting for a turn": 0.5, "its work on the core": 0.2, "waiting for the commit": 0.3}
        parts = [{"part": words, "words": words, "short": words.split()[-1], "about": words, "mean_ms": spent.get(words, 0.0)} for words in PARTS]
        time_ = {"mean_ms": 1.0, "parts": parts}
        others = [one for one in self.tenants if one["name"] != name][:5]
        held = {**snapshot(name), **({"device": tenant_device()} if self.device else {})}
        return {
            "at_ms": int(time.time() * 1000), "span_s": 3.0, "live": found[0], "tenant": held, "classes": [], "time": time_,
            "places": [], "others": others, "settings": SETTINGS,
        }  # fmt: skip


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        """Nobody reads it."""

    def do_GET(self):
        server = self.server_of
        path = unquote(self.path)
        if server.silent:
            self.close_connection = True
        elif path == "/" or path.startswith("/ui/"):
            name = FILES.get(path.removeprefix("/ui/").removeprefix("/") or "index.html")
            self.answer((WEB / name).read_bytes() if name else b"", TYPES[name.rsplit(".", 1)[-1]] if name else "text/plain", 200 if name else 404)
        elif path == "/api/delays":
            self.answer(json.dumps(delays()).encode(), "application/json")
        elif path.startswith("/api/explain/"):
            self.answer(json.dumps({"lines": server.explained, "slowest": []}).encode(), "application/json")
        elif path.startswith("/api/attainment/"):
            self.answer(json.dumps(server.attainment).encode(), "application/json")
        elif path.startswith("/api/cluster"):
            self.answer(json.dumps(server.cluster).encode(), "application/json")
        elif path == "/api/history":
            self.answer(json.dumps({"steps": server.past}).encode(), "application/json")
        elif path.startswith("/api/live"):
            name = path.removeprefix("/api/live").removeprefix("/")
            self.answer(json.dumps(server.detail(name) if name else server.live()).encode(), "application/json")
        elif path.startswith("/api/events") and server.streams:
            self.stream(path.removeprefix("/api/events").removeprefix("/") or None)
        else:
            self.answer(b'{"error": {}}', "application/json", 503)

    def answer(self, body, kind, status=200):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Security-Policy", POLICY)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def stream(self, name):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        server = self.server_of
        try:
            while not server.stopped.wait(STEP_S) and not server.silent:
                events = [("live", server.live())] + ([("tenant", server.detail(name))] if name else [])
                for event, data in events:
                    self.wfile.write(f"event: {event}\nretry: 100\ndata: {json.dumps(data)}\n\n".encode())
        except OSError:
            pass  # the page was closed
        self.close_connection = True
