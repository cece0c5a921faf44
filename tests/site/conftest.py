"""The built site, served on this machine, and a browser to look at it."""

import contextlib
import functools
import http.server
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from guards.site_pages import LAB
from playwright.sync_api import expect, sync_playwright

from tools.setup.browser import find_browser

ROOT = Path(__file__).parents[2]


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass

    def copyfile(self, source, outputfile):
        # A browser may go on to another page before it has the whole file.
        with contextlib.suppress(ConnectionError):
            super().copyfile(source, outputfile)


def serve(folder):
    """Serve a folder on a free port until it is shut down."""
    handler = functools.partial(Quiet, directory=str(folder))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


@pytest.fixture(scope="session")
def site():
    """The folder of the site, built from what lies here now."""
    done = subprocess.run(
        [sys.executable, "-m", "tools.build.website"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return ROOT / "_build" / "html"


@pytest.fixture(scope="session")
def site_url(site):
    """The site's address on this machine, with a slash at its end."""
    server = serve(site)
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


@pytest.fixture
def serving():
    """Serve folders for one test; the address of each."""
    servers = []

    def start(folder):
        servers.append(serve(folder))
        return f"http://127.0.0.1:{servers[-1].server_port}/"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.fixture(scope="session")
def chromium():
    """One browser for the whole run."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=find_browser(), args=["--no-sandbox"]
        )
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def looks():
    """Looks of text that can be read, on whatever page they were found."""
    return set()


@pytest.fixture
def visited():
    """The addresses of all files that a test's pages have asked for."""
    return set()


@pytest.fixture
def new_page(chromium, site, visited):
    """Make pages, each in a context of its own, with these options."""
    contexts = []

    def asked(request):
        if not request.url.startswith(("data:", "blob:")):
            visited.add(request.url)

    def make(**options):
        options.setdefault("viewport", {"width": 1280, "height": 900})
        contexts.append(chromium.new_context(**options))
        contexts[-1].on("request", asked)
        return contexts[-1].new_page()

    yield make
    for context in contexts:
        context.close()


@pytest.fixture
def page(new_page):
    """One page in a window of the usual size."""
    return new_page()


@pytest.fixture
def open_lab(request, new_page, site_url):
    """Open a page, the one that the tests name ADDRESS; the lab on it."""

    def start(fragment="", address=None, **options):
        page = new_page(**options)
        page.goto((address or site_url + request.module.ADDRESS) + fragment)
        place = page.locator(".lab-place")
        if place.get_attribute("data-script"):  # it comes when one is near
            place.scroll_into_view_if_needed()
        expect(page.locator(".lab-runs")).to_have_count(1)
        return page.locator(LAB)

    return start
