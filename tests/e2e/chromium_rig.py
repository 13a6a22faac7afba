"""A real browser for the pages: Chromium without a window, and what a reader does in it.

Modules that import it are skipped where selenium, Chromium or its driver is not installed.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from contrast import PAINTED, ratio
from late_import import late_import

webdriver = late_import("selenium.webdriver", reason="selenium is not installed (pip install 'ewe-engine[test]')")

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")
if not (CHROMIUM and DRIVER):
    pytest.skip("no Chromium with its driver (apt-get install chromium chromium-driver)", allow_module_level=True)


def start(profile: Path) -> Any:
    """A browser with nothing open and nothing going on in the background; `quit` ends it."""
    options = webdriver.ChromeOptions()
    options.binary_location = str(CHROMIUM)
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-sync",
                     "--disable-background-networking", "--disable-component-update",
                     f"--user-data-dir={profile}", "--window-size=1240,1400"):  # fmt: skip
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    return webdriver.Chrome(options, webdriver.ChromeService(str(DRIVER)))


def show_as(driver: Any, width: int | None = None, scheme: str | None = None) -> None:
    """Shows the page on a phone of this width, or in this colour scheme; without them as usual."""
    if width is None:
        driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    else:
        metrics = {"width": width, "height": 800, "deviceScaleFactor": 2, "mobile": True}
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    features = [{"name": "prefers-color-scheme", "value": scheme}] if scheme else []
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})


def complaints(driver: Any) -> list[Any]:
    """What the browser's console holds that is no mere information."""
    return [entry for entry in driver.get_log("browser") if entry["level"] != "INFO"]


def find(browser: Any, selector: str) -> Any:
    return browser.find_element("css selector", selector)


def all_of(browser: Any, selector: str) -> list[Any]:
    found: list[Any] = browser.find_elements("css selector", selector)
    return found


def hover(browser: Any, node: Any) -> None:
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", node)
    webdriver.ActionChains(browser).move_to_element(node).perform()


def keys(browser: Any, key: str) -> None:
    webdriver.ActionChains(browser).send_keys(key).perform()


def expect_readable(browser: Any, *selectors: str) -> None:
    """The texts of these elements can be read on light and on dark pages (WCAG AA)."""
    for scheme in ("light", "dark"):
        show_as(browser, scheme=scheme)
        for selector in selectors:
            painted = browser.execute_script(f"return ({PAINTED})(arguments[0])", selector)
            assert ratio(painted) >= 4.5, (scheme, selector)
