"""Ids and hashes in one spelling: libraries also take braces, other hyphens and digits of other scripts."""

import re
from uuid import UUID

SHA256 = re.compile("[0-9a-fA-F]{64}")
UUID_TEXT = re.compile("[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
CHANGED = re.compile(  # by a spreadsheet
    r"[0-9][.,][0-9]+E\+[0-9]+|#(?:REF|NAME|N/A|NV|VALUE|DIV/0|NULL|NUM|BEZUG|WERT)[!?]?", re.IGNORECASE
)


def parse_uuid(text: str) -> UUID:
    """Return the UUID of its usual text, 8-4-4-4-12 digits. Raises ValueError for anything else."""
    if not isinstance(text, str) or not UUID_TEXT.fullmatch(text):
        raise ValueError(f"{str(text)[:60]!a} is not a UUID.")
    return UUID(text)
