"""True where the padding is, whose number is fixed."""

PAD = 0


def create_padding_mask(seq):
    return seq == PAD


PATIENT = create_padding_mask
FACTS = {"mask": "block", "axes": "BN", "of": "tokens", "arguments": 1}
INPUTS = {"seq": "ids b n"}
