"""A headless Chromium, driven through Debian's chromedriver."""

import shutil

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.service import Service

from browser.stand_in import StandIn

DESK, PHONE = (1400, 1000), (390, 844)


@pytest.fixture(scope="session")
def chromium():
    """The one browser of the session."""
    binary, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if not (binary and driver):
        pytest.exit("chromium and chromedriver are missing: make setup installs them", 2)
    options = webdriver.ChromeOptions()
    options.binary_location = binary
    # Containers have no user namespaces for the sandbox and little shared memory; the pages are
    # ours.
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--hide-scrollbars", "--lang=en"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    browser = webdriver.Chrome(options=options, service=Service(driver))
    yield browser
    browser.quit()


@pytest.fixture
def browser(chromium):
    """The browser at desk size, light, with nothing remembered; what the page complained of fails the test."""
    chromium.get("about:blank")
    size(chromium, DESK)
    prefer(chromium, "light")
    chromium.get_log("browser")
    yield chromium
    # Tests end servers and have them fall silent; how Chromium calls that depends on the moment. A
    # file that is not there is a 404.
    lost = ("net::ERR_", "503 (")
    said = [line["message"] for line in chromium.get_log("browser") if line["level"] == "SEVERE"]
    chromium.get("about:blank")
    assert not [line for line in said if not any(word in line for word in lost)]


@pytest.fixture
def stand_in():
    """A function that starts an admin address of the test's own making."""
    started = []

    def launch(*args, **more):
        started.append(StandIn(*args, **more))
        return started[-1]

    yield launch
    for one in started:
        one.stop()


def size(browser, wanted):
    """The viewport in CSS pixels, as a phone or a window would have it."""
    width, height = wanted
    mobile = wanted == PHONE
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {"width": width, "height": height, "deviceScaleFactor": 2 if mobile else 1, "mobile": mobile})


def prefer(browser, scheme):
    """What the system is said to prefer: light or dark."""
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]})
