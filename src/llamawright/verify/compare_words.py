"""Figures and findings in words, the same on the console and on the page. Pure."""

from __future__ import annotations

from llamawright.model.comparison import Comparison, Finding, Gate, GateOutcome, Measure, Metric
from llamawright.verify.compare_statistics import MIN_ROUNDS

MIB = 1 << 20
HUNDRED = 100.0
SMALL_P = 0.001
# Ratios above are told without decimals, and not at all above the second.
MANY = 100.0
FAR = 1000.0

# A mark and a word for each finding: never colour alone.
FINDINGS = {
    Finding.FASTER: ("▲", "faster"),
    Finding.SLOWER: ("▼", "slower"),
    Finding.MORE: ("▼", "more"),
    Finding.LESS: ("▲", "less"),
    Finding.SAME: ("=", "no difference"),
    Finding.UNKNOWN: ("?", "not measured"),
}
GATES = {
    GateOutcome.PASS: ("✓", "fast enough"),
    GateOutcome.TOO_SLOW: ("✗", "too slow"),
    GateOutcome.UNDECIDED: ("?", "undecided"),
}


def title(metric: Metric) -> str:
    """Return a metric's name with a capital letter."""
    return metric.title[:1].upper() + metric.title[1:]


def figure(value: float | None, unit: str) -> str:
    """Return a figure with its unit, three or four digits of it."""
    if value is None:
        return "-"
    match unit:
        case "bytes":
            return f"{value / MIB:,.0f} MiB"
        case "%":
            return f"{value:.0f} %"
        case "s":
            return f"{value:.3f} s" if value < 1 else f"{value:.2f} s"
        case _:
            return f"{value:.3g} {unit}" if value < HUNDRED else f"{value:.0f} {unit}"


def ratio_words(measure: Measure) -> str:
    """Return the ratio B/A with its interval."""
    if measure.ratio is None:
        return "-"
    if measure.low is None or measure.high is None:
        return _scaled(measure.ratio)
    return f"{_scaled(measure.ratio)} ({_scaled(measure.low)} to {_scaled(measure.high)})"


def p_words(p: float | None) -> str:
    """Return the test's p."""
    if p is None:
        return "-"
    return f"< {SMALL_P}" if p < SMALL_P else f"{p:.3f}"


def finding_words(measure: Measure) -> str:
    """Return what B is; where the noise hides it, how many rounds would tell."""
    mark, word = FINDINGS[measure.finding]
    if measure.rounds_needed:
        few = min(len(measure.a), len(measure.b)) < MIN_ROUNDS
        needs = measure.rounds_needed
        why = f"too few rounds, needs {needs}" if few else f"too noisy, needs {needs} rounds"
        # The interval alone would call it one: it is not sure enough, and not nothing either.
        low, high = measure.low, measure.high
        apart = low is not None and high is not None and not low <= 1 <= high
        seen = "perhaps a difference" if apart else "no difference seen"
        return f"{'?' if apart else mark} {seen}: {why}"
    return f"{mark} {word}"


def gate_words(gate: Gate) -> str:
    """Return what the speed gate said."""
    mark, word = GATES[gate.outcome]
    return f"{mark} {word}: {gate.why}"


def headline(comparison: Comparison) -> str:
    """Return the comparison in one sentence: what B is in which of the rates and times."""
    parts = []
    for finding in (Finding.FASTER, Finding.SLOWER, Finding.LESS, Finding.MORE):
        names = [m.metric.title for m in comparison.measures if m.finding is finding]
        if names:
            word = {"less": "takes less", "more": "takes more"}.get(finding, f"is {finding} in")
            parts.append(f"{word} {', '.join(names)}")
    if not parts:
        return "No difference between A and B was found."
    return f"B {'; '.join(parts)}."


def _scaled(ratio: float) -> str:
    """Return a ratio with the digits that mean something; by next to nothing any can come."""
    if ratio > FAR:
        return f"more than {FAR:.0f}"
    return f"{ratio:.0f}" if ratio > MANY else f"{ratio:.3f}"
