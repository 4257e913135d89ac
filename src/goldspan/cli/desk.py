"""`goldspan desk`: what the requester sees and decides, on the store, with or without a server."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from goldspan.cli.campaign import write_findings
from goldspan.cli.commands import Commands
from goldspan.cli.options import (
    AsJson,
    Overwrite,
    Place,
    argument,
    at_campaign,
    flag,
    option,
    told_of_damage,
)
from goldspan.cli.output import (
    check_outputs,
    check_part,
    not_held,
    print_result,
    table,
    warn,
)
from goldspan.crowd.atomic import new_file
from goldspan.spans.notebook import counted

if TYPE_CHECKING:
    from goldspan.web.desk import Desk


desk = Commands()
Item = Annotated[str, typer.Argument(metavar="ITEM", help="An item's id.")]
WorkerId = Annotated[str, typer.Argument(metavar="WORKER", help="A worker's id.")]
Order = Annotated[Literal["confidence", "information"], typer.Option(help="What comes first.")]
Limit = Annotated[int, typer.Option(min=1, max=200, help="List at most this many.")]


@desk.callback()
def root() -> None:
    """Watch and steer a served campaign, as its requester does in the browser (at the "desk").

    The commands work on the campaign's store. The server need not run; if it does, it follows the
    decisions.
    """


@desk.command(short_help="Show how far the campaign is: state, money, time, rounds.")
@at_campaign
def overview(place: Place, json: AsJson = False) -> None:
    """Show how far a campaign is.

    Examples:

      goldspan desk overview campaign.toml
    """
    with _open(place, look=True) as at:
        _show(at.overview(), overview_text, as_json=json)


@desk.command(short_help="List the annotators, with verdicts.")
@at_campaign
def workers(place: Place, json: AsJson = False) -> None:
    """List the annotators: answers, money, gold questions, verdicts.

    Examples:

      goldspan desk workers campaign.toml --json
    """
    with _open(place, look=True) as at:
        _show(at.workers(), workers_text, as_json=json)


@desk.command(short_help="Show how well the annotators agree.")
@at_campaign
def agreement(place: Place, json: AsJson = False) -> None:
    """Show how well the annotators agree.

    Examples:

      goldspan desk agreement campaign.toml
    """
    with _open(place, look=True) as at:
        _show(at.agreement(), agreement_text, as_json=json)


@desk.command(short_help="List uncertain items.")
@at_campaign
def uncertain(
    place: Place, limit: Limit = 20, by: Order = "confidence", json: AsJson = False
) -> None:
    """List the uncertain items without those already decided.

    Examples:

      goldspan desk uncertain campaign.toml --limit 5
    """
    with _open(place, look=True) as at:
        _show(at.uncertain(limit, by), uncertain_text, as_json=json)


@desk.command(short_help="List the items that annotators were asked about.")
@at_campaign
def items(
    place: Place,
    after: str = option("Only items after this one.", default=""),
    find: str = option("Only items whose id or text contains this.", default=""),
    state: str = option("Only items in this state: all, open, done, flagged or gold.",
                        default="all"),
    limit: Limit = 50, json: AsJson = False,
) -> None:  # fmt: skip
    """List the items that annotators were asked about, a page at a time.

    Examples:

      goldspan desk items campaign.toml --state flagged
    """
    with _open(place, look=True) as at:
        _show(at.items(after, find, state, limit), items_text, as_json=json)


@desk.command(short_help="Show an item: answers, consensus, alternatives.")
@at_campaign
def item(
    place: Place,
    name: Item,
    page: int = option("Page of its answers, 50 per page.", default=1, min=1),
    json: AsJson = False,
) -> None:
    """Show an item: its answers, their consensus, and alternatives.

    Examples:

      goldspan desk item campaign.toml D017
    """
    with _open(place, look=True) as at:
        _show(at.item(name, page), item_text, as_json=json)


@desk.command(short_help="Assign no new tasks.")
@at_campaign
def pause(place: Place, json: AsJson = False) -> None:
    """Assign no new tasks; answers in progress are still accepted.

    Examples:

      goldspan desk pause campaign.toml
    """
    with _open(place) as at:
        _show(at.pause(), lambda _: "paused", as_json=json)


@desk.command(short_help="Assign tasks again.")
@at_campaign
def resume(place: Place, json: AsJson = False) -> None:
    """Assign tasks again after a pause.

    Examples:

      goldspan desk resume campaign.toml
    """
    with _open(place) as at:
        _show(at.pause(paused=False), lambda _: "going on", as_json=json)


@desk.command(short_help="End the campaign with the answers so far.")
@at_campaign
def stop(
    place: Place,
    yes: bool = flag("Do not ask for confirmation.", "--yes"),
    json: AsJson = False,
) -> None:  # fmt: skip
    """End the campaign for good: no new tasks, no new round.

    Examples:

      goldspan desk stop campaign.toml --yes
    """
    if not yes:
        typer.confirm("End the campaign? This cannot be undone.", abort=True, err=True)
    with _open(place) as at:
        _show(at.stop(), lambda _: "ending: the server writes the files", as_json=json)


@desk.command(short_help="Keep, drop or test a worker.")
@at_campaign
def judge(
    place: Place, worker: WorkerId,
    verdict: str = argument("keep, drop or test.", "VERDICT"),
    reason: str = option("Your reason, for the record.", default=""),
    json: AsJson = False,
) -> None:  # fmt: skip
    """Decide about a worker; this overrides the verdict of the rules.

    Examples:

      goldspan desk judge campaign.toml ann drop --reason "always the first label"
    """
    with _open(place) as at:
        _show(at.judge(worker, verdict, reason), decision_text, as_json=json)


@desk.command(short_help="Decide what an item's labels are.")
@at_campaign
def gold(
    place: Place, name: Item,
    label: str | None = option("The label, in a task with one label per item."),
    span: list[str] | None = option("A span by its tokens, counted from 0, without the end. "
                                    "Repeatable.",
                                    metavar="START:END:TYPE"),
    nothing: bool = flag("The item has no span.", "--nothing"),
    layers: str | None = option("The labels of a task of several layers, as JSON by layer.",
                                metavar="JSON"),
    undo: bool = flag("Take the last decision back; the one before it holds again.", "--undo"),
    json: AsJson = False,
) -> None:  # fmt: skip
    """Decide what an item's labels are: from now on they are gold.

    Examples:

      goldspan desk gold campaign.toml D017 --span 0:2:PER --span 5:6:LOC

      goldspan desk gold campaign.toml t4 --label rain

      goldspan desk gold campaign.toml t4 --layers '{"mood": "glad", "topics": ["art", "law"]}'
    """
    given = [label is not None, bool(span), nothing, layers is not None, undo]
    if sum(given) != 1:
        raise typer.BadParameter("give one of --label, --span, --nothing, --layers and --undo")
    answer: Any = label if label is not None else [_span(text) for text in span or []]
    answer = answer if layers is None else _json(layers)
    with _open(place) as at:
        _show(at.retract(name) if undo else at.adjudicate(name, answer), gold_text, as_json=json)


@desk.command(short_help="Write a file that can be downloaded.")
@at_campaign
def export(
    place: Place,
    name: str = argument("gold.conll, answers.tsv, …", "FILE", default=""),
    output: str | None = option("Where to write; by default FILE. - for standard output.",
                                "--output", "-o"),
    names: bool = flag("Include the workers' names; the campaign's log records this.", "--names"),
    partitions: int | None = option(
        "Write the answers into a new folder with this number of Parquet files, for "
        "`goldspan aggregate FOLDER`.", min=1, max=99_999,
    ),
    overwrite: Overwrite = False,
    json: AsJson = False,
) -> None:  # fmt: skip
    """Write a file that can be downloaded at the desk; without FILE, list them.

    Workers appear by pseudonyms, except in bill.csv. With --names the file has their own ids: give
    it only to people who may know who labelled what.

    Examples:

      goldspan desk export campaign.toml

      goldspan desk export campaign.toml answers.tsv -o answers.tsv

      goldspan desk export campaign.toml answers.tsv --names -o named.tsv
    """
    from pathlib import Path

    if name:
        check_outputs(output or name, overwrite=overwrite)
    if output == "-" and json:
        raise typer.BadParameter("-o - is the file itself: leave out --json")
    if name == "report.html":
        check_part("report")
    by = f"{_user()}, with goldspan desk export"
    if partitions:
        if name or output in {None, "-"}:
            raise typer.BadParameter("--partitions writes a folder: name it with -o, without FILE")
        with _open(place) as at:
            n = at.export_partitions(Path(str(output)), partitions, names=names, by=by)
        words = f"written: {output} ({n} partitions)"
        _show({"written": output, "partitions": n}, lambda _: words, as_json=json)
        return
    with _open(place, look=True) as at:
        if not name:
            _show(at.exports(), exports_text, as_json=json)
            return
        path = Path(output or name)
        made = at.export(name, names=names, by=by)
        if output == "-":
            sys.stdout.buffer.write(made.content)
            for lost in made.lost:
                warn(not_held(lost))
            return
        with new_file(path) as temporary:
            temporary.write_bytes(made.content)
        found = {"written": str(path), "lost": list(made.lost)}
        words = "\n".join([f"written: {path}", *map(not_held, made.lost)])
        _show(found, lambda _: words, as_json=json)


@contextmanager
def _open(place: Place, *, look: bool = False) -> Iterator[Desk]:
    """Open the desk over the store of a campaign; with `look`, aggregate the labels."""
    check_part("server")
    from goldspan.campaign import read_plan
    from goldspan.web import load_keys, open_service

    read_plan(place.plan)  # another file is told as what it is
    place.check_served()
    with told_of_damage(place.address):
        service = open_service(
            place.plan, place.out, load_keys(place.out), place.store, report=write_findings
        )
        try:
            service.ledger.check_facts()
            if look and service.loop is not None:
                service.loop.look()
            yield service.desk
        finally:
            service.close()


def _user() -> str:
    """Return who runs the command, as the operating system calls them."""
    from getpass import getuser

    try:
        return getuser()
    except (KeyError, OSError):  # a container without such a user
        return "a user without a name"


def _show(found: Any, words: Any, *, as_json: bool) -> None:
    """Print a view of the desk, or a list of them, as JSON or in words."""
    if not isinstance(found, dict):
        found = [one.to_dict() for one in found] if isinstance(found, list) else found.to_dict()
    print_result(found, (words(one) for one in [found]), as_json=as_json)


def _span(text: str) -> Any:
    from goldspan.spans import Span

    start, _, rest = text.partition(":")
    end, _, kind = rest.partition(":")
    if not (start.isdecimal() and end.isdecimal() and kind):
        raise typer.BadParameter(f"{text!r} must look like 0:2:PER")
    return Span(kind, int(start), int(end))


def _json(text: str) -> Any:
    from json import loads

    try:
        return loads(text)
    except ValueError as error:
        raise typer.BadParameter(f"--layers is no JSON: {error}") from None


# --------------------------------------------------------------------------------------------------
# The results in words


BRIEF = 60
STATES = {"waiting": "open", "working": "computing", "failed": "trouble"}
"""What the desk's pages call states that have another name in JSON."""
TOO_FEW = "there are too few answers to say"


def overview_text(now: dict[str, Any]) -> str:
    """Return how far it is."""
    money, items, answers = now["money"], now["items"], now["answers"]
    why = now["why"]
    state, hours = STATES.get(now["state"], now["state"]), now["hours"]
    left = "" if hours["left"] is None else f", {_time(hours['left'])} left"
    lines = [
        f"{now['title']}: {state}{f' ({why})' if why else ''}",
        *([f"THE CAMPAIGN DOES NOT GO ON: {now['error']}", now["advice"]] if now["error"] else []),
        f"items: {items['answered']} of {items['pool']} have answers",
        f"answers: {answers['counting']}, {answers['control']} of them to gold questions",
        f"workers: {answers['workers']}",
        *([] if money is None else _money(money)),
        f"time: {_time(hours['used'])}{left}",
    ]
    lines += [f"reports: {now['flags']}"] if now["flags"] else []
    lines += [f"warning: {line}" for line in now["warnings"]]
    lines += [f"changed: {line}" for line in now["plan"]["changes"]]
    lines += [
        f"in the plan file, not in force until `goldspan serve` starts again: {line}"
        for line in now["plan"]["pending"]
    ]
    sure = "" if now["confidence"] is None else f"mean confidence {100 * now['confidence']:.1f} %; "
    audited = now["certificate"] or {"text": f"{sure}nobody has checked them", "goal": ""}
    lines += [f"labels: {audited['text']}"]
    lines += [f"{audited['goal']}{audited.get('cost') or ''}"] if audited["goal"] else []
    lines += [_round(one) for one in now["rounds"][-1:]]
    return "\n".join([*lines, *_forecast(now["learning"], money)])


def _money(money: dict[str, Any]) -> list[str]:
    return [
        f"money: {money['spent']} of {money['cap']} {money['currency']}".rstrip(),
        f"spent on labels: {money['labels']}",
        f"spent on practice, test and gold questions: {money['control']}",
        f"reserved: {money['reserved']}, left: {money['left']}",
    ]


def workers_text(rows: list[dict[str, Any]]) -> str:
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


def agreement_text(found: dict[str, Any]) -> str:
    """Return how well they agree."""
    names = ("alpha", "observed", "cohen_kappa", "pairwise_span_f1")
    rows = [
        [f"{layer}: {name}" if layer else name, f"{value:.3f}"]
        for layer, measures in (found.get("layers") or {"": found["measures"]}).items()
        for name in names
        if (value := (measures or {}).get(name)) is not None and math.isfinite(value)
    ]
    if not rows:
        return TOO_FEW
    return table([["measure", "value"], *rows], (1,))


def uncertain_text(rows: list[dict[str, Any]]) -> str:
    """List uncertain items."""
    if not rows:
        return "no item is uncertain"
    made = [["item", "certain", "labels", "text"]]
    for one in rows:
        found = one["found"]
        labels = _labels(_said(found), one)
        made.append(
            [one["item"], f"{found['confidence']:.3f}", _brief(labels), _brief(one["text"])]
        )
    return table(made, (1,))


def items_text(page: dict[str, Any]) -> str:
    """List items."""
    made = [["item", "answers", "certain", "state", "text"]]
    for one in page["items"]:
        sure = "" if one["confidence"] is None else f"{one['confidence']:.3f}"
        sure += f" ({one['unsure']})" if one.get("unsure") else ""
        marks = [name for name in ("gold", "control") if one[name]]
        marks += [f"reports: {one['flags']}"] if one["flags"] else []
        state = ", ".join(marks if one["control"] else [one["state"], *marks])
        # A gold question has an assignment for everybody who may come: the number says nothing.
        count = str(one["answers"]) if one["control"] else f"{one['answers']}/{one['wanted']}"
        made.append([one["item"], count, sure, state, _brief(one["text"])])
    more = f"\nmore: --after {page['items'][-1]['item']}" if page["more"] else ""
    return f"{table(made, (1, 2))}{more}"


def item_text(one: dict[str, Any]) -> str:
    """Show an item."""
    found = one["found"]
    lines = [f"{one['item']}: {one['text']}"]
    for name in ("gold", "known"):
        lines += [f"{name}: {_labels(one[name], one)}"] if one[name] is not None else []
    if found:
        lines.append(f"the answers say: {_labels(_said(found), one)} ({found['confidence']:.3f})")
        for name, own in found.get("layers", {"": found}).items():
            lines += [f"  {name} ({own['confidence']:.3f})"] if name else []
            for other in own["alternatives"]:
                shown = other["label"] if "label" in other else _labels([other], one)
                lines.append(f"  {other['confidence']:.3f}  {shown}")
    for row in one["answers"]:
        counts = "" if row["counts"] else f" ({row['status']}, does not count)"
        lines.append(f"{row['worker']}: {_labels(row['labels'], one)}{counts}")
    lines += [f"skipped by {row['worker']}: {row['reason']}" for row in one["skipped"]]
    lines += [f"reported by {row['worker']}: {row['reason']} {row['note']}" for row in one["flags"]]
    lines += [f"more: --page {one['page'] + 1}"] if one["page"] < one["pages"] else []
    return "\n".join(line.rstrip() for line in lines)


def decision_text(body: dict[str, Any]) -> str:
    """Return what was decided about a worker."""
    said = {
        "keep": "is kept, whatever the rules decide",
        "drop": "gets no more tasks",
        "test": f"gets {body['questions']} more gold questions",
    }
    return f"{body['worker']} {said[body['verdict']]}"


def gold_text(body: dict[str, Any]) -> str:
    """Return what was decided about an item."""
    if body["gold"] is None:
        return f"{body['item']} is not gold any more"
    gold = body["gold"] if isinstance(body["gold"], dict) else {"": body["gold"]}
    shown = "; ".join(
        f"{layer}: {_counted(one)}" if layer else _counted(one) for layer, one in gold.items()
    )
    return f"{body['item']} is gold: {shown}"


def _counted(labels: Any) -> str:
    """Write labels, and count spans."""
    if isinstance(labels, str):
        return labels
    names = [one for one in labels or () if isinstance(one, str)]
    return ", ".join(names) or counted(len(labels or ()), "span")


def exports_text(rows: list[dict[str, str]]) -> str:
    """List the files."""
    return table([["file", "what"], *([one["name"], one["what"]] for one in rows)])


def _said(found: dict[str, Any]) -> Any:
    """Return the labels of a consensus."""
    if "layers" in found:
        return {name: _said(one) for name, one in found["layers"].items()}
    return next(found[name] for name in ("label", "labels", "spans") if name in found)


def _labels(labels: Any, item: dict[str, Any]) -> str:
    """Write labels; a span with its text."""
    if labels is None or isinstance(labels, str):
        return labels or ""
    if isinstance(labels, dict):
        shown = {name: _labels(one, item) or "nothing" for name, one in labels.items()}
        return "; ".join(f"{name}: {one}" for name, one in shown.items())
    if labels and isinstance(labels[0], str):
        return ", ".join(labels)
    text, starts, tokens = item["text"], item["starts"], item["tokens"]
    words = []
    for one in labels:
        last, first = one["end"] - 1, starts[one["start"]] + (one.get("from_char") or 0)
        end = starts[last] + (one.get("to_char") or len(tokens[last]))
        words.append(f"{one['type']}[{_plain(text[first:end])}]")
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


def _round(one: dict[str, Any]) -> str:
    score = one["control"] or one["score"]
    told = (
        f", the model's score {score['value']:.3f} ({score['low']:.3f}–{score['high']:.3f})"
        if score
        else ""
    )
    answers = counted(one["answers"], "answer")
    return f"round {one['round']}: {counted(one['items'], 'item')}, {answers}{told}"


def _forecast(learning: dict[str, Any], money: dict[str, Any] | None) -> list[str]:
    """Return what more labels take: money, or answers where nobody is paid."""
    found, lines = learning["forecast"] or {}, []
    if ahead := found.get("next"):
        takes = counted(ahead["answers"], "answer")
        takes = takes if money is None else f"{ahead['cost']} {money['currency']}".rstrip()
        lines.append(
            f"{counted(ahead['items'], 'more item')}: score {ahead['score']:.3f} "
            f"({ahead['low']:.3f}–{ahead['high']:.3f}) for {takes}"
        )
    if end := found.get("end"):
        lines.append(f"until the target {learning['target']:g}: {end['text']}")
    return lines
