"""The dashboard as a user meets it: words and places, not the script's insides."""

from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from harness.waiting import eventually


class Page:
    """An open dashboard."""

    def __init__(self, browser, url, place="#/"):
        self.browser = browser
        browser.get(f"{url}/{place}")
        self.wait_for_state("live")

    def one(self, css):
        return self.browser.find_element(By.CSS_SELECTOR, css)

    def all(self, css):
        return self.browser.find_elements(By.CSS_SELECTOR, css)

    def js(self, script, *args):
        return self.browser.execute_script(script, *args)

    def text(self, css):
        return self.js("return document.querySelector(arguments[0])?.textContent ?? null", css)

    def wait_for_state(self, word):
        eventually(lambda: self.text("#state") == word, what=f"the page says {word!r}, not {self.text('#state')!r}")

    def press(self, *keys):
        for key in keys:
            self.browser.switch_to.active_element.send_keys(key)

    def names(self):
        """The tenants listed, from top to bottom."""
        return self.js("return [...document.querySelectorAll('.tenants a.tenant-link')].map(link => link.textContent)")

    def cell(self, tenant, column):
        """The text in one tenant's row under a heading that begins with `column`."""
        script = """
            const heads = [...document.querySelectorAll('.tenants thead th')].map(head => head.textContent);
            const row = [...document.querySelectorAll('.tenants tbody tr')].find(row => row.querySelector('a.tenant-link').textContent === arguments[0]);
            return row ? row.children[heads.findIndex(head => head.startsWith(arguments[1]))].textContent : null;"""
        return self.js(script, tenant, column)

    def rate(self, tenant):
        return amount(self.cell(tenant, "rate"))

    def focused(self):
        return self.js("return document.activeElement.textContent || document.activeElement.tagName")

    def overflow(self):
        """By how many pixels the page is wider than the window."""
        return self.js("return document.documentElement.scrollWidth - document.documentElement.clientWidth")

    def drawn(self, place):
        """How many pixels of a plot's canvas differ from its paper."""
        script = """
            const canvas = document.querySelectorAll('.plot-area canvas')[arguments[0]];
            const {data} = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
            let count = 0;
            for (let i = 3; i < data.length; i += 4) count += data[i] > 0;
            return count;"""
        return self.js(script, place)

    def ground(self):
        """The colour behind the page, as the browser computed it."""
        return self.js("return getComputedStyle(document.body).backgroundColor")

    def click(self, css):
        def attempt():
            try:
                self.one(css).click()
            except StaleElementReferenceException:
                return False
            return True

        eventually(attempt, what=f"{css} can be clicked")


def amount(text):
    """What a number of the page means: "12.3 k" is 12,300, a dot nothing."""
    if text in (None, "·", "–"):
        return 0.0
    number, _, prefix = text.partition(" ")
    return float(number) * {"": 1, "k": 1e3, "M": 1e6}[prefix]


ESCAPE, ENTER, TAB = Keys.ESCAPE, Keys.ENTER, Keys.TAB
