"""Find the browser that the tests of the site drive, or get one.

Like `setup`, which it serves, it is for any Python 3 from 3.6 on.
"""

import glob
import os
import shutil

from tools.setup.environment import (
    PYTHON,
    WINDOWS,
    MissingError,
    run,
    say,
    succeeds,
)

# The shell is a Chromium without windows: a test takes it a third of the time.
BROWSERS = [
    "chromium-headless-shell",
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
]
BROWSER_PLACES = [
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "~/.cache/ms-playwright/chromium_headless_shell-*/*/*headless?shell",
    "~/.cache/ms-playwright/chromium-*/chrome-linux*/chrome",
    "~/Library/Caches/ms-playwright/chromium-*/chrome-mac*/*/Contents/MacOS/*",
    "~/AppData/Local/ms-playwright/chromium-*/chrome-win*/chrome.exe",
    "C:/Program Files*/Google/Chrome/Application/chrome.exe",
]


def find_browser():
    """A Chromium or Chrome that runs, or None. CHROMIUM names one."""
    given = os.environ.get("CHROMIUM")
    names = [given] if given else BROWSERS
    found = [shutil.which(name) for name in names]
    if not given:
        for place in BROWSER_PLACES:
            found += sorted(glob.glob(os.path.expanduser(place)))
    return next((path for path in found if path and starts(path)), None)


def starts(browser):
    """Whether it is more than a stub that asks for another installer."""
    if WINDOWS:
        return True  # there, asking for the version opens a window
    return succeeds([browser, "--version"])


def ensure_browser():
    """Find a browser, or try to install one.

    Raises:
        MissingError: if there is none, and none could be had.
    """
    attempts = [[PYTHON, "-m", "playwright", "install", "chromium"]]
    if shutil.which("apt-get") and os.geteuid() == 0:
        install = "apt-get install -y fonts-liberation"
        apt = (
            f"apt-get update && "
            f"({install} chromium-headless-shell || {install} chromium)"
        )
        attempts.insert(
            0, ["env", "DEBIAN_FRONTEND=noninteractive", "sh", "-c", apt]
        )
    for command in attempts:
        if find_browser():
            return
        say("No browser found; installing Chromium: 100 MB, a minute.")
        run(command)
    if not find_browser():
        raise MissingError(
            "The tests of the site drive a browser, and there is no Chromium "
            "or Chrome here.\nGet one, then run the same command again:\n"
            "  Debian, Ubuntu   sudo apt-get install chromium\n"
            "  macOS            brew install --cask chromium\n"
            "  anywhere         .venv/bin/playwright install chromium\n"
            "or name one that is elsewhere: CHROMIUM=/path/to/chrome"
        )
