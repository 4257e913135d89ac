"""What `goldspan desk` says in words."""

from __future__ import annotations

import math
from typing import Any

from goldspan.cli.output import table

BRIEF = 60
STATES = {"waiting": "open", "working": "computing", "failed": "trouble"}
"""What the desk's pages call states that have another name in JSON."""
TOO_FEW = "there are too few answers to say"


def overview(now: dict[str, Any]) -> str:
    """Return how far it is."""
    money, items, answers = now["money"], now["items"], now["answers"]
    why = now["why"]
    state, hours = STATES.get(now["state"], now["state"]), now["hours"]
    left = "" if hours["left"] is None else f", {_time(hours['left'])} left"
    lines = [
        f"{now['title']}: {state}{f' ({why})' if why else ''}",
        *([f"THE CAMPAIGN DOES NOT GO ON: {now['error']}", now["advice"]] if now["error"] else []),
        f"items: {items['answered']} of {items['pool']} have answers",
        f"answers: {answers['counting']}, {answers['control']} of them control",
        f"workers: {answers['workers']}",
        *([] if money is None else _money(money)),
        f"time: {_time(hours['used'])}{left}",
    ]
    lines += [f"reports: {now['flags']}"] if now["flags"] else []
    lines += [f"changed: {line}" for line in now["plan"]["changes"]]
    lines += [
        f"in the plan file, not in force until `goldspan serve` starts again: {line}"
        for line in now["plan"]["pending"]
    ]
    lines += [_round(one) for one in now["rounds"][-1:]]
    return "\n".join([*lines, *_forecast(now["learning"], money)])


def _money(money: dict[str, Any]) -> list[str]:
    return [
        f"money: {money['spent']} of {money['cap']} {money['currency']}".rstrip(),
        f"spent on labels: {money['labels']}, on practice, test and control: {money['control']}",
        f"reserved: {money['reserved']}, left: {money['left']}",
    ]


def workers(rows: list[dict[str, Any]]) -> str:
    """List the workers."""
    if not rows:
        return "nobody has opened a task yet"
    paid = any(one["earned"] is not None for one in rows)
    head = ["worker", "answers", "earned", "control", "right", "95 % interval", "standing", "why"]
    made = [head if paid else [name for name in head if name != "earned"]]
    for one in rows:
        test, found = one["control"], one["verdict"]
        right = _right(found) if found and found["by"] else []
        known = f"{test['right']:g} of {test['total']:g} {test['unit']}"
        made.append([
            one["worker"], str(one["answers"]), *([one["earned"]] if paid else []),
            known if test["answered"] else "",
            *(right or ["", ""]), one["standing"], found["why"] if found else "",
        ])  # fmt: skip
    return table(made, (1, 2, 3, 4) if paid else (1, 2, 3))


def _right(found: dict[str, Any]) -> list[str]:
    """Write how often a worker is right; a number that is agreement is marked."""
    mark = "agrees " if found["measure"] == "agrees" else "" if found["by"] == "gold" else "~"
    return [f"{mark}{found['mean']:.3f}", f"{found['low']:.3f}–{found['high']:.3f}"]


def agreement(found: dict[str, Any]) -> str:
    """Return how well they agree."""
    if found["measures"] is None:
        return TOO_FEW
    names = ("alpha", "observed", "cohen_kappa", "pairwise_span_f1")
    known = {name: found["measures"][name] for name in names}
    rows = [[name, f"{value:.3f}"] for name, value in known.items() if _is_number(value)]
    if not rows:
        return TOO_FEW
    return table([["measure", "value"], *rows], (1,))


def doubts(rows: list[dict[str, Any]]) -> str:
    """List doubtful items."""
    if not rows:
        return "nothing is in doubt"
    made = [["item", "certain", "labels", "text"]]
    for one in rows:
        found = one["found"]
        labels = _labels(found["label"] if "label" in found else found["spans"], one)
        made.append(
            [one["item"], f"{found['confidence']:.3f}", _brief(labels), _brief(one["text"])]
        )
    return table(made, (1,))


def items(page: dict[str, Any]) -> str:
    """List items."""
    made = [["item", "answers", "certain", "state", "text"]]
    for one in page["items"]:
        sure = "" if one["confidence"] is None else f"{one['confidence']:.3f}"
        marks = [name for name in ("gold", "control") if one[name]]
        marks += [f"reports: {one['flags']}"] if one["flags"] else []
        state = ", ".join(marks if one["control"] else [one["state"], *marks])
        # A control question has a place for everybody who may come: how many says nothing.
        count = str(one["answers"]) if one["control"] else f"{one['answers']}/{one['wanted']}"
        made.append([one["item"], count, sure, state, _brief(one["text"])])
    more = f"\nmore: --after {page['items'][-1]['item']}" if page["more"] else ""
    return f"{table(made, (1, 2))}{more}"


def item(one: dict[str, Any]) -> str:
    """Show an item."""
    found = one["found"]
    lines = [f"{one['item']}: {one['text']}"]
    for name in ("gold", "known"):
        lines += [f"{name}: {_labels(one[name], one)}"] if one[name] is not None else []
    if found:
        said = _labels(found["label"] if "label" in found else found["spans"], one)
        lines.append(f"the answers say: {said} ({found['confidence']:.3f})")
        for other in found["alternatives"]:
            shown = other["label"] if "label" in other else _labels([other], one)
            lines.append(f"  {other['confidence']:.3f}  {shown}")
    for row in one["answers"]:
        counts = "" if row["counts"] else f" ({row['status']}, does not count)"
        lines.append(f"{row['worker']}: {_labels(row['labels'], one)}{counts}")
    lines += [f"skipped by {row['worker']}: {row['reason']}" for row in one["skipped"]]
    lines += [f"reported by {row['worker']}: {row['reason']} {row['note']}" for row in one["flags"]]
    lines += [f"more: --page {one['page'] + 1}"] if one["page"] < one["pages"] else []
    return "\n".join(line.rstrip() for line in lines)


def decision(body: dict[str, Any]) -> str:
    """Return what was decided about a worker."""
    said = {
        "keep": "goes on, whatever the rules say",
        "drop": "is asked nothing more",
        "test": f"gets {body['questions']} more control questions",
    }
    return f"{body['worker']} {said[body['verdict']]}"


def gold(body: dict[str, Any]) -> str:
    """Return what was decided about an item."""
    shown = body["gold"] if isinstance(body["gold"], str) else f"{len(body['gold'])} spans"
    return f"{body['item']} is gold: {shown}"


def exports(rows: list[dict[str, str]]) -> str:
    """List the files."""
    return table([["file", "what"], *([one["name"], one["what"]] for one in rows)])


def _labels(labels: Any, item: dict[str, Any]) -> str:
    """Write labels; a span as it stands in the text."""
    if labels is None or isinstance(labels, str):
        return labels or ""
    text, starts, tokens = item["text"], item["starts"], item["tokens"]
    words = []
    for one in labels:
        last = one["end"] - 1
        covered = text[starts[one["start"]] : starts[last] + len(tokens[last])]
        words.append(f"{one['type']}[{_plain(covered)}]")
    return " ".join(words) or "nothing"


def _plain(text: str) -> str:
    return " ".join(text.split())


def _brief(text: str) -> str:
    plain = _plain(text)
    return plain if len(plain) <= BRIEF else f"{plain[: BRIEF - 1]}…"


def _time(hours: float) -> str:
    """Write hours, as the desk's pages do."""
    if hours >= 48:
        return f"{hours / 24:.1f} days"
    return f"{hours:.1f} h" if hours >= 1 else f"{round(60 * hours)} min"


def _is_number(value: float | None) -> bool:
    return value is not None and math.isfinite(value)


def _round(one: dict[str, Any]) -> str:
    score = one["control"] or one["score"]
    told = f", score {score['value']:.3f} ({score['low']:.3f}–{score['high']:.3f})" if score else ""
    return f"round {one['round']}: {one['items']} items, {one['answers']} answers{told}"


def _forecast(learning: dict[str, Any], money: dict[str, Any] | None) -> list[str]:
    """Return what more labels take: money, or answers where nobody is paid."""
    found, lines = learning["forecast"] or {}, []

    def takes(facts: dict[str, Any]) -> str:
        if money is None:
            return f"{facts['answers']} answers"
        return f"{facts['cost']} {money['currency']}".rstrip()

    if found.get("next"):
        ahead = found["next"]
        lines.append(
            f"{ahead['items']} more items: score {ahead['score']:.3f} "
            f"({ahead['low']:.3f}–{ahead['high']:.3f}) for {takes(ahead)}"
        )
    goal = found.get("to_target")
    if goal and goal["cost" if money else "answers"] is not None:
        lines.append(f"to the target {learning['target']:g}: {takes(goal)}")
    return lines
