"""The picture in the README: the comment on the example's red pull request, as a code host shows it.

    python -m docs.tools.readme_picture

The picture states the digest of its comment, so that a test notices when the comment has changed since.
"""

from __future__ import annotations

import struct
import zlib
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory

FOLDER = Path(__file__).parents[2] / "examples/repository/pull-requests/1-shorter-prompt"
COMMENT, PICTURE = FOLDER / "comment.md", FOLDER / "comment.png"
SIGNATURE = b"\x89PNG\r\n\x1a\n"
KEYWORD = b"Source\0"


def digest(comment: bytes) -> str:
    """Return what the picture of this comment states."""
    return f"sha256:{sha256(comment).hexdigest()}"


def with_source(picture: bytes, source: str) -> bytes:
    """Return the PNG with a text chunk that names its source, after the header chunk."""
    content = b"tEXt" + KEYWORD + source.encode("ascii")
    chunk = struct.pack(">I", len(content) - 4) + content + struct.pack(">I", zlib.crc32(content))
    end_of_header = len(SIGNATURE) + 25
    return picture[:end_of_header] + chunk + picture[end_of_header:]


def source_of(picture: bytes) -> str:
    """Return the source that the PNG names; empty if it names none."""
    place = len(SIGNATURE)
    while place + 8 <= len(picture):
        (size,) = struct.unpack(">I", picture[place : place + 4])
        kind, content = picture[place + 4 : place + 8], picture[place + 8 : place + 8 + size]
        if kind == b"tEXt" and content.startswith(KEYWORD):
            return content.removeprefix(KEYWORD).decode("ascii")
        place += size + 12
    return ""


def main() -> None:
    """Draw the comment and keep the wider picture."""
    from docs.tools.pictures import draw

    comment = COMMENT.read_bytes()
    with TemporaryDirectory() as folder:
        pictures = draw(Path(folder), {"comment": comment.decode("utf-8")})
        [wide] = [path for path in pictures if path.name == "comment-830.png"]
        PICTURE.write_bytes(with_source(wide.read_bytes(), digest(comment)))


if __name__ == "__main__":
    main()
