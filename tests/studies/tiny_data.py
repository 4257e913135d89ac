"""A tiny folder in the form of the real data: three parts of CoNLL-2003, and a crowd."""

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
    return folder


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
