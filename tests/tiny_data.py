"""A tiny folder in the form of the real data: CoNLL-2003, a crowd, and two sets of labels."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np

NAMES = {"PER": ("Ann", "Bob", "Kim Lee"), "LOC": ("Rome", "Oslo", "New York")}
SIZES = {"train": 24, "testa": 8, "testb": 8}
HEADER = "token\tpos\tchunk\tner\tchunk_bio\tner_bio\n"


def write_data(folder: Path) -> Path:
    """Write it, and give the folder."""
    (folder / "conll2003").mkdir(parents=True)
    (folder / "ner_mturk").mkdir()
    for seed, (part, n_documents) in enumerate(SIZES.items()):
        path = folder / "conll2003" / f"{part}.tsv.gz"
        path.write_bytes(gzip.compress(_columns(seed, n_documents).encode()))
    (folder / "ner_mturk" / "crowd.tsv.gz").write_bytes(gzip.compress(_crowd().encode()))
    for seed, (name, n_workers, n_labels) in enumerate((("bluebirds", 9, 2), ("dog", 12, 4))):
        _write_labels(folder / "classification" / name, n_workers, n_labels, seed)
    return folder


def _write_labels(folder: Path, n_workers: int, n_labels: int, seed: int) -> None:
    """Write 100 items, labelled by workers of whom each is worse than the one before."""
    folder.mkdir(parents=True)
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, n_labels, 100)
    lines = ["task,worker,label\n"]
    for worker in range(n_workers):
        wrong = rng.random(100) < 0.04 * worker
        given = np.where(wrong, (truth + 1) % n_labels, truth)
        lines += [f"q{task},w{worker},{label}\n" for task, label in enumerate(given.tolist())]
    (folder / "labels.csv").write_text("".join(lines))
    known = [f"q{task},{label}\n" for task, label in enumerate(truth.tolist())]
    (folder / "truth.csv").write_text("".join(["task,label\n", *known]))


def sentences(seed: int, n: int) -> list[list[tuple[str, str, str]]]:
    """Make sentences: words with their chunk and their name, both in BIO."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(n):
        words: list[tuple[str, str, str]] = []
        for verb in ("saw", "near"):
            kind = str(rng.choice(list(NAMES)))
            name = str(rng.choice(NAMES[kind])).split()
            words += [
                (word, f"{'BI'[i > 0]}-NP", f"{'BI'[i > 0]}-{kind}") for i, word in enumerate(name)
            ]
            words.append((verb, "B-VP" if verb == "saw" else "B-PP", "O"))
        words += [("the", "B-NP", "O"), ("old", "I-NP", "O"), ("house", "I-NP", "O")]
        found.append([*words, (".", "O", "O")])
    return found


def _columns(seed: int, n_documents: int) -> str:
    lines = [HEADER]
    for document in range(n_documents):
        lines.append("-DOCSTART-\t-X-\tO\tO\tO\tO\n\n")
        for sentence in sentences(100 * seed + document, 2):
            lines += [f"{w}\tX\t{chunk}\t{ner}\t{chunk}\t{ner}\n" for w, chunk, ner in sentence]
            lines.append("\n")
    return "".join(lines)


def _crowd() -> str:
    """Make 12 articles of three workers each, of five who miss 0, 10, … 40 % of the labels."""
    rng = np.random.default_rng(7)
    workers = [f"A0{n}" for n in range(1, 6)]
    lines = ["\t".join(["doc", "sent", "token", "gold", *workers]) + "\n"]
    for document in range(12):
        chosen = rng.choice(5, 3, replace=False).tolist()
        for n, sentence in enumerate(sentences(900 + document, 2)):
            for word, _, gold in sentence:
                cells = ["?"] * 5
                for worker in chosen:
                    cells[worker] = "O" if rng.random() < 0.1 * worker else gold
                lines.append("\t".join([f"D{document}", str(n), word, gold, *cells]) + "\n")
            lines.append("\n")
    return "".join(lines)
