"""What the lab on models shows is what the trained model's tool writes."""

from selfattn.labs.models import PLACE, all_scores
from tools.measure.experiments._next_letters import written


def test_the_file_is_what_the_tool_writes_of_these_numbers():
    assert PLACE.read_text("utf-8") == written(all_scores())
