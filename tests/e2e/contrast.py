"""How well a text can be read on what is behind it, as a browser paints both."""

from __future__ import annotations

from collections.abc import Sequence

# The colours of the first element that a selector finds and of the first opaque background behind it, read in one step:
# a page that draws itself anew must not take the element away in between. Null where there is no such element.
PAINTED = """(selector) => {
  const node = document.querySelector(selector);
  if (!node) return null;
  const paint = (color) => {
    const context = new OffscreenCanvas(1, 1).getContext('2d');
    context.fillStyle = color;
    context.fillRect(0, 0, 1, 1);
    return [...context.getImageData(0, 0, 1, 1).data];
  };
  const style = getComputedStyle(node);
  let behind = node;
  while (paint(getComputedStyle(behind).backgroundColor)[3] < 255) behind = behind.parentElement;
  const text = node instanceof SVGElement ? style.fill : style.color;
  return [paint(text), paint(getComputedStyle(behind).backgroundColor)];
}"""


def ratio(painted: Sequence[Sequence[int]]) -> float:
    """The WCAG contrast of two colours."""
    light, dark = sorted((_luminance(color) for color in painted), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def _luminance(color: Sequence[int]) -> float:
    parts = [value / 255 for value in color[:3]]
    linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
