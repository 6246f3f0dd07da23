"""English, with moments to the minute."""
