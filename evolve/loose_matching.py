"""Places of a SEARCH part that was copied with other white space, and the REPLACE part as it must look there.

1. Blank lines and all white space within lines do not count; everything else must be equal, in order.
2. A REPLACE line that repeats a found line, up to white space, becomes that line as it is in the program.
3. Any other REPLACE line is indented as it stands to the last such line before it (the next one, where there is none
   before), or as the SEARCH part stands to the program where no line is repeated. A tab counts as four columns.
"""

from __future__ import annotations

from collections.abc import Iterator

_TAB = 4


def loose_matches(lines: list[str], search: list[str], replace: list[str]) -> Iterator[tuple[int, int, list[str]]]:
    """First line, number of lines and new lines (without line ends) of every place; ``lines`` may have line ends."""
    places = [i for i, line in enumerate(lines) if line.strip()]
    texts = [_squeezed(lines[i]) for i in places]
    wanted = [line for line in search if line.strip()]
    keys = [_squeezed(line) for line in wanted]
    for at in range(len(texts) - len(keys) + 1):
        if texts[at : at + len(keys)] == keys:
            first, last = places[at], places[at + len(keys) - 1]
            found = [lines[i].rstrip("\r\n") for i in places[at : at + len(keys)]]
            yield first, last - first + 1, _fitted(found, wanted, _trimmed(replace))


def _fitted(found: list[str], search: list[str], replace: list[str]) -> list[str]:
    """``replace`` as it must look in the place of ``found``, which ``search`` stands for."""
    there = dict(zip(map(_squeezed, reversed(found)), reversed(found), strict=True))
    tabs = any(line.startswith("\t") for line in found)
    anchors = [(i, there[key]) for i, line in enumerate(replace) if (key := _squeezed(line)) and key in there]
    shift = _columns(found[0]) - _columns(search[0])
    if anchors:
        shift = _columns(anchors[0][1]) - _columns(replace[anchors[0][0]])
    verbatim = dict(anchors)
    fitted: list[str] = []
    for i, line in enumerate(replace):
        if i in verbatim:
            shift = _columns(verbatim[i]) - _columns(line)
            fitted.append(verbatim[i])
        elif not line.strip():
            fitted.append("")
        else:
            fitted.append(_indentation(max(0, _columns(line) + shift), tabs=tabs) + line.lstrip(" \t"))
    return fitted


def _indentation(columns: int, *, tabs: bool) -> str:
    return "\t" * (columns // _TAB) + " " * (columns % _TAB) if tabs else " " * columns


def _columns(line: str) -> int:
    blanks = line[: len(line) - len(line.lstrip(" \t"))]
    return len(blanks.expandtabs(_TAB))


def _squeezed(line: str) -> str:
    return "".join(line.split())


def _trimmed(lines: list[str]) -> list[str]:
    full = [i for i, line in enumerate(lines) if line.strip()]
    return [line.rstrip() for line in lines[full[0] : full[-1] + 1]] if full else []
