"""What tests of the console in headless Chromium share: a cluster with a gateway, a browser, and what a person does in it.

Screenshots stay in the folder `screenshots` beside the programs' folder. Skipped without chromium, chromedriver and python3-selenium
(packages-browser.txt), and for a build without the console.
"""

import contextlib
import http.client
import json
import shutil
import sys
import unittest

import harness
from harness import BIN, Cluster, free_ports, wait_until

try:
    from selenium import webdriver
    from selenium.common.exceptions import StaleElementReferenceException
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys
    from selenium.webdriver.chrome.service import Service
    from selenium.webdriver.support.ui import Select
except ImportError:
    print("SKIPPED: there is no python3-selenium; packages-browser.txt has it", file=sys.stderr)
    sys.exit(harness.SKIPPED)

BROWSER, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
if not BROWSER or not DRIVER:
    print("SKIPPED: there is no chromium or no chromedriver; packages-browser.txt has them", file=sys.stderr)
    sys.exit(harness.SKIPPED)

SCREENSHOTS = BIN.parent / "screenshots"
SCHEMA = "document visit { field city type string { header } field cost type int { header } field note type string { body } }"
CITIES = ["Oslo", "Bergen", "Tromso", "Bodo"]
DOCUMENTS = 400
# Name, width, and whether the system prefers dark.
LOOKS = [("light", 1280, False), ("dark", 1280, True), ("small", 1024, False), ("narrow", 360, False)]


# Texts of tables in which a word is broken into lines of few letters.
BROKEN_WORDS = """
  const broken = [];
  for (const cell of document.querySelectorAll("td .cell, th, dd")) {
    const texts = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
    while (texts.nextNode()) {
      for (const word of texts.currentNode.data.matchAll(/[^\\s-]{5,}/g)) {
        const range = document.createRange();
        range.setStart(texts.currentNode, word.index);
        range.setEnd(texts.currentNode, word.index + word[0].length);
        const lines = new Set([...range.getClientRects()].map((one) => Math.round(one.top))).size;
        if (lines > 1 && word[0].length / lines < 8) broken.push(`${word[0]}: ${lines} lines`);
      }
    }
  }
  return broken;
"""


def open_browser(profile):
    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER
    # Chromium must not look for other hosts, and runs as root in a container.
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
                     "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
                     "--hide-scrollbars", f"--user-data-dir={profile}"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    return webdriver.Chrome(service=Service(DRIVER), options=options)


def has_console(port):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("GET", "/console/")
    status = connection.getresponse().status
    connection.close()
    return status == 200


class ConsoleBrowser(unittest.TestCase):
    """A cluster with documents, its gateway at `port`, another one whose console changes no documents, and a browser."""

    storage_nodes = 3
    schemas = [SCHEMA]
    documents = DOCUMENTS

    @classmethod
    def setUpClass(cls):
        cls.port, cls.read_only_port = free_ports(2)
        cls.cluster = Cluster(storage=cls.storage_nodes, distributors=2, settings=f"gateways:\n  - address: 127.0.0.1:{cls.port}\n"
                              f"  - address: 127.0.0.1:{cls.read_only_port}\n    console_edits: false\n")
        cls.addClassCleanup(cls.cluster.close)
        cls.cluster.start()
        if not has_console(cls.port):
            raise unittest.SkipTest("the build has no console")
        if cls.schemas:
            cls.cluster.deploy(*cls.schemas)
        lines = (json.dumps({"put": f"id:v:visit::{i}", "fields": {"city": CITIES[i % len(CITIES)], "cost": i, "note": f"visit {i}"}})
                 for i in range(cls.documents))
        cls.cluster.must("feed", cls.cluster.file("visits.jsonl", "\n".join(lines)))
        cls.cluster.wait_healthy()
        SCREENSHOTS.mkdir(exist_ok=True)
        cls.browser = open_browser(cls.cluster.folder / "profile")
        cls.addClassCleanup(cls.browser.quit)

    def setUp(self):
        self.look("light", 1280, False)
        self.browser.get_log("browser")
        self.may_lose_gateway = False

    def tearDown(self):
        """Nothing is wrong in the browser's log, but for requests to a gateway that is away."""
        entries = [entry for entry in self.browser.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")]
        if self.may_lose_gateway:
            entries = [entry for entry in entries if entry["source"] != "network"]
        self.assertEqual(entries, [])

    # --- What a person does

    def look(self, _, width, is_dark):
        """Gives the window another size, and the system other colours."""
        self.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                                     {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500})
        self.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {
            "features": [{"name": "prefers-color-scheme", "value": "dark" if is_dark else "light"}]})

    def go(self, page, heading=None):
        self.browser.get("about:blank")
        self.browser.get(f"http://127.0.0.1:{self.port}/console/#/{page}")
        if heading:
            wait_until(lambda: self.texts("h1") == [heading], f"the page {heading}")
        wait_until(lambda: "Loading" not in self.text("main"), f"all of {page} is there")

    def texts(self, selector):
        return self.browser.execute_script(
            "return [...document.querySelectorAll(arguments[0])].map((one) => one.innerText)", selector)

    def facts(self, selector):
        """Returns names and values of each list of facts that can be seen."""
        return self.browser.execute_script(
            "return [...document.querySelectorAll(arguments[0])].filter((one) => one.offsetParent).map((list) => Object.fromEntries("
            "[...list.querySelectorAll('dt')].map((one) => [one.innerText, one.nextElementSibling.innerText])))", selector)

    def text(self, selector="body"):
        return " ".join(self.texts(selector))

    def see(self, text, selector="main"):
        try:
            wait_until(lambda: text in self.text(selector), f"{text!r} in {selector}")
        except AssertionError as error:
            raise AssertionError(f"{error}; there is: {self.text(selector)[:2000]}") from None

    def press(self, *keys):
        webdriver.ActionChains(self.browser).send_keys(*keys).perform()

    def click(self, name, within="body"):
        """Clicks the button or link with this name."""
        def clicked():
            try:
                for one in self.browser.find_elements(By.CSS_SELECTOR, f"{within} button, {within} a"):
                    if one.text == name and one.is_enabled():
                        one.click()
                        return True
            except StaleElementReferenceException:
                pass  # The page was drawn again meanwhile.
            return False
        wait_until(clicked, f"a button or link {name!r} in: {self.texts(within + ' button, ' + within + ' a')}")

    def fill(self, label, value, within="main"):
        """Types into the input with this label, in place of what is there."""
        field = wait_until(lambda: next((one for one in self.browser.find_elements(By.CSS_SELECTOR, f"{within} label.field")
                                         if one.text.startswith(label)), None), f"an input {label!r}")
        field = field.find_element(By.CSS_SELECTOR, "input, textarea")
        field.click()
        field.send_keys(Keys.CONTROL, "a")
        field.send_keys(value)

    def choose(self, label, option, within="main"):
        """Chooses an option of the list with this label."""
        for field in self.browser.find_elements(By.CSS_SELECTOR, f"{within} label.field"):
            if field.find_element(By.CSS_SELECTOR, "span").text == label:
                return Select(field.find_element(By.CSS_SELECTOR, "select")).select_by_visible_text(option)
        raise AssertionError(f"there is no list {label!r}")

    def check_widths(self, look):
        """Neither the page nor a table in it is wider than its place, so that nothing is cut at the right edge."""
        self.assertLessEqual(self.browser.execute_script("return document.documentElement.scrollWidth"), look[1], look[0])
        def cut():
            return self.browser.execute_script(
                "return [...document.querySelectorAll('.scroll')].filter((one) => one.scrollWidth > one.clientWidth + 1)"
                ".map((one) => `${one.ariaLabel}: ${one.scrollWidth} of ${one.clientWidth}`)")
        with contextlib.suppress(AssertionError):
            wait_until(lambda: not cut(), "the tables have the new size", 5)
        if cut():
            self.screenshot("cut")
        self.assertEqual([], cut(), look[0])
        self.assertEqual([], self.browser.execute_script(BROKEN_WORDS), look[0])

    def screenshots(self, name):
        """Takes a screenshot in each look, and goes back to the first one."""
        for look in LOOKS:
            self.look(*look)
            self.check_widths(look)
            self.screenshot(f"{name}-{look[0]}")
        self.look(*LOOKS[0])

    def screenshot(self, name):
        height = self.browser.execute_script("return document.documentElement.scrollHeight")
        width = self.browser.execute_script("return innerWidth")
        self.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
            "width": width, "height": max(700, min(height, 4000)), "deviceScaleFactor": 1, "mobile": width < 500})
        self.browser.save_screenshot(str(SCREENSHOTS / f"{name}.png"))
