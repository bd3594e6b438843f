"""Names the action's image by its digest: ``python pin_image.py action.yml ghcr.io/owner/name sha256:…``."""

from __future__ import annotations

import re
import sys
from pathlib import Path

NAME = re.compile(r"[a-z0-9.-]+(?::\d+)?(?:/[a-z0-9._-]+)+")
DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
LINE = re.compile(r"^  image: .*$", re.MULTILINE)


def pinned(text: str, image: str, digest: str) -> str:
    """The text of action.yml with the image by its digest.

    Raises:
        ValueError: the name or digest is none, or the text has not exactly one image.
    """
    if not NAME.fullmatch(image) or not DIGEST.fullmatch(digest):
        raise ValueError(f"no name and digest of an image: {image!r}, {digest!r}")
    found, number = LINE.subn(f"  image: docker://{image}@{digest}", text)
    if number != 1:
        raise ValueError(f"{number} images instead of one")
    return found


if __name__ == "__main__":
    path = Path(sys.argv[1])
    try:
        path.write_text(pinned(path.read_text(encoding="utf-8"), sys.argv[2], sys.argv[3]), encoding="utf-8")
    except ValueError as error:
        sys.exit(f"pin_image: {error}")
