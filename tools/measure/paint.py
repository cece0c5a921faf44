"""How soon a page is seen, and whether it jumps, on a slow line and machine.

    python -m tools.measure.paint                        the heaviest pages
    python -m tools.measure.paint book/intro.html --runs 9
    python -m tools.measure.paint --first --within 2     weekly

The built site is served as hosts on the web serve it, compressed, and a
browser with nothing kept asks for it at 1.6 Mb/s, with 150 ms to an answer,
on a processor slowed to a quarter. Printed are, of each page, the bytes that
came, the median of the largest contentful paint over the runs with its
extremes, in seconds, what was painted last and largest, and the most that its
layout shifted. Times mean something only where nothing else runs. With
``--within`` a page that is seen later, or jumps by more than 0.02, fails.
"""

import argparse
import functools
import gzip
import http.server
import statistics
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

from tools.build.website import SITE
from tools.setup.browser import find_browser

WINDOWS = {
    "wide": {"width": 1280, "height": 900},
    "phone": {"width": 360, "height": 740},
}
LINE = {
    "offline": False,
    "latency": 150,
    "downloadThroughput": 200_000,  # bytes a second
    "uploadThroughput": 90_000,
}
SLOWED = 4
HEAVIEST = 5  # pages
FIRST = ["book/intro.html", "book/dot_product.html", "book/masks.html"]
JUMP = 0.02  # the most that a page may shift
SETTLED = 700  # ms: after the last answer
COMPRESSED = {".html", ".js", ".css", ".svg", ".json"}

WATCH = """
window.seen = { painted: 0, what: "", shifted: 0 };
new PerformanceObserver((list) => {
  for (const entry of list.getEntries()) {
    window.seen.painted = entry.startTime / 1000;
    const e = entry.element;
    window.seen.what = e ? `${e.tagName} ${e.className}`.trim() : "";
  }
}).observe({ type: "largest-contentful-paint", buffered: true });
new PerformanceObserver((list) => {
  for (const entry of list.getEntries()) window.seen.shifted += entry.value;
}).observe({ type: "layout-shift", buffered: true });
"""


class Compressing(http.server.SimpleHTTPRequestHandler):
    """A host that compresses texts, and keeps its connections open."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """Send a file; a text of any length compressed."""
        path = Path(self.translate_path(self.path))
        if path.suffix not in COMPRESSED or not path.is_file():
            super().do_GET()
            return
        body = packed(path)
        self.send_response(200)
        self.send_header("Content-Type", self.guess_type(str(path)))
        self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        """Nothing: what is printed is the table."""


@functools.cache
def packed(path: Path) -> bytes:
    """A file's bytes, compressed once."""
    return gzip.compress(path.read_bytes(), mtime=0)


def serve(folder: Path) -> http.server.ThreadingHTTPServer:
    """Serve a folder on a free port until it is shut down."""
    handler = functools.partial(Compressing, directory=str(folder))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def heaviest(site: Path, many: int) -> list[str]:
    """The pages whose own text is the most, compressed."""
    pages = sorted(site.glob("book/**/*.html"), key=lambda p: -len(packed(p)))
    return [page.relative_to(site).as_posix() for page in pages[:many]]


def look(browser: Browser, address: str, window: str) -> dict:
    """One visit with nothing kept: paint, what it was, shifts and bytes."""
    context = browser.new_context(viewport=WINDOWS[window])
    page = context.new_page()
    page.add_init_script(WATCH)
    slow = context.new_cdp_session(page)
    slow.send("Network.enable")
    slow.send("Network.emulateNetworkConditions", LINE)
    slow.send("Emulation.setCPUThrottlingRate", {"rate": SLOWED})
    came: list[int] = []
    slow.on(
        "Network.loadingFinished",
        lambda it: came.append(int(it["encodedDataLength"])),
    )
    page.goto(address, wait_until="networkidle", timeout=120_000)
    page.wait_for_timeout(SETTLED)
    seen = page.evaluate("window.seen")
    context.close()
    return {**seen, "bytes": sum(came)}


def told(address: str, window: str, looks: Sequence[dict]) -> str:
    """A line of the table."""
    painted = sorted(one["painted"] for one in looks)
    shifted = max(one["shifted"] for one in looks)
    return (
        f"{statistics.median(painted):5.2f}  {painted[0]:5.2f}  "
        f"{painted[-1]:5.2f}  {shifted:5.3f}  {looks[-1]['bytes']:9,}  "
        f"{window:5}  {address}  ({looks[-1]['what']})"
    )


def too_late(looks: Sequence[dict], within: float) -> bool:
    """Whether a page is seen too late, in the median, or jumps too far."""
    painted = statistics.median(one["painted"] for one in looks)
    return painted > within or max(one["shifted"] for one in looks) > JUMP


def chosen(options: argparse.Namespace) -> list[str]:
    """The pages to look at."""
    if options.first:
        return [*FIRST, *heaviest(SITE, 1)]
    return options.pages or heaviest(SITE, HEAVIEST)


def all_told(pages: Sequence[str], options: argparse.Namespace) -> list[str]:
    """Look at every page and tell of it; those that are too late."""
    server = serve(SITE)
    home = f"http://127.0.0.1:{server.server_port}/"
    late = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=find_browser(), args=["--no-sandbox"]
        )
        for address in pages:
            for window in WINDOWS:
                looks = [
                    look(browser, home + address, window)
                    for _ in range(options.runs)
                ]
                print(told(address, window, looks), flush=True)
                if options.within and too_late(looks, options.within):
                    late.append(f"{address} ({window})")
        browser.close()
    server.shutdown()
    return late


def main(arguments: Sequence[str] | None = None) -> int:
    """Read the command line and run it; the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("pages", nargs="*", help="such as book/intro.html")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument(
        "--first",
        action="store_true",
        help="what is read first, and the heaviest",
    )
    parser.add_argument("--within", type=float, help="seconds, at most")
    options = parser.parse_args(arguments)
    print("  LCP  least   most    CLS      bytes  where")
    late = all_told(chosen(options), options)
    if late:
        print("too late, or jumping:", ", ".join(late))
    return int(bool(late))


if __name__ == "__main__":
    sys.exit(main())
