"""What the charts of a history show, in sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

from equipoise.measures.display import magnitude, whole
from equipoise.reports.history.data import SHOWN, biases, thresholds
from equipoise.reports.history.times import Times

if TYPE_CHECKING:
    from equipoise.monitoring.history import History


POPULATION = (
    "The number of rows, the rate of each label, and the share of each group. The last chart shows how far "
    "the mix of groups and labels of each period is from that of all other periods, as the share of its rows "
    "that would have to change."
)


def bias_caption(history: History) -> str:
    """How to read the charts of UB."""
    single = all(period.batches == 1 for period in history.periods)
    batches, periods = whole(history.check.batches), whole(len(history.periods))
    each = "batch" if single else f"period ({batches} batches are drawn as {periods} periods)"
    hidden = any(
        not line["domain"][0] <= point["ub"] <= line["domain"][1]
        for line in biases(history)
        for point in line["points"]
    )
    beyond = "; some lie beyond the axis" if hidden else ""
    said = (
        f"Dots: UB of each {each}, above 0 if the group has the label less often than all rows "
        f"do{beyond}. Line: UB of the last {history.window} {'batches' if single else 'periods'} together, "
        f"which is not tested. Band: {history.check.watched.level} confidence sequence of UB from all rows until "
        "then, for a ratio of rates that is the same in all batches. "
        "Dashed lines: the limits. Red line: an alert was raised."
    )
    if any(each.at for each in history.acknowledgements):
        said += " Grey line: alerts were acknowledged, and the tests restarted."
    return said + _order(history)


def _order(history: History) -> str:
    """How time is drawn where it differs from that of a clock, or from that of the batches."""
    said = ""
    if any(event.kind == "late" for event in history.events):
        said += (
            " Batches are tested in the order of their arrival. A late batch changes the evidence, and raises "
            "alerts, at the latest time of any batch until then."
        )
    if not Times.of(history).even and len(history.periods) > 1:
        said += " Periods are drawn side by side, whatever the time between them."
    return said


def evidence_caption(history: History) -> str:
    """How to read the chart of the evidence."""
    said = (
        "The evidence that a limit does not hold. If the limit held in every batch, the line would ever reach an "
        "e-value of 100 with a probability of at most 1 in 100, and 1,000 with at most 1 in 1,000. "
    )
    pairs = len(history.check.findings)
    watched = history.check.watched
    texts = [magnitude(each) for each in thresholds(history)]
    if not texts:
        return said + "No threshold is drawn, because the alerts come from the change detector."
    if len(texts) == 1:
        said += f"An e-value of {texts[0]} (dashed line) or more is an alert."
    else:
        said += (
            f"{pairs:,} pairs of a group and a label are tested together: an e-value of {texts[1]} (upper dashed line) "
            f"or more is always an alert, and one below {texts[0]} (lower dashed line) never is. Between the lines, it "
            "is an alert if enough other pairs have as much evidence."
        )
    if watched.alert_on == "both":
        said += " The change detector raises alerts, too."
    return said


def population_captions(history: History) -> dict[str, str]:
    """The titles of the charts of label rates and of groups, which say how many are left out."""
    labels = len(history.labels)
    first = f", the first {SHOWN} of {labels:,} labels" if labels > SHOWN else ""
    largest = f"the {SHOWN} largest groups" if len(history.sizes) > SHOWN else "groups"
    return {
        "rates": f"Rates of {history.label}{first}",
        "sizes": f"Shares of {largest} of one attribute",
    }
