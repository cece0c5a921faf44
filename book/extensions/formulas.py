"""Formulas drawn by KaTeX, also on a busy machine, and without delay.

sphinxcontrib-katex waits until KaTeX's socket file is there and connects at
once, which fails when the server has made the file but does not listen yet.
Its other way, over a port, tries again until the server answers; but each
message there goes in two small packets, the second of which TCP holds back
for 40 ms: a minute for this book. So: a socket file, and tried again.

Each formula stands in a page as what is seen and as MathML, which is read
aloud; its TeX, a third time, would be seen and heard by nobody.

A line may break in a formula, behind a plus or an equals sign. Within brackets
it does so only if they have no room on one line (`.within-brackets`).
"""

import re
import socket
import time
from subprocess import DEVNULL, Popen

from sphinxcontrib import katex

PATIENCE = 60.0  # seconds
TEX = re.compile(
    '<annotation encoding="application/x-tex">.*?</annotation>', re.DOTALL
)
LINE = re.compile(
    '<span class="math"><span class="katex"><span class="katex-mathml">'
    '.*?<span class="katex-html" aria-hidden="true">',
    re.DOTALL,
)
SPAN = re.compile("<span|</span>")
BASE = '<span class="base">'
HELD = '<span class="within-brackets">{}</span>'
BAR = '<span class="mord">∣</span>'  # as in |x|
BRACKET = re.compile('class="m(open|close)[^"]*">([^<]*)')


def setup(app):
    """Set the extension's constants and its way to the server."""
    app.setup_extension("sphinxcontrib.katex")
    katex.STARTUP_TIMEOUT = PATIENCE
    katex.RENDER_TIMEOUT = PATIENCE
    katex.KaTeXServer.start_server_process = classmethod(start_server)
    app.connect("html-page-context", without_tex)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def without_tex(app, page, template, context, doctree):
    """Take the TeX of its formulas out of a page."""
    if "body" in context:
        body = TEX.sub("", context["body"])
        context["body"] = "".join(with_brackets_whole(body))


def base_end(html, start):
    """Where the span that starts here ends."""
    depth = 0
    for tag in SPAN.finditer(html, start):
        depth += 1 if tag[0] == "<span" else -1
        if not depth:
            return tag.end()
    return len(html)


def opened(html):
    """How many brackets are open at its end; KaTeX writes two as one."""
    return sum(
        (1 if kind == "open" else -1) * max(1, len(signs))
        for kind, signs in BRACKET.findall(html)
    )


def with_brackets_whole(html):
    """Hold the parts of a line's formula together in which a bracket is open.

    KaTeX puts what stays on one line into a span of class base each.
    """
    end = 0
    for formula in LINE.finditer(html):
        yield html[end : formula.end()]
        end, held, depth, bars = formula.end(), [], 0, 0
        while html.startswith(BASE, end):
            start, end = end, base_end(html, end)
            held.append(html[start:end])
            depth += opened(held[-1])
            bars += held[-1].count(BAR)
            if depth <= 0 and bars % 2 == 0:
                many = len(held) > 1
                yield HELD.format("".join(held)) if many else held[0]
                held, depth = [], 0
        yield "".join(held)
    yield html[end:]


def start_server(server, folder, patience):
    """Start KaTeX's server with a socket in this folder, and connect to it."""
    path = folder / "katex.sock"
    command = server.build_command(socket=path)
    process = Popen(command, stdin=DEVNULL, stdout=DEVNULL, cwd=folder)
    end = time.monotonic() + patience
    while True:
        line = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            line.connect(str(path))
            return process, line
        except (FileNotFoundError, ConnectionRefusedError):
            line.close()
        if time.monotonic() > end:
            process.kill()
            raise server.timeout_error(patience)
        time.sleep(0.01)
