"""Reports: in a terminal, in a notebook, for programs, from the shell."""

import io
import json
import math
import re
import subprocess
import sys

import pytest
import torch

from selfattn import MultiHeadAttention, attention
from selfattn.doctor import assert_healthy, check, examine
from selfattn.doctor.__main__ import main
from selfattn.doctor.report.rendering import as_html, write

FILE = """
def unscaled(q, k, v):
    return (q @ k.mT).softmax(-1) @ v

def right(q, k, v):
    return (q @ k.mT / q.shape[-1] ** 0.5).softmax(-1) @ v
"""


def unscaled(q, k, v):
    return (q @ k.mT).softmax(-1) @ v


def by_one_more(q, k, v):
    return (q @ k.mT / (q.shape[-1] + 1)).softmax(-1) @ v


class SeventhLayer(MultiHeadAttention):
    def forward(self, x):
        q, k, v = self.heads(x)
        output = attention(q, k, v, scale=1 / 7)
        return self.W_o(output.transpose(1, 2).flatten(-2))


def here(thing, kind="attention", **facts):
    return examine(thing, kind=kind, time_limit=None, **facts)


@pytest.fixture(scope="module")
def named():
    return here(unscaled, layout="any")


@pytest.fixture(scope="module")
def strange():
    return here(by_one_more, layout="any")


@pytest.fixture(scope="module")
def healthy():
    return here(attention)


def test_a_named_mistake_is_told_with_cause_cure_and_chapter(named):
    text = str(named)
    assert text.startswith("✗ unscaled (attention): no scale\n")
    assert "\n  Cause: " in text and "\n  Cure: " in text
    assert "Explained in chapter 3, “Why divide by √dₖ”." in text
    assert max(map(len, text.splitlines())) < 80


def test_each_verdict_has_its_exit_code(named, strange, healthy):
    codes = [report.exit_code for report in (healthy, named, strange)]
    assert codes == [0, 1, 1]
    assert here(unscaled).exit_code == 3  # of whom nothing was told
    assert here(lambda q, k, v: None).exit_code == 2  # a stub
    assert here(torch.zeros(2)).exit_code == 2  # a question


def test_the_json_says_what_the_text_says(named, strange):
    told = json.loads(named.to_json())
    assert told["mistake"]["name"] == "no scale" and not told["healthy"]
    assert told["kind"] == "attention" and told["patient"] == "unscaled"
    other = json.loads(strange.to_json())
    assert other["mistake"] is None
    assert other["fails"][0]["asks"] == "it is softmax(q kᵀ / √d) v"
    assert "torch.tensor(" in other["snippet"]


def test_the_html_takes_its_colours_from_the_page(strange):
    page = strange._repr_html_()
    assert "currentColor" in page and "var(--pst-color-danger" in page
    assert "<pre><code>" in page and "<script" not in page
    assert page.count("<p>") == page.count("</p>")


def test_the_html_escapes_what_others_wrote():
    def named_badly(q, k, v):
        raise ValueError("<b>bold</b>")

    page = as_html(here(named_badly))
    assert "&lt;b&gt;bold" in page and "<b>" not in page


def test_colours_are_for_terminals_alone(named):
    plain = io.StringIO()
    write(named, plain)
    assert plain.getvalue() == f"{named}\n"

    class Terminal(io.StringIO):
        def isatty(self):
            return True

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TERM", "xterm-256color")
        patch.delenv("NO_COLOR", raising=False)
        shown = Terminal()
        write(named, shown)
    assert "\x1b[1;31m" in shown.getvalue()
    assert re.sub(r"\x1b\[[0-9;]*m", "", shown.getvalue()) == f"{named}\n"


def run(snippet, **scope):
    """Run all lines of a snippet, and return the value of the last call."""
    code = [
        line
        for line in snippet.splitlines()
        if not line.strip().startswith("#")
    ]
    whole = "\n".join(line[4:] for line in code)
    *setup, call = re.split(r"\n(?! )", whole)
    exec("\n".join(setup), scope)
    return eval(call, scope), scope, call


def test_the_snippet_of_a_function_runs_and_shows_the_failure(strange):
    yours, scope, call = run(
        strange.snippet, torch=torch, by_one_more=by_one_more
    )
    right = eval(call, scope | {"by_one_more": attention})
    assert not torch.allclose(yours, right)
    shown = strange.snippet.split("# yours: ")[1].splitlines()[0]
    first = float(re.search(r"-?[0-9.]+", shown)[0])
    assert math.isclose(yours.flatten()[0].item(), first, abs_tol=1e-4)


def test_the_snippet_of_a_layer_runs_and_shows_the_failure():
    report = here(SeventhLayer, "self-attention", causal=False)
    assert report.mistake is None and not report.passed
    yours, _, _ = run(report.snippet, torch=torch, SeventhLayer=SeventhLayer)
    shown = report.snippet.split("# yours: ")[1].splitlines()[0]
    first = float(re.search(r"-?[0-9.]+", shown)[0])
    assert math.isclose(yours.flatten()[0].item(), first, abs_tol=1e-4)


def test_the_snippet_of_a_mask_that_is_added_runs():
    def late(q, k, v, attn_mask=None):
        weights = (q @ k.mT / q.shape[-1] ** 0.5).softmax(-1)
        if attn_mask is not None:
            weights = weights + attn_mask.clamp(min=-0.5)
        return weights @ v

    report = here(late, mask="add", layout="any")
    assert "-torch.inf" in report.snippet
    assert run(report.snippet, torch=torch, late=late)[0].isfinite().all()


def test_a_healthy_thing_passes_its_assertion_and_an_ill_one_does_not():
    assert_healthy(attention, kind="attention", time_limit=None)
    with pytest.raises(AssertionError, match="no scale"):
        assert_healthy(unscaled, kind="attention", time_limit=None)


def test_the_shell_prints_the_report_and_returns_its_code(tmp_path, capsys):
    path = tmp_path / "mine.py"
    path.write_text(FILE, "utf-8")
    kind = ["--kind", "attention", "--time-limit", "0"]
    assert main([f"{path}:unscaled", *kind, "--layout", "any"]) == 1
    assert capsys.readouterr().out.startswith("✗ unscaled (attention): no ")
    assert main([f"{path}:right", *kind, "--json", "--layout", "any"]) == 0
    assert json.loads(capsys.readouterr().out)["healthy"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["selfattn", "--kind", "attention"], "named package.module:Thing"),
        (["selfattn:nothing", "--kind", "attention"], "no 'nothing' in self"),
        (["nowhere_at_all:f", "--kind", "attention"], "No module named"),
        (["selfattn:attention", "--kind", "atention"], "There is no kind"),
        (
            ["selfattn:attention", "--kind", "attention", "--causl"],
            "must be a fact of its kind",
        ),
        (
            ["selfattn:attention", "--kind", "attention", "loose"],
            "a fact begins with two dashes",
        ),
    ],
)
def test_the_shell_says_what_it_does_not_understand(arguments, words, capsys):
    assert main(arguments) == 2
    told = capsys.readouterr()
    assert words in told.err and told.out == "" and "Traceback" not in told.err


def test_the_shell_lists_kinds_facts_and_mistakes(capsys):
    assert main(["--list"]) == 0
    assert "self-attention: " in capsys.readouterr().out
    assert main(["--list", "--kind", "softmax"]) == 0
    assert "Facts:" in capsys.readouterr().out


def test_the_package_leaves_it_alone_and_it_leaves_rich_until_it_prints():
    code = (
        "import sys, selfattn; assert 'selfattn.doctor' not in sys.modules; "
        "import selfattn.doctor as d; assert 'rich' not in sys.modules; "
        "d.examine(selfattn.attention, kind='attention', time_limit=None); "
        "assert 'rich' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


def test_it_runs_as_a_module():
    done = subprocess.run(
        [sys.executable, "-m", "selfattn.doctor", "--list"],
        check=True,
        timeout=120,
        capture_output=True,
        text=True,
    )
    assert "attention: softmax(q kᵀ / √d) v" in done.stdout


def test_an_exercise_prints_what_it_always_printed(capsys):
    check(lambda q, k: (q @ k.mT).softmax(-1), exercise="dot_product/weights")
    assert capsys.readouterr().out == (
        "✗ dot_product/weights: no scale\n"
        "  Your weights are too sharp, the more so the more features a key "
        "has. The\n"
        "  scores go into softmax as they are. Divide them by the square "
        "root of the\n"
        "  number of features first: q @ k.mT / math.sqrt(q.shape[-1]).\n"
    )
