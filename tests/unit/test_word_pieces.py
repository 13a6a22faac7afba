"""The tokens of a BERT without transformers are those that transformers makes."""

from pathlib import Path

import pytest
from test_judges_cross_encoder import tokenizer

from ewe.text.word_pieces import WordPieces

TEXTS = ["a b c", "", "d [MASK] e", "a b c d e f g h i j"]
OTHERS = ["b", "c d", "[SEP] a", "e"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A tokenizer as transformers writes it."""
    tokenizer(model_max_length=16).save_pretrained(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    "options",
    [
        {"add_special_tokens": False},
        {"split_special_tokens": True},
        {"truncation": True, "max_length": 5},
        {"truncation": "only_first", "max_length": 8},
    ],
)
def test_texts_and_pairs_have_the_tokens_of_transformers(folder: Path, options: dict[str, object]) -> None:
    theirs, ours = tokenizer(model_max_length=16), WordPieces(folder)
    for columns in ([TEXTS, OTHERS], [TEXTS]):
        if len(columns) == 1 and options.get("truncation") == "only_first":
            continue
        expected = theirs(*columns, **options)
        assert ours(*columns, **options) == {
            name: expected[name] for name in ("input_ids", "token_type_ids", "attention_mask")
        }
    assert ours.model_max_length == 16
    assert ours.num_special_tokens_to_add(pair=True) == theirs.num_special_tokens_to_add(pair=True) == 3


def test_rows_are_padded_at_their_ends(folder: Path) -> None:
    theirs, ours = tokenizer(), WordPieces(folder)
    encoded = ours(TEXTS, OTHERS)
    rows = [{name: values[row] for name, values in encoded.items()} for row in range(len(TEXTS))]
    expected = theirs.pad(rows, return_tensors="pt")
    padded = ours.pad(rows)
    assert padded.keys() == expected.keys()
    assert all((padded[name] == expected[name]).all() for name in padded)


def test_a_file_that_is_no_tokenizer_is_named(folder: Path) -> None:
    (folder / "tokenizer.json").write_text("{}")
    with pytest.raises(ValueError, match=r"tokenizer\.json holds no tokenizer"):
        WordPieces(folder)
