"""CSV for spreadsheets: no text becomes a formula, and goldspan reads every text back exactly."""

from __future__ import annotations

import csv
import io
import json
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

import goldspan
from campaign.tiny import plan_of, toml
from goldspan.cli import main
from goldspan.crowd import CrowdBuilder, ReadOptions, write_crowd
from goldspan.crowd.grid import FORMULA, csv_text, guard, is_formula, is_marked, unguard
from goldspan.crowd.io import read_crowd, to_crowd
from goldspan.crowd.losses import losses
from goldspan.selection import Pool
from goldspan.selection.files import read_pool

ODD = [
    "=1+1", "'=1+1", "''=1+1", "+49 30", "-1", "'-1", "-1.5", "-", "--", "@ann", "'@ann' said",
    "'tis", "''", "'", "＝1", "a=b", '=cmd|" /C calc"!A0', "=1,2", "-1e5", "=1\n2",
]  # fmt: skip
DANGEROUS = [one for one in ODD if one.startswith(FORMULA) and one not in {"-1", "-1.5", "-1e5"}]
TEXTS = st.text(st.sampled_from("'=+-@\t\r\n1.,eE a\"＝"), min_size=1, max_size=8)


@given(TEXTS)
def test_a_guarded_text_is_no_formula_and_comes_back(text):
    assert unguard(guard(text)) == text
    number = text.lstrip("'").replace(",", ".").lstrip("+-")[:1].isdigit()
    assert not guard(text).startswith(FORMULA) or number


@pytest.mark.parametrize("text", ["-1.5", "+3", "-1e-5", "-1.000,50", "'tis", "1-2", "Rome"])
def test_numbers_and_other_texts_are_no_formulas(text):
    assert not is_formula(text)
    assert guard(text) == text
    assert guard(-1.5) == -1.5


def crowd_of(texts, label="=x"):
    built = CrowdBuilder(ReadOptions(encoding="PLAIN"))
    for n, text in enumerate(texts):
        item = built.add_item(f"@{n}", [f"@{n}"], text=text)
        built.add_answer(item, "-ann", [label if n % 2 else "y"])
    return built.build()


def cells_of(path):
    with path.open(newline="", encoding="utf-8") as file:
        return [cell for row in csv.reader(file) for cell in row]


def test_a_long_csv_is_guarded_and_read_back_without_a_loss(tmp_path):
    crowd, path = crowd_of(ODD), tmp_path / "a.csv"
    assert write_crowd(crowd, path) == []
    assert not [cell for cell in cells_of(path) if is_formula(cell) and not cell.startswith("'")]
    assert "'=1+1" in cells_of(path)
    back = read_crowd(path)
    assert back.texts.to_pylist() == ODD
    assert back.item_ids.to_pylist() == crowd.item_ids.to_pylist()
    assert back.worker_ids.to_pylist() == ["-ann"]
    assert set(back.tagset.tags) == {"=x", "y"}
    assert list(Pool.of(read_pool(path, "table", text="text")).given) == ODD


@given(st.lists(TEXTS.filter(str.strip), min_size=1, max_size=5))
def test_what_a_long_csv_loses_is_the_same_with_and_without_a_guard(texts):
    assert losses(crowd_of(texts), "long") == losses(crowd_of(texts, "x"), "long")


def test_raw_csv_writes_cells_as_they_are_and_is_read_back_too(tmp_path):
    crowd, path = crowd_of(ODD), tmp_path / "a.csv"
    assert write_crowd(crowd, path, raw_csv=True) == []
    assert set(DANGEROUS) <= set(cells_of(path))
    assert read_crowd(path).texts.to_pylist() == ODD


def test_sequences_have_their_tokens_guarded_in_csv_and_bare_in_tsv_and_conll(tmp_path):
    crowd = read_crowd(b"token\tgold\tann\n-\tO\tO\n=A1\tB-X\tB-X\n'@\tO\tO\n")
    assert write_crowd(crowd, tmp_path / "a.csv", format="long") == []
    assert {"'-", "'=A1", "''@"} <= set(cells_of(tmp_path / "a.csv"))
    assert read_crowd(tmp_path / "a.csv").tokens_list == [["-", "=A1", "'@"]]
    for name in ("a.tsv", "a.conll"):
        write_crowd(crowd, tmp_path / name)
        text = (tmp_path / name).read_text()
        assert "'=" not in text
        assert "=A1" in text


def test_a_table_without_a_formula_has_the_bytes_that_it_always_had(tmp_path):
    write_crowd(read_crowd(b"item,worker,label\n1,ann,-1\n"), tmp_path / "a.csv")
    assert (tmp_path / "a.csv").read_bytes() == b"item,worker,label\n1,ann,-1\n"


@pytest.mark.parametrize(
    "head",
    [b"item,worker,label,text", b'"item","worker","label","text"', b'item,"worker",label,text'],
)  # fmt: skip
def test_apostrophes_of_other_writers_stay(head):
    crowd = read_crowd(head + b"\n1,ann,x,'@bob' wrote\n")
    assert crowd.texts.to_pylist() == ["'@bob' wrote"]


def test_line_ends_that_take_quotes_everywhere_are_guarded_too(tmp_path):
    texts = ["=1\rx", "'\r=2", "a"]
    result = goldspan.aggregate(crowd_of(texts, "x"), method="mv-token")
    assert result.write(tmp_path / "gold.csv") == []
    assert is_marked((tmp_path / "gold.csv").read_text(encoding="utf-8"))
    assert list(Pool.of(read_pool(tmp_path / "gold.csv", "table", text="text")).given) == texts


def test_gold_csv_is_guarded_and_read_as_gold(tmp_path):
    crowd = crowd_of(ODD)
    result = goldspan.aggregate(crowd, method="mv-token")
    path = tmp_path / "gold.csv"
    assert result.write(path) == []
    assert not [cell for cell in cells_of(path) if cell.startswith(tuple("=@"))]
    again = to_crowd(crowd, gold=str(path))
    assert [tags[0] for tags in again.tagged_by_id().values()] == result.labels
    assert result.write(path, raw_csv=True) == []
    assert set(DANGEROUS) <= set(cells_of(path))


def test_a_table_of_our_own_says_that_it_is_guarded_only_if_it_is():
    assert csv_text(["item", "label"], [["a", "-1"]]) == "item,label\na,-1\n"
    assert csv_text(["item", "label"], [["=a", "x"]]) == '"item",label\n\'=a,x\n'
    assert csv_text(["item", "label"], [["=a", "x"]], raw=True) == "item,label\n=a,x\n"


@pytest.mark.parametrize(("flag", "cell"), [((), "'=d1"), (("--raw-csv",), "=d1")])
def test_commands_guard_unless_they_are_told_not_to(flag, cell, tmp_path, monkeypatch, capsys):
    rows = [f"=d{n},{w},x{(n + k) % 2}\n" for n in range(8) for k, w in enumerate("ab")]
    table = "item,worker,label\n" + "".join(rows)
    (tmp_path / "a.csv").write_text(table)
    (tmp_path / "gold.csv").write_text(
        "item,label\n" + "".join(f"=d{n},x{n % 2}\n" for n in range(8))
    )
    calls = {
        "convert": [], "aggregate": ["-m", "mv-token"],
        "gold-questions": ["--gold", str(tmp_path / "gold.csv"), "-n", "4"],
    }  # fmt: skip
    for command, words in calls.items():
        out = tmp_path / f"{command}.csv"
        argv = ["goldspan", command, str(tmp_path / "a.csv"), *words, "-o", str(out), *flag]
        monkeypatch.setattr(sys, "argv", argv)
        with pytest.raises(SystemExit) as end:
            main()
        assert end.value.code in {0, None}, capsys.readouterr().err
        rows = list(csv.reader(io.StringIO(out.read_text())))[1:]
        found = {one for row in rows for one in row if "=d" in one}
        assert found
        assert all(one.startswith(cell[:2]) for one in found), command


@pytest.mark.parametrize(("flag", "first"), [((), "'="), (("--raw-csv",), "=d")])
def test_a_campaigns_gold_and_predictions_are_guarded(flag, first, tmp_path, monkeypatch):
    rows, truth = [], ["item,label"]
    for n in range(20):
        label = "rain" if n % 3 else "sun"
        rows.append(json.dumps({"id": f"=d{n}", "text": f"{label} day {n}"}))
        truth.append(f"=d{n},{label}")
    (tmp_path / "pool.jsonl").write_text("\n".join(rows))
    (tmp_path / "truth.csv").write_text("\n".join(truth))
    (tmp_path / "plan.toml").write_text(toml(plan_of()))
    words = ["run", str(tmp_path / "plan.toml"), "--out", str(tmp_path / "out"), *flag]
    monkeypatch.setattr(sys, "argv", ["goldspan", *words])
    with pytest.raises(SystemExit) as end:
        main()
    assert not end.value.code
    for name in ("gold.csv", "predictions.csv"):
        with (tmp_path / "out" / name).open(newline="") as file:
            items = [row[0] for row in csv.reader(file)][1:]
        assert items
        assert all(item.startswith(first) for item in items)
        pool = Pool.of(read_pool(tmp_path / "out" / name, "table", text="label", id="item"))
        assert all(item.startswith("=d") for item in pool.item_ids.to_pylist())
