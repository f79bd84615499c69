"""The page against an admin address that says what the test wants."""

import time

import pytest
from browser.conftest import DESK, PHONE, prefer, size
from browser.page import ENTER, ESCAPE, TAB, Page
from browser.stand_in import attainment, cluster, device, stage, tenant

from harness.waiting import eventually

HOSTILE = ["<img src=x onerror=\"window.hurt=1\">", "</script><script>window.hurt=1</script>", "a b&amp;<b>c</b>'\"`", "%3Cb%3E", "../etc?x=1#y"]
SCHEMES = {"light": "rgb(243, 245, 247)", "dark": "rgb(12, 15, 18)"}


def ran(name, rate):
    """A tenant as a step of /api/history tells it."""
    return {"name": name, "requests_per_s": rate, "p50_ms": 0.1, "p99_ms": 100 / rate, "got_percent": rate / 12}


def many(count):
    return [tenant(f"tenant-{i:03}", rate=1000.0 / (i + 1), got=50 / (i + 1), entitled=100 / count, number=i + 1) for i in range(count)]


def test_nobody_is_there(browser, stand_in):
    page = Page(browser, stand_in().url)
    assert "No tenant is configured" in page.text(".tenants-panel .none")
    assert page.names() == []


def test_the_device_is_told_of_where_there_is_a_stage_before_it(browser, stand_in):
    server = stand_in(many(2))
    page = Page(browser, server.url)
    shown = "return !document.querySelector('[aria-label=Device]').hidden"
    assert not page.js(shown), "there is none, and nothing to be said"
    server.doubt = "the disk is not scheduled yet"
    eventually(lambda: page.js(shown) and "the disk is not scheduled yet." in page.text("[aria-label=Device]"))
    server.doubt, server.device = None, device()
    eventually(lambda: "18 k VOP/s" in page.text("[aria-label=Device]"))
    text = page.text("[aria-label=Device]")
    for part in ("1000 VOP/s below its floor", "2000 VOP/s too many, so each gets 90", "5 of 12, 3 waiting", "read 2.5"):
        assert part in text, text
    assert "delete" not in text, "none was done"
    page.js("location.hash = '#/tenant/tenant-000'")
    eventually(lambda: "log for put" in (page.text("[aria-label='At the device']") or ""))
    text = page.text("[aria-label='At the device']")
    assert "1000 VOP/s needed, 900 VOP/s given" in text and "flushed 0.25, compacted 0.125" in text, text
    assert page.overflow() == 0


def test_promises_are_held_against_what_was_measured_and_who_delays_whom_is_shown(browser, stand_in):
    server = stand_in([tenant("web", rate=900.0, got=60, entitled=50, kept_percent=95.0), tenant("shop", rate=90.0)])
    page = Page(browser, server.url)
    assert (page.cell("web", "kept"), page.cell("shop", "kept")) == ("95.0", "")
    delays = "[aria-label='Who delayed whom']"
    eventually(lambda: "behind batch" in (page.text(delays) or ""))
    cells = page.js("return [...document.querySelectorAll('.delays tbody tr')].map(row => [...row.children].map(cell => cell.textContent))")
    assert cells == [["web, get of pages", "24.5", "0.5"], ["shop, get", "3", ""]]
    assert page.overflow() == 0
    page.js("location.hash = '#/tenant/web'")
    eventually(lambda: "get of pages" in (page.text("[aria-label=Promises]") or ""))
    text = page.text(".promises-panel")
    for part in ("p99 ≤ 20 ms in 10 s, up to 1500/s", "missed", "31.5 ms over 12 k, 1200/s", "95.0 %", "no data", "overdrawn by 40.0 %", "waiting for the disk 30 ms (100", "<b>batch</b> 24.5 ms (device)"):
        assert part in text, text
    size(browser, PHONE)
    assert page.overflow() == 0


def test_how_promises_were_kept_is_drawn_and_the_tenant_is_explained_in_words(browser, stand_in):
    server = stand_in([tenant("web", rate=900.0, got=60, entitled=50)])
    server.attainment, server.explained = attainment(int(time.time())), ["web: weight 6", "what it would take: get is kept for up to 1100/s"]
    page = Page(browser, server.url, "#/tenant/web")
    titles = ["Windows kept, last hour, %", "Error budget left, last hour, %", "Windows kept, 30 days, %", "Error budget left, 30 days, %"]
    for title in titles:
        label = title.removesuffix(", %")
        eventually(lambda label=label: title in (page.text(f"[aria-label='{label}'] .plot-title") or ""), what=label)
    named = page.js("return [...document.querySelectorAll(\"[aria-label='Windows kept, last hour'] .plot-name\")].map(one => one.textContent)")
    assert named == ["get of pages", "scan"]
    named = page.js("return [...document.querySelectorAll(\"[aria-label='Error budget left, last hour'] .plot-name\")].map(one => one.textContent)")
    assert named == ["get of pages"], "a rate has no requests that may be late"
    eventually(lambda: "up to 1100/s" in (page.text("[aria-label='In words']") or ""))
    eventually(lambda: "request" in (page.text("[aria-label='Permits in use']") or ""))
    for width in (None, PHONE):
        if width:
            size(browser, width)
        assert page.overflow() == 0


def test_a_controller_that_failed_is_told_of(browser, stand_in):
    server = stand_in([tenant("web", rate=900.0)])
    page = Page(browser, server.url)
    assert not page.one("#banner").is_displayed()
    server.control_failure = "controller auto failed 3 s ago, once since the start: index out of bounds; what it gave last stays in force until it begins anew"
    eventually(lambda: "The controller auto failed 3 s ago" in page.text("#banner"))
    server.control_failure = None
    eventually(lambda: not page.one("#banner").is_displayed())


def test_the_cluster_is_shown_where_there_is_one(browser, stand_in):
    server = stand_in([tenant("web", rate=900.0)])
    page = Page(browser, server.url)
    shown = "return !document.querySelector('.cluster-panel').hidden"
    assert not page.js(shown), "there is none"
    server.cluster = cluster()
    eventually(lambda: page.js(shown) and "10.0.0.2:7001" in page.text(".cluster-panel"))
    rows = "return [...document.querySelectorAll(arguments[0] + ' tbody tr')].map(row => [...row.children].map(cell => cell.textContent))"
    assert page.js(rows, "[aria-label=Nodes]") == [
        ["10.0.0.1:7001here", "75.0 %", "", "7", "10 k", "10.0.0.1:6381"],
        ["10.0.0.2:7001", "5.0 %", "", "2", "6384", "none"],
    ]
    assert page.js(rows, "[aria-label=Partitions]") == [
        ["web", "7.5 of 10", "6 · 40.0 %", "2 · 5.0 %"],
        ["<b>batch</b>", "1 of 1", "1 · 35.0 %", ""],
    ]
    assert page.js(rows, "[aria-label='Promises at all fronts']") == [
        ["web, get met", "97.5 %", "", "no data", "12.5 %", "12.5 ms over 12 k, 1200/s", "p99 ≤ 20 ms in 10 s, up to 1500/s", "375 of 1500/s", "", "–", "", "3"],
        ["<b>batch</b>, scan of <i>nightly</i> missed", "97.5 %", "", "no data", "12.5 %", "1200/s", "≥ 2000/s in 10 s", "–", "", "800 of 2000/s", "", "3"],
    ]
    widths = "return [...document.querySelectorAll('.together .fill')].map(bar => bar.style.width)"
    assert page.js(widths) == ["97.5%", "25%", "97.5%", "40%"]
    assert "2 nodes, 2 tenants" in page.text(".cluster-panel")
    assert "Being moved: slots 7-90 of web, now at 10.0.0.1:7001." in page.text(".cluster-panel")
    assert page.overflow() == 0
    page.js("location.hash = '#/tenant/web'")
    over = "[aria-label='Over all nodes']"
    eventually(lambda: "10.0.0.2:7001" in (page.text(over) or ""))
    assert "8 partitions, weight 7.5 here of 10, waits before a node" in page.text(over)
    assert page.js(rows, f"{over} .together")[0][5:8] == ["12.5 ms over 12 k, 1200/s", "p99 ≤ 20 ms in 10 s, up to 1500/s", "375 of 1500/s"]
    size(browser, PHONE)
    assert page.overflow() == 0


@pytest.mark.parametrize("width", [1600, 1440, 1300, 1100, 800])
@pytest.mark.parametrize("place", ["#/", "#/tenant/tenant-000"])
def test_a_window_of_any_width_needs_no_sideways_scrolling(browser, stand_in, place, width):
    """With every column that there can be, a long name, and a stage before which many tenants wait."""
    size(browser, (width, 1000))
    names = many(8) + [tenant("web-frontend-production", rate=12345.0, got=33.3, entitled=33.3, kept_percent=100.0, throttled_per_s=1234.0, **{"class": "multiget"})]
    line = [(f"tenant-00{number}", 900 - number) for number in range(8)]
    server = stand_in(names, [stage("request", 0, line), stage("handler", 0, line), stage("device", 0, line)])
    server.device = device()
    page = Page(browser, server.url, place)
    eventually(lambda: page.drawn(0) > 0)
    assert page.overflow() == 0
    beyond = "return [...document.querySelectorAll('.panel')].filter(e => e.scrollWidth > e.clientWidth).map(e => e.ariaLabel)"
    assert page.js(beyond) == []


def test_two_hundred_are_listed_and_can_be_found(browser, stand_in):
    server = stand_in(many(200), [stage("request", 0, [("tenant-003", 8), ("tenant-001", 2)])])
    page = Page(browser, server.url)
    assert len(page.names()) == 200
    assert page.names()[:2] == ["tenant-000", "tenant-001"], "by rate"
    assert "200 tenants" in page.text(".tenants-panel .count")
    assert page.overflow() == 0
    page.press("/")
    page.press("017")
    assert eventually(page.names, what="a row is left") == ["tenant-017"]
    assert "1 of 200" in page.text(".tenants-panel .count")
    page.press(ESCAPE)
    eventually(lambda: len(page.names()) == 200)
    queue = page.text(".stages .queue")
    assert "tenant-003 8" in queue and "tenant-001 2" in queue


def test_names_stay_names(browser, stand_in):
    page = Page(browser, stand_in([tenant(name, rate=5.0, got=10) for name in HOSTILE], [stage("request", 0, [(HOSTILE[0], 3)])]).url)
    eventually(lambda: page.drawn(0) > 0)
    assert sorted(page.names()) == sorted(HOSTILE)
    assert page.all("main img, main b:not(.badge), main script") == []
    for name in HOSTILE:
        # The link leads to the tenant of exactly that name, whatever the name means elsewhere.
        page.js("[...document.querySelectorAll('a.tenant-link')].find(link => link.textContent === arguments[0]).click()", name)
        eventually(lambda name=name: page.text("h2.name") == name and page.text(".figures dd") == "5 req/s")
        assert page.all("main img, main b:not(.badge), main script") == []
        assert page.js("return window.hurt") is None
        page.press(ESCAPE)
        eventually(lambda: len(page.names()) == len(HOSTILE))


def test_pause_holds_the_numbers(browser, stand_in):
    server = stand_in([tenant("web", rate=100.0, got=50)])
    page = Page(browser, server.url)
    page.press("p")
    assert page.text("#state") == "paused"
    held = page.rate("web")
    server.tenants = [tenant("web", rate=777.0, got=50)]
    before = page.js("return performance.now()")
    eventually(lambda: page.js("return performance.now()") > before + 500)
    assert page.rate("web") == held
    page.click("#pause")
    eventually(lambda: page.rate("web") == 777.0)
    page.wait_for_state("live")


def test_a_server_that_falls_silent_is_said_to_be(browser, stand_in):
    server = stand_in([tenant("web", rate=100.0, got=50)])
    page = Page(browser, server.url)
    server.silent = True
    page.wait_for_state("no answer")
    assert "does not answer" in page.text("#banner") and page.one("#banner").is_displayed()
    assert page.rate("web") == 100.0, "the last numbers stay, told to be old"
    server.silent = False
    page.wait_for_state("live")
    assert not page.one("#banner").is_displayed()


def test_where_no_stream_is_to_be_had_it_asks(browser, stand_in):
    server = stand_in([tenant("web", rate=100.0, got=50)])
    server.streams = False
    page = Page(browser, server.url)
    eventually(lambda: "asking each second" in page.text("#banner"))
    server.tenants = [tenant("web", rate=555.0, got=50)]
    eventually(lambda: page.rate("web") == 555.0)


def test_a_draining_server_says_why(browser, stand_in):
    server = stand_in([tenant("web")])
    page = Page(browser, server.url)
    server.state, server.reason = "draining", "finishing what is under way"
    page.wait_for_state("draining")
    assert "finishing what is under way" in page.text("#banner")


@pytest.mark.parametrize("scheme", SCHEMES)
def test_it_follows_the_system_and_the_switch(browser, stand_in, scheme):
    prefer(browser, scheme)
    page = Page(browser, stand_in([tenant("web", rate=1.0, got=1)]).url)
    page.js("localStorage.clear()")
    assert page.ground() == SCHEMES[scheme]
    seen = []
    for _ in range(3):
        page.press("t")
        seen.append((page.text("#theme"), page.ground()))
    assert seen == [("Theme: light", SCHEMES["light"]), ("Theme: dark", SCHEMES["dark"]), ("Theme: auto", SCHEMES[scheme])]
    page.press("t")
    page = Page(browser, page.browser.current_url.split("/#")[0])
    assert page.text("#theme") == "Theme: light", "the choice is remembered"
    page.js("localStorage.clear()")


@pytest.mark.parametrize("place", ["#/", "#/tenant/tenant-000"])
def test_a_phone_needs_no_sideways_scrolling(browser, stand_in, place):
    size(browser, PHONE)
    names = many(30) + [tenant("a-name-of-sixty-four-characters-as-long-as-a-name-may-be-in-here1", rate=9.0, got=1, throttled_per_s=4.0)]
    page = Page(browser, stand_in(names, [stage("request", 0, [("tenant-001", 5), ("tenant-002", 900)]), stage("handler", 0), stage("device", 0)]).url, place)
    eventually(lambda: page.drawn(0) > 0)
    assert page.overflow() == 0
    wider = "return [...document.querySelectorAll('main *')].filter(e => e.getBoundingClientRect().right > innerWidth + 1 && !e.closest('.scroll, .queue')).length"
    assert page.js(wider) == 0
    if place == "#/":
        assert page.cell("tenant-000", "p99") == "1.5"
        hidden = page.js("return [...document.querySelectorAll('.tenants thead th')].filter(head => head.offsetParent === null).length")
        assert hidden == 12, "only what a phone has room for"
    size(browser, DESK)


def test_everything_is_done_with_keys(browser, stand_in):
    page = Page(browser, stand_in(many(5)).url)
    page.press("j", "j")
    assert page.focused() == "tenant-001"
    outline = page.js("return getComputedStyle(document.activeElement).outlineStyle")
    assert outline != "none", "who has the focus is seen"
    page.press("k", ENTER)
    eventually(lambda: page.text("h2.name") == "tenant-000")
    page.press(ESCAPE)
    eventually(lambda: len(page.names()) == 5)
    page.press("r")
    assert page.names()[0] == "tenant-004"
    page.press("s")
    sorted_by = "return document.querySelector('.tenants th[aria-sort=descending], .tenants th[aria-sort=ascending]').textContent"
    assert page.js(sorted_by).startswith("asks")
    page.press("?")
    assert page.one("#keys").is_displayed()
    page.press("p")
    assert page.text("#state") == "live", "keys in the dialog are the dialog's"
    page.press(ESCAPE)
    assert not page.one("#keys").is_displayed()


def test_idle_tenants_can_be_hidden(browser, stand_in):
    page = Page(browser, stand_in([*many(2), tenant("idle")]).url)
    assert len(page.names()) == 3
    page.press("i")
    assert page.names() == ["tenant-000", "tenant-001"]
    assert "1 idle" in page.text(".tenants-panel .count")


def test_the_focus_stays_where_it_is_while_numbers_move(browser, stand_in):
    server = stand_in(many(5))
    page = Page(browser, server.url)
    page.press("j")
    server.tenants = list(reversed(many(5)))
    for one in server.tenants:
        one["requests_per_s"] = 5000.0 - one["requests_per_s"]
    eventually(lambda: page.rate("tenant-000") == 4000.0)
    assert page.focused() == "tenant-000"
    page.press(TAB)
    assert page.focused() == "tenant-001", "rows do not jump under a hand"


def test_what_is_seen_is_also_said(browser, stand_in):
    page = Page(browser, stand_in(many(3)).url)
    eventually(lambda: page.drawn(0) > 0)
    nameless = """
        const named = e => (e.getAttribute('aria-label') || e.textContent || e.title || '').trim() !== '' || e.labels?.length;
        return [...document.querySelectorAll('button, a, input, [role=img], table, section')].filter(e => !named(e)).map(e => e.outerHTML.slice(0, 80))"""
    assert page.js(nameless) == []
    plot = page.one(".plot-area[role=img]").get_attribute("aria-label")
    assert "tenant-000" in plot and "req/s" in plot
    assert page.one("html").get_attribute("lang") == "en"
    assert page.js("return document.querySelector('.plot-legend button').getAttribute('aria-pressed')") == "true"


def test_lines_can_be_hidden(browser, stand_in):
    page = Page(browser, stand_in(many(3)).url)
    eventually(lambda: page.drawn(0) > 0)
    button, drawn = page.one(".plot-legend button"), page.drawn(0)
    button.click()
    assert button.get_attribute("aria-pressed") == "false"
    before = page.js("return performance.now()")
    eventually(lambda: page.js("return performance.now()") > before + 300)
    assert button.get_attribute("aria-pressed") == "false", "a new second neither undoes it nor makes the legend anew"
    assert page.drawn(0) < drawn, "a line is gone"


@pytest.mark.parametrize(("window", "scheme"), [(DESK, "light"), (DESK, "dark"), (PHONE, "light")])
def test_plots_begin_with_what_was_before_the_page(browser, stand_in, window, scheme, tmp_path):
    prefer(browser, scheme)
    size(browser, window)
    server = stand_in([tenant("web"), tenant("batch")])
    page = Page(browser, server.url)
    assert "web" not in page.text(".plots"), "who does nothing is not drawn"
    now_ms = int(time.time() * 1000)
    past = [{"at_ms": now_ms - 5000 * age, "others": 0, "tenants": [ran("web", 900 - 10 * age), ran("batch", 200 + 5 * age)]} for age in range(50, 0, -1)]
    server.past = past
    browser.refresh()
    eventually(lambda: "web" in page.text(".plots") and "batch" in page.text(".plots"), what="who was busy is drawn")
    eventually(lambda: page.js("return [...document.querySelectorAll('.plot-area')].length") == 3)
    assert all(page.drawn(place) > 0 for place in range(3))
    assert page.overflow() == 0
    browser.save_screenshot(str(tmp_path / "past.png"))


def test_every_setting_that_the_server_names_is_shown(browser, stand_in):
    page = Page(browser, stand_in(many(2)).url, "#/tenant/tenant-001")
    rows = "return [...document.querySelectorAll('[aria-label=Settings] dl div')].map(row => [row.title, ...[...row.children].map(cell => cell.textContent)])"
    told = [["Its share.", "weight", "2.5 (set at run time)"], ["How it looks.", "colour", "red"]]
    eventually(lambda: page.js(rows) == told)


def test_a_tenant_that_leaves_is_missed(browser, stand_in):
    server = stand_in(many(2))
    page = Page(browser, server.url, "#/tenant/tenant-001")
    eventually(lambda: page.text(".figures dd") == "500 req/s")
    server.tenants = many(1)
    eventually(lambda: "no tenant of this name" in page.text(".page > .none"))
    assert not page.one(".page-content").is_displayed()
    server.tenants = many(2)
    eventually(lambda: page.one(".page-content").is_displayed())


def test_the_files_suffice_under_their_policy(browser, stand_in):
    server = stand_in(many(1))
    Page(browser, server.url)
    blocked = browser.execute_script("return performance.getEntriesByType('resource').filter(r => !r.name.startsWith(location.origin)).length")
    assert blocked == 0, "nothing comes from elsewhere"
    browser.execute_script("const s = document.createElement('script'); s.textContent = 'window.hurt = 1'; document.body.append(s)")
    assert browser.execute_script("return window.hurt") is None
    browser.get_log("browser")
