"""A headless Chromium for tests of pages."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service

SWITCHES = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-default-apps",
    "--disable-extensions",
)


@contextmanager
def open_browser(profile: Path) -> Iterator[Chrome]:
    """A browser with a fresh profile; without one the test is skipped, or fails where ROUNDELAY_REQUIRE_BROWSER is 1."""
    binary, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if binary is None or driver is None:
        words = "There is no chromium with its chromedriver: install Debian's chromium and chromium-driver."
        if os.environ.get("ROUNDELAY_REQUIRE_BROWSER") == "1":
            pytest.fail(words)
        pytest.skip(words)
    options = ChromeOptions()
    options.binary_location = binary
    for switch in (*SWITCHES, f"--user-data-dir={profile}"):
        options.add_argument(switch)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    # The browser puts a socket there, whose path must be short.
    short = "/tmp" if os.access("/tmp", os.W_OK) else tempfile.gettempdir()
    chrome = Chrome(options=options, service=Service(driver, env={**os.environ, "TMPDIR": short}))
    try:
        # The first tab shows the browser's own page, which asks for things of its own: the tests have one of theirs.
        first = chrome.current_window_handle
        chrome.switch_to.new_window("tab")
        own = chrome.current_window_handle
        chrome.switch_to.window(first)
        chrome.close()
        chrome.switch_to.window(own)
        yield chrome
    finally:
        chrome.quit()


def resize(chrome: Chrome, width: int, height: int = 900, mobile: bool = False) -> None:
    """Make the window as wide as asked, narrower than a real one could be."""
    metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": mobile}
    chrome.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)


def prefer(chrome: Chrome, scheme: str) -> None:
    """Let the system prefer "light" or "dark"."""
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    chrome.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})


def requested(chrome: Chrome) -> list[str]:
    """The addresses that the page in this tab, with all its frames, has asked for since last asked."""
    entries: list[dict[str, Any]] = [json.loads(entry["message"]) for entry in chrome.get_log("performance")]
    messages = [entry["message"] for entry in entries if entry["webview"] == chrome.current_window_handle]
    sent = [message["params"] for message in messages if message["method"] == "Network.requestWillBeSent"]
    return [each["request"]["url"] for each in sent]
