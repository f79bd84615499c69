"""The dashboard of a real server, with real clients."""

import json
import threading
from urllib.request import urlopen

import pytest
import redis
from browser.conftest import DESK, PHONE, prefer, size
from browser.page import Page

from harness.server import Tenant
from harness.waiting import eventually

WEB, BATCH, MEAN = Tenant("web", weight=3), Tenant("batch", weight=1), Tenant("mean", extra='limit = { requests = "50/s", max_wait = "10ms" }')

pytestmark = pytest.mark.ours


class Traffic:
    """Clients that ask as fast as they are answered, until the end."""

    def __init__(self, server):
        self.server, self.ended = server, threading.Event()
        self.threads = []

    def start(self, tenant, depth=8):
        self.threads.append(threading.Thread(target=self.run, args=(tenant, depth), daemon=True))
        self.threads[-1].start()

    def run(self, tenant, depth):
        client = redis.Redis(port=self.server.port, username=tenant.name, password=tenant.password, protocol=3)
        while not self.ended.is_set():
            pipe = client.pipeline(transaction=False)
            for number in range(depth):
                pipe.set(f"key{number}", "x" * 100)
                pipe.get(f"key{number}")
                pipe.get(f"key{number}")
            try:
                pipe.execute(raise_on_error=False)
            except redis.ConnectionError:
                return  # the test ended the server

    def stop(self):
        self.ended.set()
        for thread in self.threads:
            thread.join(10)


@pytest.fixture
def busy(start):
    """A server under load of three tenants, one of which is throttled."""
    server = start(tenants=(WEB, BATCH, MEAN))
    traffic = Traffic(server)
    for tenant in (WEB, WEB, BATCH, MEAN, MEAN, MEAN):
        traffic.start(tenant)
    yield server
    traffic.stop()


def api(server, path):
    with urlopen(f"http://127.0.0.1:{server.admin_port}{path}", timeout=10) as answer:
        return json.load(answer)


def url(server):
    return f"http://127.0.0.1:{server.admin_port}"


def test_the_numbers_are_the_servers(browser, busy):
    page = Page(browser, url(busy))
    eventually(lambda: page.rate("web") > 0 and page.rate("batch") > 0)

    def agrees():
        # Both look at the last 3 s, up to a second apart, at a rate that moves: within half of each
        # other.
        told = {one["name"]: one for one in api(busy, "/api/live")["tenants"]}
        shown, counted = page.rate("web"), told["web"]["requests_per_s"]
        return counted > 0 and 0.5 < shown / counted < 2

    eventually(agrees)
    # What the page shows at one moment fits together, and with what the server counts since the
    # start.
    before = {one["name"]: sum(c["requests"] for c in one["classes"]) for one in api(busy, "/api/tenants")}
    assert before["web"] > 0
    told = api(busy, "/api/live")
    shares = [one["share"]["got_percent"] for one in [*told["tenants"], told["newcomers"]]]
    assert abs(sum(shares) - 100) < 1
    assert abs(sum(one["requests_per_s"] for one in told["tenants"]) - told["server"]["requests_per_s"]) < 1
    # Of weights 3, 1 and 1.
    eventually(lambda: page.cell("web", "share").split("|")[1].strip() == "60.0")
    assert 0 < float(page.cell("web", "share").split("|")[0]) <= 100
    eventually(lambda: all(page.drawn(place) > 1000 for place in range(3)), what="three plots are drawn")
    assert page.js("return document.querySelector('#facts').textContent").count("of 2") <= 2
    assert page.text(".stages tbody").count("request") >= 1


def test_a_throttled_tenant_is_seen(browser, busy):
    page = Page(browser, url(busy))
    eventually(lambda: page.cell("mean", "throttled") not in (None, "·"))
    assert "throttled" in page.js("return [...document.querySelectorAll('tr.refused')].map(row => row.textContent).join()")
    page.js("location.hash = '#/tenant/mean'")
    eventually(lambda: "limit.requests50/s" in page.js("return [...document.querySelectorAll('.pairs')].map(list => list.textContent).join()"))
    # It is drawn once the rate is near it.
    eventually(lambda: "limit" in page.js("return [...document.querySelectorAll('.plot-area')].map(plot => plot.getAttribute('aria-label')).join()"))


def test_one_tenant_s_page_says_where_its_time_goes(browser, busy):
    page = Page(browser, url(busy), "#/tenant/web")
    eventually(lambda: len(page.all(".stack i")) > 0)
    rows = "return [...document.querySelectorAll('[aria-label=Classes] tbody tr')].map(row => row.cells[0].textContent)"
    eventually(lambda: {"get", "put"} <= set(page.js(rows)))
    widths = page.js("return [...document.querySelectorAll('.stack i')].reduce((sum, part) => sum + part.getBoundingClientRect().width, 0) / document.querySelector('.stack').clientWidth")
    assert widths > 0.98, "the parts add up to the whole"

    def a_second_adds_up():
        told = api(busy, "/api/live/web")
        time = told["time"]
        parts = {part["part"]: part["mean_ms"] for part in time["parts"]}
        assert time["mean_ms"] > 0 and abs(sum(parts.values()) - time["mean_ms"]) < 0.01
        assert parts["commit"] > 0 and parts["reply"] > 0 and parts["together"] > 0, "every round writes, in a pipeline"
        # Measured one by one, the parts are the latency.
        latency = sum(c["latency"]["mean_ms"] * c["requests_per_s"] for c in told["classes"]) / sum(c["requests_per_s"] for c in told["classes"])
        assert abs(latency / time["mean_ms"] - 1) < 0.05
        assert told["live"]["occupancy"] > 0, "somebody always waits on a busy server"
        return True

    # Beside other work there are seconds in which the server does nothing.
    eventually(a_second_adds_up)
    others = "return [...document.querySelectorAll('[aria-label=Others] tbody a')].map(link => link.textContent)"
    eventually(lambda: "batch" in page.js(others), 20, "batch is beside it")


@pytest.mark.parametrize("window", ["desk", "phone", "dark"])
def test_it_fits(browser, busy, window, tmp_path):
    """The picture is kept, for people to look at, where a failed test's files are."""
    size(browser, PHONE if window == "phone" else DESK)
    prefer(browser, "dark" if window == "dark" else "light")
    page = Page(browser, url(busy))
    eventually(lambda: page.rate("web") > 0 and page.drawn(0) > 0)
    assert page.overflow() == 0
    assert browser.save_screenshot(str(tmp_path / f"{window}.png"))
    size(browser, DESK)


def test_a_server_that_ends_is_missed_and_found_again(browser, busy, start):
    page = Page(browser, url(busy))
    eventually(lambda: page.rate("web") > 0)
    busy.kill()
    page.wait_for_state("no answer")
    busy.start()
    eventually(lambda: page.text("#state") == "live", timeout_s=30)
