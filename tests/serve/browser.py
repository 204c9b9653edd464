"""A real Chromium for a test, driven by the standard library alone. Debian: chromium-driver.

The protocol: https://www.w3.org/TR/webdriver2/
"""
import base64
import contextlib
import json
import os
import re
import shutil
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"  # the key of an element's id in the standard
KEYS = {"Enter": "\ue007", "Escape": "\ue00c", "Tab": "\ue004", "ArrowLeft": "\ue012",
        "ArrowUp": "\ue013", "ArrowRight": "\ue014", "ArrowDown": "\ue015"}


def missing():
    """The programs that this machine lacks for a browser, or None."""
    lacking = [name for name in ("chromium", "chromedriver") if shutil.which(name) is None]
    if not lacking:
        return None
    return f"no {' and no '.join(lacking)}: ./stage packages chromium chromium-driver"


class Browser:
    def __init__(self, address, profile):
        self.address = address
        self.session = ""
        arguments = ["--headless=new", "--no-first-run", "--disable-gpu", "--disable-dev-shm-usage",
                     "--hide-scrollbars", f"--user-data-dir={profile}"]
        if os.geteuid() == 0:
            arguments.append("--no-sandbox")  # root can start Chromium only with it
        made = self._ask("POST", "/session", {"capabilities": {"alwaysMatch": {
            "goog:chromeOptions": {"args": arguments},
            "goog:loggingPrefs": {"browser": "ALL"}}}})
        self.session = f"/session/{made['sessionId']}"

    def _ask(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.address + self.session + path, data, method=method)
        try:
            with urllib.request.urlopen(request, timeout=120) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            problem = json.load(error)["value"]
            text = f"{problem['error']}: {problem['message']}"
            raise AssertionError(f"{path} {body}: {text}") from None

    def open(self, url):
        self._ask("POST", "/url", {"url": url})

    def size(self, width, height):
        """Sets the size of the page. (A window cannot be as narrow as a phone.)"""
        self._ask("POST", "/goog/cdp/execute", {
            "cmd": "Emulation.setDeviceMetricsOverride",
            "params": {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}})

    def run(self, script, *arguments):
        """Runs the body of a JavaScript function (its arguments are arguments[0] and on), returns its result."""
        return self._ask("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def find(self, selector):
        return self._ask("POST", "/element", {"using": "css selector", "value": selector})[ELEMENT]

    def click(self, selector):
        self._ask("POST", f"/element/{self.find(selector)}/click", {})

    def type(self, selector, text):
        self._ask("POST", f"/element/{self.find(selector)}/value", {"text": text})

    def press(self, *keys):
        """Sends keys to the element that has the focus."""
        actions = [{"type": kind, "value": KEYS.get(key, key)}
                   for key in keys for kind in ("keyDown", "keyUp")]
        self._ask("POST", "/actions",
                  {"actions": [{"type": "key", "id": "keys", "actions": actions}]})

    def text(self, selector):
        return self.run("return document.querySelector(arguments[0])?.textContent ?? ''", selector)

    def texts(self, selector):
        return self.run("return [...document.querySelectorAll(arguments[0])]"
                        ".map((element) => element.textContent)", selector)

    def wait(self, condition, *arguments, seconds=60):
        """Waits until this JavaScript expression is true."""
        end = time.monotonic() + seconds
        while not self.run(f"return {condition}", *arguments):
            if time.monotonic() > end:
                raise AssertionError(f"not after {seconds} s: {condition}; the page says "
                                     f"{self.text('#status')!r}; {self.log()}")
            time.sleep(0.05)

    def log(self):
        """The errors of scripts and of the page's policy since the last call."""
        return [entry["message"] for entry in self._ask("POST", "/se/log", {"type": "browser"})
                if entry["level"] == "SEVERE"]

    def picture(self, path):
        """Saves the visible part of the page. The path's suffix gives the format: png or webp."""
        options = {"format": path.suffix[1:]}
        if path.suffix == ".webp":
            options["quality"] = 90
        made = self._ask("POST", "/goog/cdp/execute",
                         {"cmd": "Page.captureScreenshot", "params": options})
        path.write_bytes(base64.b64decode(made["data"]))


@contextlib.contextmanager
def browsing():
    with tempfile.TemporaryDirectory() as profile:
        driver = subprocess.Popen(["chromedriver", "--port=0"], stdout=subprocess.PIPE,
                                  stderr=subprocess.DEVNULL, text=True)
        browser = None
        try:
            port = next(found[1] for line in driver.stdout
                        if (found := re.search(r"successfully on port (\d+)", line)))
            browser = Browser(f"http://127.0.0.1:{port}", profile)
            yield browser
        finally:
            if browser is not None:
                with contextlib.suppress(Exception):
                    browser._ask("DELETE", "")
            driver.terminate()
            driver.communicate()
