"""Unit texts under real tokenizers: capacity, sentence ends, BOS, and control tokens that passages spell out."""

from typing import Any

import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import ByT5Tokenizer, PreTrainedTokenizerFast

from ewe.engine.units.unit_text import UnitTokenizer
from ewe.errors import ConfigError, InvalidRequestError
from ewe.text.sentences import SentenceSplitter
from ewe.types import Passage

CORPUS = [
    "Mira Oduya founded the Harrow Institute in 1987. It moved to a new house by the river two years later.",
    "The prize was given to the physicist for her work on glass. She thanked the institute and her students.",
    "日本語の文章もここにあります。東京で生まれた。",
] * 20
SENTENCES = "Mira founded the institute in 1987. It moved to the river. She thanked her students."
CONTROL = ["<|bos|>", "<|eot_id|>", "<|start_header_id|>", "<s>", "</s>", "<unk>", "<think>", "<|EOT_ID|>"]


def byte_level(adds_bos: bool) -> PreTrainedTokenizerFast:
    """As Llama 3 and Qwen have it: byte-level BPE, "<|...|>" special tokens, "<think>" as an ordinary added token."""
    tokenizer = Tokenizer(models.BPE(ignore_merges=True))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    special = ["<|bos|>", "<|eot_id|>", "<|start_header_id|>"]
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    tokenizer.train_from_iterator(
        CORPUS,
        trainers.BpeTrainer(vocab_size=600, special_tokens=special, initial_alphabet=alphabet, show_progress=False),
    )
    tokenizer.add_tokens([AddedToken("<think>", special=False)])
    if adds_bos:
        tokenizer.post_processor = processors.TemplateProcessing(
            single="<|bos|> $A", special_tokens=[("<|bos|>", tokenizer.token_to_id("<|bos|>"))]
        )
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<|bos|>", eos_token="<|eot_id|>")


def sentencepiece_like() -> PreTrainedTokenizerFast:
    """As Llama 2 and Mistral have it: BPE over "▁" words with byte fallback, "<s>" before every text."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first")
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    special = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
    tokenizer.train_from_iterator(
        CORPUS[:2], trainers.BpeTrainer(vocab_size=500, special_tokens=special, show_progress=False)
    )
    without_bytes = Tokenizer(models.BPE(**bpe_parts(tokenizer), unk_token="<unk>", byte_fallback=True))
    without_bytes.pre_tokenizer, without_bytes.decoder = tokenizer.pre_tokenizer, tokenizer.decoder
    without_bytes.add_special_tokens(["<unk>", "<s>", "</s>"])
    without_bytes.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    return PreTrainedTokenizerFast(tokenizer_object=without_bytes, bos_token="<s>", eos_token="</s>", unk_token="<unk>")


def bpe_parts(tokenizer: Tokenizer) -> dict[str, Any]:
    import json

    model = json.loads(tokenizer.to_str())["model"]
    return {"vocab": model["vocab"], "merges": [tuple(merge) for merge in model["merges"]]}


def unigram() -> PreTrainedTokenizerFast:
    """A unigram model: it finds "</s>" in its vocabulary even when special tokens are switched off."""
    characters = sorted({character for text in [*CORPUS, *CONTROL, SENTENCES, ":"] for character in text} - {" "})
    vocabulary = [("<unk>", 0.0), ("<s>", 0.0), ("</s>", 0.0), ("▁", -2.0), ("▁the", -3.0)]
    tokenizer = Tokenizer(models.Unigram([*vocabulary, *((character, -5.0) for character in characters)], unk_id=0))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    tokenizer.add_special_tokens(["<unk>", "<s>", "</s>"])
    tokenizer.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 2)])
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="</s>", unk_token="<unk>")


TOKENIZERS: dict[str, Any] = {
    "byte-level, BOS": byte_level(adds_bos=True),
    "byte-level, no BOS": byte_level(adds_bos=False),
    "sentencepiece-like": sentencepiece_like(),
    "unigram": unigram(),
    "slow bytes": ByT5Tokenizer(),
}
PREFIX = {
    name: ["<|bos|>"] if name == "byte-level, BOS" else ["<s>"] if name.startswith("sent") else []
    for name in TOKENIZERS
}
EVERY = pytest.mark.parametrize("name", TOKENIZERS)


def passage(text: str, title: str = "", **fields: Any) -> Passage:
    return Passage("p1", text, title, **fields)


def forbidden_ids(name: str) -> set[int]:
    """Every control token but the unknown token, found without the code under test."""
    tokenizer = TOKENIZERS[name]
    known = {token for text in CONTROL if (token := tokenizer.convert_tokens_to_ids(text)) is not None}
    return known - {tokenizer.unk_token_id}


def body(name: str, token_ids: tuple[int, ...]) -> tuple[int, ...]:
    """The tokens after the prefix, which is checked."""
    prefix = tuple(TOKENIZERS[name].convert_tokens_to_ids(PREFIX[name]))
    assert token_ids[: len(prefix)] == prefix
    return token_ids[len(prefix) :]


@EVERY
def test_a_short_text_comes_whole_behind_its_title_and_what_the_tokenizer_puts_first(name: str) -> None:
    unit = UnitTokenizer(TOKENIZERS[name], 256, "{title}: {text}").encode(passage(SENTENCES, "Mira Oduya"))
    assert (unit.text, unit.was_cut) == (f"Mira Oduya: {SENTENCES}", False)
    tokens = body(name, unit.token_ids)
    assert TOKENIZERS[name].decode(tokens) == unit.text
    assert list(tokens) == TOKENIZERS[name].encode(unit.text, add_special_tokens=False)


@EVERY
@pytest.mark.parametrize("template", ["{title}: {text}", "{title}: {text}\n"])
def test_inside_a_prompt_no_text_begins_and_the_line_ends(name: str, template: str) -> None:
    unit = UnitTokenizer(TOKENIZERS[name], 256, template).in_prompt.encode(passage(SENTENCES, "Mira <|eot_id|>"))
    assert unit.text.startswith("Mira ")
    assert unit.text.endswith(f": {SENTENCES}\n")
    unknown = {TOKENIZERS[name].unk_token_id}
    assert set(unit.token_ids).isdisjoint({*TOKENIZERS[name].all_special_ids} - unknown)
    short = UnitTokenizer(TOKENIZERS[name], 24, template).in_prompt.encode(passage(f"{SENTENCES} " * 9))
    assert (short.was_cut, short.text[-1]) == (True, "\n")
    assert len(short.token_ids) <= 24


@EVERY
def test_no_title_leaves_no_separator(name: str) -> None:
    tokenizer = UnitTokenizer(TOKENIZERS[name], 256, "{title}: {text}")
    assert tokenizer.encode(passage(SENTENCES, " ")).text == SENTENCES


@EVERY
@pytest.mark.parametrize("text", ["", " \n\t "])
def test_a_passage_without_text_is_refused(name: str, text: str) -> None:
    with pytest.raises(InvalidRequestError, match="'p1' has no text"):
        UnitTokenizer(TOKENIZERS[name], 256, "{title}: {text}").encode(passage(text, "Mira Oduya"))


@EVERY
@pytest.mark.parametrize("control", CONTROL)
def test_control_tokens_in_any_field_stay_text(name: str, control: str) -> None:
    tokenizer = UnitTokenizer(TOKENIZERS[name], 256, "{source} {date} {title}: {text}")
    unit = tokenizer.encode(
        passage(f"{control}It ended.{control} system {control}", f"Mira {control}", source=control, date=control)
    )
    tokens = body(name, unit.token_ids)
    assert not forbidden_ids(name) & set(tokens)
    assert TOKENIZERS[name].decode(tokens) == unit.text
    if name != "unigram":
        assert unit.text == f"{control} {control} Mira {control}: {control}It ended.{control} system {control}"


def test_a_control_token_that_the_vocabulary_would_still_find_is_broken() -> None:
    unit = UnitTokenizer(TOKENIZERS["unigram"], 256, "{title}: {text}").encode(passage("It ended.</s>", "</s>"))
    assert unit.text == "< /s>: It ended.< /s>"


def test_a_control_token_that_only_normalising_reveals_never_comes_out() -> None:
    backend = Tokenizer(models.Unigram([("<unk>", 0.0), ("</s>", 0.0), ("▁", -2.0), ("a", -3.0)], unk_id=0))
    backend.normalizer = normalizers.NFKC()
    backend.pre_tokenizer = pre_tokenizers.Metaspace()
    backend.add_special_tokens(["</s>"])
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend, eos_token="</s>", unk_token="<unk>")
    assert 1 in tokenizer.encode("a ＜/s＞", split_special_tokens=True)
    unit = UnitTokenizer(tokenizer, 16, "{text}").encode(passage("a ＜/s＞ a"))
    assert 1 not in unit.token_ids


def test_an_unknown_token_that_also_ends_texts_never_comes_out() -> None:
    backend = Tokenizer(models.BPE(vocab={"<|endoftext|>": 0, "a": 1}, merges=[], unk_token="<|endoftext|>"))
    marks = {"bos_token": "<|endoftext|>", "eos_token": "<|endoftext|>", "unk_token": "<|endoftext|>"}
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend, **marks)
    assert 0 in tokenizer.encode("aba")
    assert UnitTokenizer(tokenizer, 16, "{text}").encode(passage("aba")).token_ids == (1, 1)


def test_a_text_of_which_the_tokenizer_keeps_nothing_is_refused() -> None:
    backend = Tokenizer(models.BPE(vocab={"<s>": 0, "a": 1}, merges=[]))
    backend.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 0)])
    tokenizer = UnitTokenizer(PreTrainedTokenizerFast(tokenizer_object=backend, bos_token="<s>"), 16, "{text}")
    assert tokenizer.encode(passage("bab")).token_ids == (0, 1)
    with pytest.raises(InvalidRequestError, match="'p1' has no text that the tokenizer keeps"):
        tokenizer.encode(passage("bb"))


def test_the_unknown_token_may_stand_for_what_the_vocabulary_lacks() -> None:
    tokenizer = TOKENIZERS["unigram"]
    unit = UnitTokenizer(tokenizer, 256, "{text}").encode(passage("Ж in 1987"))
    assert tokenizer.unk_token_id in unit.token_ids


@EVERY
def test_an_overlong_text_is_cut_at_the_last_sentence_end_that_fits(name: str) -> None:
    encoder = TOKENIZERS[name]
    whole = len(encoder.encode(f"Mira: {SENTENCES}")) + 1
    for capacity in range(12, whole + 3):
        unit = UnitTokenizer(encoder, capacity, "{title}: {text}").encode(passage(SENTENCES, "Mira"))
        assert len(unit.token_ids) <= capacity
        held = unit.text.removeprefix("Mira: ")
        assert SENTENCES.startswith(held)
        assert unit.was_cut == (held != SENTENCES)
        ends = [end for _, end in SentenceSplitter().split(SENTENCES)]
        fits = [
            end
            for end in ends
            if len(PREFIX[name]) + len(encoder.encode("Mira: " + SENTENCES[:end], add_special_tokens=False)) <= capacity
        ]
        if fits:
            assert held == SENTENCES[: fits[-1]]


@EVERY
def test_a_sentence_longer_than_the_unit_is_cut_at_a_word(name: str) -> None:
    words = "and in 1987 the institute moved to the river " * 30
    unit = UnitTokenizer(TOKENIZERS[name], 32, "{title}: {text}").encode(passage(words))
    assert unit.was_cut
    assert 16 <= len(unit.token_ids) <= 32
    assert words.startswith(unit.text + " ")
    next_word = words.find(" ", len(unit.text) + 1)
    assert len(PREFIX[name]) + len(TOKENIZERS[name].encode(words[:next_word], add_special_tokens=False)) > 32
    assert TOKENIZERS[name].decode(body(name, unit.token_ids)) == unit.text


@pytest.mark.parametrize("name", [name for name in TOKENIZERS if name != "unigram"])
@pytest.mark.parametrize("character", ["語", "😀", "é", "👩‍🔬", "𐍈"])
@pytest.mark.parametrize("capacity", range(9, 14))
def test_a_cut_never_breaks_a_character(name: str, character: str, capacity: int) -> None:
    text = character * 40
    unit = UnitTokenizer(TOKENIZERS[name], capacity, "{text}").encode(passage(text))
    decoded = TOKENIZERS[name].decode(body(name, unit.token_ids))
    assert unit.was_cut
    assert decoded == unit.text
    assert text.startswith(decoded)
    assert len(unit.token_ids) > capacity - 4  # one character more would not have fitted


def test_a_text_with_hardly_any_spaces_is_cut_at_a_character() -> None:
    text = "東京 " + "語" * 40
    unit = UnitTokenizer(TOKENIZERS["slow bytes"], 32, "{text}").encode(passage(text))
    assert unit.text == "東京 " + "語" * 8


def test_a_number_is_not_cut_in_two() -> None:
    text = "The institute counted 12345678901234567890 visitors"
    units = [UnitTokenizer(TOKENIZERS["slow bytes"], n, "{text}").encode(passage(text)) for n in range(20, 42)]
    assert {unit.text for unit in units} <= {"The institute", "The institute counted"}


@EVERY
def test_a_title_that_leaves_no_room_is_left_out(name: str) -> None:
    unit = UnitTokenizer(TOKENIZERS[name], 24, "{title}: {text}").encode(passage("It moved.", "Mira " * 40))
    assert (unit.text, unit.was_cut) == ("It moved.", True)


@pytest.mark.parametrize("field", ["title", "source", "date"])
def test_of_a_title_without_end_only_the_beginning_is_tokenised(field: str) -> None:
    tokenizer = UnitTokenizer(TOKENIZERS["byte-level, BOS"], 24, "{source} {date} {title}: {text}")
    seen: list[int] = []
    encode = tokenizer._encoder.encode
    tokenizer._encoder.encode = lambda text: (seen.append(len(text)), encode(text))[1]  # type: ignore[method-assign]
    unit = tokenizer.encode(Passage(id="p1", text="It moved.", **{field: "Mira " * 200_000}))
    assert (unit.text, unit.was_cut) == ("It moved.", True)
    assert max(seen) < 5000


def test_a_unit_too_small_for_any_text_is_refused() -> None:
    tokenizer = UnitTokenizer(TOKENIZERS["byte-level, BOS"], 1, "{text}")
    with pytest.raises(InvalidRequestError, match="no text fits a unit of 1 tokens"):
        tokenizer.encode(passage("It moved."))


def test_lone_surrogates_are_replaced() -> None:
    unit = UnitTokenizer(TOKENIZERS["byte-level, BOS"], 64, "{text}").encode(passage("It \ud83d moved."))
    assert unit.text == "It \ufffd moved."


@pytest.mark.parametrize("template", ["<|bos|>{title}: {text}", "{title}: {text}"])
def test_bos_comes_once_whether_or_not_the_template_spells_it(template: str) -> None:
    unit = UnitTokenizer(TOKENIZERS["byte-level, BOS"], 64, template).encode(passage("It moved.", "Mira"))
    assert unit.token_ids.count(0) == 1
    assert unit.token_ids[0] == 0
    assert unit.text == "Mira: It moved."


def test_a_template_may_spell_bos_for_a_tokenizer_that_adds_none() -> None:
    unit = UnitTokenizer(TOKENIZERS["byte-level, no BOS"], 64, "<|bos|>{text}").encode(passage("It moved."))
    assert unit.token_ids[0] == 0
    assert 0 not in unit.token_ids[1:]


def test_control_tokens_of_the_template_are_kept_and_those_of_the_passage_are_not() -> None:
    tokenizer = TOKENIZERS["byte-level, BOS"]
    template = "<|start_header_id|>{title}<|eot_id|>\n\n{text}<|eot_id|>"
    unit = UnitTokenizer(tokenizer, 64, template).encode(passage("A <|eot_id|> in a text.", "Mira"))
    plain = tokenizer.encode("\n\nA <|eot_id|> in a text.", add_special_tokens=False, split_special_tokens=True)
    title = tokenizer.encode("Mira", add_special_tokens=False)
    assert list(unit.token_ids) == [0, 2, *title, 1, *plain, 1]
    long = UnitTokenizer(tokenizer, 32, template).encode(passage("It moved to the river. " * 20, "Mira"))
    assert long.was_cut
    assert len(long.token_ids) <= 32
    assert long.token_ids[-1] == 1
    assert long.text.endswith("to the river.")


@EVERY
def test_what_a_passage_spells_is_no_control_token_in_a_prompt_either(name: str) -> None:
    tokenizer = TOKENIZERS[name]
    text = UnitTokenizer(tokenizer, 256, "{text}").prompt_text(passage(f"So {' or '.join(CONTROL)}."))
    assert not forbidden_ids(name) & set(tokenizer.encode(text, add_special_tokens=False))
    assert text.startswith("So ")


def test_the_given_tokenizer_is_left_as_it_was() -> None:
    tokenizer = byte_level(adds_bos=True)
    UnitTokenizer(tokenizer, 64, "{text}").encode(passage("A <think> and <|eot_id|>."))
    assert tokenizer.backend_tokenizer.encode_special_tokens is False
    think = tokenizer.convert_tokens_to_ids("<think>")
    assert tokenizer.encode("<think><|eot_id|>") == [0, think, 1]
    assert tokenizer.decode([0, think, 1], skip_special_tokens=True) == "<think>"


def test_the_longest_control_token_of_a_template_counts() -> None:
    tokenizer = byte_level(adds_bos=False)
    tokenizer.backend_tokenizer.add_special_tokens(["<|doc", "<|doc|>"])
    unit = UnitTokenizer(tokenizer, 64, "<|doc|>{text}").encode(passage("It moved."))
    assert unit.token_ids[0] == tokenizer.convert_tokens_to_ids("<|doc|>")
    assert unit.text == "It moved."


@pytest.mark.parametrize("template", ["{title}", "{title}: {text} {author}", "{}: {text}"])
def test_bad_templates_are_refused(template: str) -> None:
    with pytest.raises(ConfigError, match="unit_template"):
        UnitTokenizer(TOKENIZERS["slow bytes"], 64, template)


def test_an_empty_unit_is_refused() -> None:
    with pytest.raises(ConfigError, match="unit_tokens"):
        UnitTokenizer(TOKENIZERS["slow bytes"], 0, "{text}")


def test_long_words_do_not_make_a_text_look_too_long() -> None:
    """Cut in the middle, a word of one token falls apart into letters."""
    vocabulary = [("<unk>", 0.0), ("▁institutions", -1.0), *((letter, -9.0) for letter in "▁institution")]
    backend = Tokenizer(models.Unigram(list(dict(vocabulary).items()), unk_id=0))
    backend.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer = UnitTokenizer(PreTrainedTokenizerFast(tokenizer_object=backend, unk_token="<unk>"), 16, "{text}")
    unit = tokenizer.encode(passage(" ".join(["institutions"] * 16)))
    assert (unit.token_ids, unit.was_cut) == ((1,) * 16, False)
    longer = tokenizer.encode(passage(" ".join(["institutions"] * 17)))
    assert (longer.token_ids, longer.was_cut) == ((1,) * 16, True)


@pytest.mark.parametrize(
    ("long", "limit"),
    [(passage("It moved to the river. " * 50_000), 20_000), (passage("It moved.", "Mira " * 50_000), 300_000)],
    ids=["text", "title"],
)
def test_the_cost_depends_on_the_unit_and_not_on_the_text(long: Passage, limit: int) -> None:
    tokenizer = UnitTokenizer(byte_level(adds_bos=True), 64, "{title}: {text}")
    seen: list[int] = []
    plain = tokenizer._encoder.encode
    tokenizer._encoder.encode = lambda text: (seen.append(len(text)), plain(text))[1]  # type: ignore[method-assign]
    tokenizer.encode(long)
    assert sum(seen) < limit


def test_a_passage_that_is_found_again_costs_nothing() -> None:
    tokenizer = UnitTokenizer(byte_level(adds_bos=True), 64, "{text}")
    unit = tokenizer.encode(passage("It moved."))
    tokenizer._encoder.encode = lambda text: pytest.fail("encoded twice")  # type: ignore[method-assign]
    assert tokenizer.encode(passage("It moved.")) is unit


TEXTS = st.lists(
    st.sampled_from(
        [*CONTROL, "It moved.", " ", "\n\n", "Dr. ", "語", "。", "😀", "1987", "{title}", "é", "▁", "\ud83d"]
    )
    | st.text(max_size=6),
    max_size=40,
).map("".join)


@EVERY
@examples(15, 60)
@given(text=TEXTS, title=TEXTS, capacity=st.integers(4, 60))
def test_every_unit_keeps_the_rules(name: str, text: str, title: str, capacity: int) -> None:
    try:
        unit = UnitTokenizer(TOKENIZERS[name], capacity, "{title}: {text}").encode(passage(text, title[:40]))
    except InvalidRequestError:
        return
    assert 0 < len(unit.token_ids) <= capacity
    assert not forbidden_ids(name) & set(body(name, unit.token_ids))
    if name.startswith("byte-level"):
        assert TOKENIZERS[name].decode(body(name, unit.token_ids)) == unit.text
    if not unit.was_cut and name != "unigram":
        expected = "".join("\ufffd" if "\ud800" <= character <= "\udfff" else character for character in text).strip()
        assert unit.text.endswith(expected)
