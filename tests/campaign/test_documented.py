"""The docs name every key of a plan, and the example for people in browsers is one."""

from __future__ import annotations

import re
from pathlib import Path

from goldspan.campaign import read_inputs, read_plan
from goldspan.campaign.plan import Plan
from goldspan.campaign.section import Section

ROOT = Path(__file__).resolve().parents[2]


def every_key():
    """Give the keys of the plan's model: "seed", "task.types"."""
    for name, field in Plan.model_fields.items():
        kinds = (field.annotation, *getattr(field.annotation, "__args__", ()))
        sections = [one for one in kinds if isinstance(one, type) and issubclass(one, Section)]
        yield from (f"{name}.{key}" for one in sections for key in one.model_fields)
        if not sections:
            yield name


def told_keys():
    """Give the keys in the first column of the table; ".share" belongs to the section before."""
    text = (ROOT / "docs" / "campaign.md").read_text(encoding="utf-8")
    table = text.partition("| key | what | default |\n")[2].partition("\n\n")[0]
    for line in table.splitlines()[1:]:
        section = ""
        for key in re.findall(r"`([^`]+)`", line.split("|")[1]):
            section = key.partition(".")[0] or section
            yield f"{section}{key}" if key.startswith(".") else key


def test_every_key_of_a_plan_stands_in_the_table_and_no_other():
    assert sorted(told_keys()) == sorted(every_key())


def test_every_source_of_answers_is_told():
    text = (ROOT / "docs" / "campaign.md").read_text(encoding="utf-8")
    (row,) = [line for line in text.splitlines() if line.startswith("| `crowd.source`")]
    for source in Plan.model_fields["crowd"].annotation.model_fields["source"].annotation.__args__:
        assert f'"{source}"' in row


def test_the_example_for_people_in_browsers_can_be_served():
    inputs = read_inputs(read_plan(ROOT / "examples" / "serve.toml"), ROOT / "examples")
    page = inputs.plan.page
    assert inputs.plan.crowd.source == "web"
    assert len(inputs.control) == inputs.plan.control.n >= page.training + 1
    assert (inputs.folder / page.instructions).is_file()
