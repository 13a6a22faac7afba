"""Pictures of made-up evidence: a sign, a note or a chart that can be read, cannot, or shows something else."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from ewe.errors import ConfigError

if TYPE_CHECKING:
    from PIL.ImageDraw import ImageDraw

_SIZE = (480, 320)
_PAPER = {"sign": "#1f4e79", "note": "#fff6bf", "chart": "#ffffff"}
_INK = {"sign": "#ffffff", "note": "#30302a", "chart": "#202020"}
_BLUR = 14.0  # pixels; letters are about 40 high


@dataclass(frozen=True, slots=True)
class Picture:
    """kind: sign, note or chart; value: what it says of a thing's attribute, "?" if blurred, "" if it says nothing."""

    kind: str
    thing: str
    attribute: str
    value: str


def draw(picture: Picture, path: Path) -> None:
    """Draws it into a PNG file, the same at every call. Raises ConfigError where Pillow is not installed."""
    try:
        from PIL import Image, ImageDraw, ImageFilter, ImageFont
    except ImportError as error:
        raise ConfigError("pictures need Pillow: install it with pip install 'ewe-engine[plots]'") from error
    image = Image.new("RGB", _SIZE, _PAPER[picture.kind])
    pen, ink = ImageDraw.Draw(image), _INK[picture.kind]
    value = picture.value if picture.value not in ("", "?") else "8888"
    about = picture.attribute if picture.value else "umbrellas sold"
    if picture.kind == "chart":
        _draw_bars(pen, value, path.name)
    pen.text((30, 24), picture.thing if picture.value else "Somewhere", ink, ImageFont.load_default(34))
    pen.text((30, 76), about, ink, ImageFont.load_default(26))
    pen.text((30, 130), value if picture.value else "12", ink, ImageFont.load_default(72))
    pen.rectangle((6, 6, _SIZE[0] - 7, _SIZE[1] - 7), outline=ink, width=3)
    if picture.value == "?":
        image = image.filter(ImageFilter.GaussianBlur(_BLUR))
    image.save(path, "PNG")


def _draw_bars(pen: ImageDraw, value: str, seed: str) -> None:
    """Bars of earlier years, the last and tallest for the value."""
    random = Random(f"{seed} {value}")
    for number in range(6):
        height = 110 if number == 5 else random.randrange(20, 90)
        left = 250 + 34 * number
        pen.rectangle((left, 300 - height, left + 24, 300), fill="#2c6fb3" if number == 5 else "#9db8d2")
