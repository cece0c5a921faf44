"""Pictures on a page: as large as they say, and a phone's own beside them."""

import io

import pictures
import pytest
from matplotlib.figure import Figure
from PIL import Image

from selfattn.plots import showing


@pytest.fixture
def carrying(tmp_path):
    """A file of a picture that carries another for a phone."""
    figure = Figure(figsize=(6.6, 3), layout="constrained")
    figure.subplots().plot([1, 3, 2])
    path = tmp_path / "figure.png"
    path.write_bytes(showing.picture(figure)[0])
    return path


def test_both_agree_on_what_is_too_wide_and_on_its_name():
    assert pictures.WIDE == showing.NARROW
    assert pictures.PHONE == showing.PHONE
    assert pictures.DOTS == showing.DOTS


def test_what_a_picture_carries_is_parted_from_it(carrying):
    before = carrying.read_bytes()
    whole, other = pictures.parted(before)
    assert other == pictures.carried(carrying) != b""
    assert len(whole) + len(other) + 12 == len(before)
    with (
        Image.open(io.BytesIO(before)) as was,
        Image.open(io.BytesIO(whole)) as now,
    ):
        assert list(was.get_flattened_data()) == list(now.get_flattened_data())
        assert now.private_chunks == []
    assert pictures.parted(whole) == (whole, b"")


def test_a_phone_is_told_the_size_of_its_own(carrying):
    other = pictures.carried(carrying)
    image = '<img width="660" height="300" src="../_images/figure.png" />'
    text = pictures.with_another(image, other, 2.0)
    with Image.open(io.BytesIO(other)) as shown:
        wide, high = (round(side / 2) for side in shown.size)
    source = text.partition("<img")[0]
    assert f'width="{wide}" height="{high}"' in source
    assert 'srcset="../_images/figure-phone.png"' in source
    assert 'media="screen and' in source  # paper gets the wide one
    assert text.endswith(f"{image}</picture>")


def test_one_that_carries_none_stays_as_it_is(tmp_path):
    path = tmp_path / "small.png"
    Image.new("RGB", (20, 10)).save(path)
    assert pictures.carried(path) == b""
    assert pictures.parted(path.read_bytes()) == (path.read_bytes(), b"")
