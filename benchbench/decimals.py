"""Numbers in texts for people."""


def signed(number: float, decimals: int = 4) -> str:
    """Return a difference with its sign, `+0.0123`; what rounds to nothing has none: `0.0000`."""
    shown = f"{number:+z,.{decimals}f}"
    return shown if float(shown.replace(",", "")) else shown[1:]
