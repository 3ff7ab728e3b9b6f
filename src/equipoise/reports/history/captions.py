"""What the charts of a history show, in sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

from equipoise.measures.display import magnitude, whole
from equipoise.reports.history.data import SHOWN, biases, thresholds
from equipoise.reports.history.times import Times

if TYPE_CHECKING:
    from equipoise.monitoring.history import History


POPULATION = (
    "Who the rows are: the number of rows, the rate of each label, and the share of each group. The last "
    "chart shows the share of rows that would have to be of other groups or labels for a period to have "
    "the mix of all others; chance alone gives about as much as the line says."
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
        f"which is shown and not tested. Band: {history.check.watched.level} confidence sequence, the "
        "values of UB that all rows until then allow if the ratio of rates is the same in all batches. "
        "Dashed: limits. Red: an alert was raised."
    )
    if any(each.at for each in history.acknowledgements):
        said += " Grey: alerts were acknowledged, and the tests began anew."
    return said + _order(history)


def _order(history: History) -> str:
    """How time is drawn where it is not as on a clock, or not when batches were of."""
    said = ""
    if any(event.kind == "late" for event in history.events):
        said += (
            " Batches are tested as they arrive, so that a late one changes the evidence, and raises "
            "alerts, at the latest time there was until then."
        )
    if not Times.of(history).even and len(history.periods) > 1:
        said += " Periods are drawn side by side, however much time is between them."
    return said


def evidence_caption(history: History) -> str:
    """How to read the chart of the evidence."""
    said = (
        "How strong the evidence is that a limit does not hold. If the limit held in every batch, a line "
        "would ever reach an e-value of 100 with a chance of at most 1 in 100, and 1,000 with 1 in 1,000. "
    )
    pairs = len(history.check.findings)
    watched = history.check.watched
    texts = [magnitude(each) for each in thresholds(history)]
    if not texts:
        return said + "Alerts come from the change detector here, so no threshold is drawn."
    if len(texts) == 1:
        said += f"From the dashed line on, {texts[0]}, there is an alert."
    else:
        said += (
            f"{pairs:,} groups and labels are watched: an e-value of {texts[1]} (upper dashed line) is "
            f"an alert whatever the others have, less than {texts[0]} (lower line) is none, and between "
            "them it is one if enough others have as much evidence."
        )
    if watched.alert_on == "both":
        said += " The change detector raises alerts besides."
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
