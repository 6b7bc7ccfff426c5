"""The picture of a verdict: one interval a case, and that of all cases."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gauntlet._verdict import Interval, Verdict

WIDTH, LABELS, ROW, MARGIN = 640, 200, 24, 20
FASTER, SLOWER, UNDECIDED = "#1a7f37", "#b42318", "#57606a"


def picture(verdict: Verdict) -> str:
    """An SVG image; an empty text without intervals."""
    rows = [(case.case, case.speedup) for case in verdict.cases] if len(verdict.cases) > 1 else []
    rows.append(("all cases" if rows else verdict.candidate, verdict.speedup))
    drawn = [(name, interval) for name, interval in rows if interval is not None]
    if not drawn:
        return ""
    edge = 1.15 * max(max(abs(interval.lower), abs(interval.upper), 0.01) for _, interval in drawn)
    height = ROW * (len(drawn) + 1)
    decides = not verdict.is_void and verdict.verdict != "inconclusive"
    lines = [_line(name, interval, number, edge, decides) for number, (name, interval) in enumerate(drawn)]
    zero = _x(0.0, edge)
    axis = (
        f'<line x1="{zero:.1f}" x2="{zero:.1f}" y1="0" y2="{height - ROW}" stroke="{UNDECIDED}" stroke-dasharray="3 3"/>'
        f'<text x="{zero:.1f}" y="{height - 8}" text-anchor="middle" fill="{UNDECIDED}">slower ← as fast → faster</text>'
    )
    title = html.escape(str(verdict))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" '
        f'height="{height}" font-family="sans-serif" font-size="12"><title>{title}</title>{axis}{"".join(lines)}</svg>'
    )


def _x(value: float, edge: float) -> float:
    """The horizontal place of a log speed-up."""
    return LABELS + (WIDTH - LABELS - MARGIN) * (value + edge) / (2 * edge)


def _line(name: str, interval: Interval, number: int, edge: float, decides: bool) -> str:
    """An interval, in the colour of its side of "no change" if the times decide anything."""
    from gauntlet._native import visible

    middle = ROW * (number + 0.5)
    sign = (interval.lower > 0) - (interval.upper < 0) if decides else 0
    colour = {1: FASTER, -1: SLOWER, 0: UNDECIDED}[sign]
    start, dot, end = (_x(value, edge) for value in (interval.lower, interval.estimate, interval.upper))
    return (
        f'<text x="0" y="{middle + 4:.1f}">{html.escape(visible(name))}: {interval.percent}</text>'
        f'<line x1="{start:.1f}" x2="{end:.1f}" y1="{middle:.1f}" y2="{middle:.1f}" stroke="{colour}" stroke-width="3"/>'
        f'<circle cx="{dot:.1f}" cy="{middle:.1f}" r="4" fill="{colour}"/>'
    )
