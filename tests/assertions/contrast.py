"""How well a colour stands out from its ground."""


def luminance(colour):
    """Relative luminance of a colour in six digits, #0072B2."""
    parts = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    r, g, b = (
        x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4
        for x in parts
    )
    return 0.2126 * r + 0.7152 * g + 0.0722 * b


def contrast(a, b):
    """As the Web Content Accessibility Guidelines 2.2 define it."""
    high, low = sorted((luminance(a), luminance(b)), reverse=True)
    return (high + 0.05) / (low + 0.05)
