"""The memory of a process that forks often is asked for in large pages."""

import pages
import torch


def test_what_is_ours_is_found_and_stays_as_it_is():
    x = torch.arange(4 * pages.LARGE, dtype=torch.uint8)
    before, first = x.clone(), x.data_ptr()
    made = pages.in_large_pages()
    assert torch.equal(x, before)
    found = [range(*place) for place in pages.writable()]
    ours = [one for one in found if first in one and first + len(x) - 1 in one]
    assert bool(ours) == pages.MAPS.exists()  # on Linux alone
    assert 0 <= made <= sum(map(len, found)) // pages.LARGE


def test_what_is_a_files_or_not_to_be_written_is_left_out(
    monkeypatch, tmp_path
):
    maps = tmp_path / "maps"
    maps.write_text(
        "00200000-00a00000 rw-p 00000000 00:00 0 \n"
        "01000000-01800000 rw-p 00000000 00:00 0                  [heap]\n"
        "02000000-02800000 r--p 00000000 00:00 0 \n"
        "03000000-03800000 rw-p 00000000 fe:00 77                 /a b.so\n"
        "04000000-04800000 rw-p 00000000 00:00 0                  [stack]\n"
    )
    monkeypatch.setattr(pages, "MAPS", maps)
    assert list(pages.writable()) == [
        (0x200000, 0xA00000),
        (0x1000000, 0x1800000),
    ]
