"""A subscript in the page's own letters, where a reader sees text."""

from subscripts import lowered


def test_text_is_lowered_and_nothing_else_is():
    kept = (
        "<title>√dₖ</title><script>x = 'ₖ'</script><a title='dₖ'>x</a>"
        "<pre>dₖ <b>ₖ</b></pre><svg><text>dₖ</text></svg><option>dₖ</option>"
    )
    assert lowered(kept) == kept
    page = f"{kept}<h1>By √dₖ<a>#</a></h1>"
    k = '<sub class="letter">k</sub>'
    lower = f'<h1>By <span class="lowered">√d{k}</span><a>#</a></h1>'
    assert lowered(page) == kept + lower
    assert lowered("<header>dₖ</header>").count("<sub") == 1
