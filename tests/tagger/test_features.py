"""From words to numbers: templates, attributes, documents, dictionaries, hashing."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from goldspan.errors import InputError, UnknownNameError
from goldspan.tagger.features import (
    ATTRIBUTES,
    SETS,
    DictFeatures,
    FeatureMap,
    Template,
    Text,
    read_templates,
)

ITEMS = [["Kim", "saw", "Rome"], [], ["the", "IBM-3", "in", "1996"], ["kim"]]


def names(feature_map, features):
    """The features of every token by name."""
    found = []
    for a, b in zip(features.bounds[:-1], features.bounds[1:], strict=True):
        found.append([feature_map.name(int(i)) for i in features.ids[a:b]])
    return found


def of(templates, items=ITEMS, **options):
    text = Text.of(items, options.pop("groups", None), options.pop("columns", None))
    return FeatureMap.fit(text, read_templates(templates), **options)


def by_hand(templates, items):
    """The same features with loops and strings."""
    found = []
    for words in items:
        for t in range(len(words)):
            own = []
            for template in read_templates(templates):
                values = []
                for part in template.parts:
                    at = t + part.place
                    if 0 <= at < len(words):
                        values.append(ATTRIBUTES[part.name](words[at]))
                    else:
                        values.append("<start>" if at < 0 else "<end>")
                if all(values):
                    own.append(f"{template}={'|'.join(values)}")
            found.append(own)
    return found


TEMPLATES = ["lower", "digits", "suffix2", "kind[-1]", "lower[-2]|kind|lower[1]", "word[3]"]


@given(st.lists(st.lists(st.sampled_from(["a", "B", "B-52", "19", "É", "--"]), max_size=5)))
def test_features_of_any_text_are_those_that_loops_give(items):
    assert names(*of(TEMPLATES, items)) == by_hand(TEMPLATES, items)


def test_transform_gives_what_fit_gave_and_nothing_for_the_unseen():
    feature_map, features = of(TEMPLATES)
    again = feature_map.transform(Text.of(ITEMS))
    np.testing.assert_array_equal(again.ids, features.ids)
    np.testing.assert_array_equal(again.bounds, features.bounds)
    new = feature_map.transform(Text.of([["Zanzibar"]]))
    kept = {name for own in by_hand(TEMPLATES, ITEMS) for name in own}
    assert names(feature_map, new) == [
        [name for name in by_hand(TEMPLATES, [["Zanzibar"]])[0] if name in kept]
    ]


def test_rare_features_are_left_out():
    counts = Counter(name for own in by_hand(TEMPLATES, ITEMS) for name in own)
    found = Counter(name for own in names(*of(TEMPLATES, min_count=2)) for name in own)
    assert found == {name: n for name, n in counts.items() if n >= 2}


def test_items_and_select_give_the_features_of_the_items():
    feature_map, features = of(TEMPLATES)
    every = names(feature_map, features)
    assert names(feature_map, features.select(np.array([2, 0]))) == every[3:7] + every[:3]
    part = features.items(1, 3)
    assert names(feature_map, features.select(np.array([1, 2]))) == every[3:7]
    np.testing.assert_array_equal(part.ids, features.select(np.array([1, 2])).ids)
    assert part.n_tokens == 4


def test_a_text_can_be_selected_from():
    text = Text.of(ITEMS, ["d", "d", "e", "e"], {"pos": [["x"] * len(i) for i in ITEMS]})
    some = text.select(np.array([2, 0]))
    assert some.words.to_pylist() == ITEMS[2] + ITEMS[0]
    assert some.group.tolist() == [1, 0]
    assert len(some.columns["pos"]) == 7


def test_columns_are_features():
    pos = [[f"P{len(word)}" for word in words] for words in ITEMS]
    feature_map, features = of(["column:pos[-1]"], columns={"pos": pos})
    assert names(feature_map, features)[0] == ["column:pos[-1]=<start>"]
    assert names(feature_map, features)[1] == ["column:pos[-1]=P3"]


def test_a_column_that_is_not_given_is_named():
    with pytest.raises(InputError, match="column:pos needs a"):
        of(["column:pos"])


def test_columns_of_another_length_are_refused():
    with pytest.raises(InputError, match="column pos: 1 values for 8 words"):
        Text.of(ITEMS, columns={"pos": [["x"]]})
    with pytest.raises(InputError, match="column pos: values must be strings"):
        Text.of([["a"]], columns={"pos": [[3]]})
    with pytest.raises(InputError, match="2 groups for 4 items"):
        Text.of(ITEMS, ["a", "b"])


def test_a_document_says_how_a_word_is_written_elsewhere():
    items = [["Mark", "left"], ["then", "Mark", "came"], ["Mark", "mark"]]
    own = [name for own in names(*of(["doc_kinds"], items)) for name in own]
    together = names(*of(["doc_kinds"], items, groups=["d", "d", "e"]))
    assert own[0] == "doc_kinds=--"
    assert together[0] == ["doc_kinds=t-"]
    assert together[5] == together[6] == ["doc_kinds=-l"]
    both = names(*of(["doc_title", "doc_lower"], items, groups=["d", "d", "d"]))
    assert both[0] == ["doc_title=1", "doc_lower=1"]


def test_too_many_values_are_refused():
    items = [[f"w{n}" for n in range(40_000)]]
    with pytest.raises(InputError, match="join fewer parts"):
        of(["word|word[1]|word[2]|word[3]|word[-1]"], items)


def test_templates_are_read_as_they_are_written():
    for name in SETS:
        assert tuple(map(str, read_templates(name))) == SETS[name]
    assert str(Template.parse("lower[+1] | kind")) == "lower[1]|kind"


@pytest.mark.parametrize("text", ["", "lower[", "lower[x]", "|", "lower||kind"])
def test_what_is_no_template_is_refused(text):
    with pytest.raises(InputError, match="must look like"):
        Template.parse(text)


def test_templates_come_from_toml(tmp_path):
    path = tmp_path / "t.toml"
    path.write_text('templates = ["lower", "kind[1]", "lower"]')
    assert list(map(str, read_templates(path))) == ["lower", "kind[1]"]
    for content, message in (("x = 1", "list of strings"), ("= 1", "t.toml"), ("", "list of")):
        path.write_text(content)
        with pytest.raises(InputError, match=message):
            read_templates(path)
    with pytest.raises(InputError, match="cannot read"):
        read_templates(tmp_path / "none.toml")
    with pytest.raises(UnknownNameError, match="did you mean 'default'"):
        read_templates("defaults")
    with pytest.raises(InputError, match="no feature template"):
        read_templates([])


def test_dictionaries_are_read_as_sklearn_crfsuite_reads_them():
    item = [
        {"w": "Rome", "n": 2, "f": 0.5, "yes": True, "no": False, "in": {"x": "y", "z": 3}},
        {"tags": ["a", "b"], "set": {"c"}, "np": np.float32(1.5)},
    ]
    found = DictFeatures.fit([item])
    features = found.transform([item])
    shown = [found.name(int(i)) for i in features.ids]
    assert shown == ["w:Rome", "n", "f", "yes", "in:x:y", "in:z", "tags:a", "tags:b", "set:c", "np"]
    assert features.values.tolist() == [1, 2, 0.5, 1, 1, 3, 1, 1, 1, 1.5]
    assert DictFeatures.fit([item, item[:1]], min_count=2).n_features == 6


@pytest.mark.parametrize("token", [{"a": None}, {"a": object()}, "word"])
def test_what_is_no_feature_is_refused(token):
    with pytest.raises(InputError, match=r"feature"):
        DictFeatures.fit([[token]])
