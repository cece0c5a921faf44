"""Formulas drawn by KaTeX, also on a busy machine.

sphinxcontrib-katex waits until KaTeX's socket file is there and connects at
once, which fails when the server has made the file but does not listen yet.
Its way over a port, which it keeps for Windows, tries again until the server
answers; we take that way everywhere, and give it more than five seconds.
"""

from sphinxcontrib import katex

PATIENCE = 60.0  # seconds


def setup(app):
    """Set the extension's constants and its way to the server."""
    app.setup_extension("sphinxcontrib.katex")
    katex.STARTUP_TIMEOUT = PATIENCE
    katex.RENDER_TIMEOUT = PATIENCE
    server = katex.KaTeXServer
    server.start_server_process = server.start_network_socket
    return {"parallel_read_safe": True, "parallel_write_safe": True}
