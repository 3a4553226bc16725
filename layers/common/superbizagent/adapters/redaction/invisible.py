"""Characters that nobody sees, out of text; emoji stay whole (SEC-3)."""

from typing import Final

from superbizagent.domain.pattern import Pattern

# Control characters but for line feed and tab; carriage returns with them.
_CONTROL: Final = Pattern("[\x00-\x08\x0b-\x1f\x7f-\x9f]")
# Zero-width, bidirectional, tag and filler characters; variation selectors and joiners are judged
# by their neighbours.
_INVISIBLE: Final = Pattern(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200c\u200e\u200f\u2028-\u202e\u2060-\u206f"
    "\u3164\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\ud800-\udfff"
    "\U000e0000-\U000e0fff]"
)
_EMOJI: Final = (
    "[\u00a9\u00ae\u203c\u2049\u2122\u2139\u2190-\u21ff\u2300-\u23ff\u24c2\u25a0-\u27bf\u2934\u2935\u2b00-\u2bff"
    "\u3030\u303d\u3297\u3299\U0001f000-\U0001faff]"
)
_ANSI: Final = Pattern(r"\x1b(?:\[[0-?]{0,64}[ -/]{0,8}[@-~]|\][^\x07\x1b\n]{0,1024}(?:\x07|\x1b\\)|[@-Z\\-_])")
# A joiner between two emoji (a skin tone or selector may follow the first), and a selector after one
# or in a keycap.
_JOINER: Final = Pattern(f"(?<!{_EMOJI})(?<!{_EMOJI}\ufe0f)\u200d|\u200d(?!{_EMOJI})")
_SELECTOR: Final = Pattern(f"(?<![0-9#*])(?<!{_EMOJI})[\ufe00-\ufe0f]|(?<=[0-9#*])[\ufe00-\ufe0f](?!\u20e3)")


def without_invisible(text: str) -> str:
    """`text` without control, zero-width, bidirectional and tag characters; emoji stay whole."""
    if text.isascii():
        return _CONTROL.sub("", _ANSI.sub("", text)) if not text.isprintable() else text
    text = _CONTROL.sub("", _ANSI.sub("", text))
    text = _INVISIBLE.sub("", text)
    return _JOINER.sub("", _SELECTOR.sub("", text))
