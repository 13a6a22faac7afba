import logging
import threading

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import BertConfig, BertForSequenceClassification, BertModel, PreTrainedTokenizerFast

from ewe.errors import JudgeError
from ewe.verification import load_judge
from ewe.verification.judges.checkpoints import Head
from ewe.verification.judges.cross_encoder import CrossEncoderJudge
from ewe.verification.judges.protocol import COLUMNS, INCONCLUSIVE, REFUTED, SUPPORTED

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
WORDS = [*"abcdefghijklmnopqrstuvwxyz[]"]
PAIRS = [("a b c", "a b"), ("d e f g h i j", "k"), ("a", "l m n o")]


def tokenizer(model_max_length=64):
    vocabulary = {word: index for index, word in enumerate([*SPECIAL, *WORDS, *(f"##{word}" for word in WORDS)])}
    backend = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]", max_input_chars_per_word=100))
    backend.normalizer = normalizers.BertNormalizer()
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    backend.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    names = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    inputs = ["input_ids", "token_type_ids", "attention_mask"]
    return PreTrainedTokenizerFast(
        tokenizer_object=backend, model_max_length=model_max_length, model_input_names=inputs, **names
    )


def config(labels, **more):
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    names = dict(enumerate(labels))
    return BertConfig(
        vocab_size=100,
        num_labels=len(names),
        id2label=names,
        label2id={v: k for k, v in names.items()},
        **sizes,
        **more,
    )


def save(folder, labels, bias=None, **more):
    torch.manual_seed(0)
    model = BertForSequenceClassification(config(labels, **more))
    torch.nn.init.normal_(model.classifier.weight, std=2.0)
    if bias is not None:
        model.classifier.bias.data = torch.tensor(bias)
    model.save_pretrained(folder)
    tokenizer().save_pretrained(folder)
    return model.eval()


def expected(model, evidence, claim):
    """softmax of the model on [CLS] evidence [SEP] claim [SEP], each pair alone."""
    ids = tokenizer()(evidence, claim, return_tensors="pt")
    with torch.inference_mode():
        return torch.softmax(model(**ids).logits, -1)[0].numpy()


@pytest.mark.parametrize(
    ("labels", "columns"),
    [
        (["entailment", "neutral", "contradiction"], [SUPPORTED, INCONCLUSIVE, REFUTED]),
        (["CONTRADICTION", "NEUTRAL", "ENTAILMENT"], [REFUTED, INCONCLUSIVE, SUPPORTED]),
        (["SUPPORTS", "REFUTES", "NOT ENOUGH INFO"], [SUPPORTED, REFUTED, INCONCLUSIVE]),
        (["refuted", "not_enough_information", "supported"], [REFUTED, INCONCLUSIVE, SUPPORTED]),
        (["hallucinated", "consistent"], [INCONCLUSIVE, SUPPORTED]),
        (["entailment", "not_entailment"], [SUPPORTED, INCONCLUSIVE]),
        (["Supported", "Refuted"], [SUPPORTED, REFUTED]),
    ],
)
def test_labels_in_any_order_and_spelling_come_out_in_our_columns(tmp_path, labels, columns):
    model = save(tmp_path, labels)
    rows = load_judge(str(tmp_path), device="cpu").judge(PAIRS)
    assert rows.dtype == np.float32
    for row, pair in zip(rows, PAIRS, strict=True):
        wanted = np.zeros(3)
        wanted[columns] = expected(model, *pair)
        np.testing.assert_allclose(row, wanted, atol=1e-5)


def test_unnamed_outputs_are_refused_until_a_mapping_names_them(tmp_path):
    model = save(tmp_path, ["LABEL_0", "LABEL_1"])
    with pytest.raises(JudgeError, match=r"LABEL_0, LABEL_1.*labels="):
        load_judge(str(tmp_path))
    judge = load_judge(str(tmp_path), device="cpu", labels={"LABEL_0": "inconclusive", "LABEL_1": "supported"})
    [row] = judge.judge(PAIRS[:1])
    np.testing.assert_allclose(row, expected(model, *PAIRS[0])[[1, 0, 0]] * [1, 0, 1], atol=1e-5)


@pytest.mark.parametrize(
    ("labels", "mapping", "match"),
    [
        (["neutral", "contradiction"], None, "no output for supported"),
        (["entailment", "entailed"], None, "all of its outputs"),
        (["entailment", "sports"], None, "sports means"),
        (["entailment", "neutral"], {"entailmint": "supported"}, "no output entailmint"),
        (["LABEL_0", "entailment"], {"LABEL_0": "wrong"}, "not to wrong"),
    ],
)
def test_heads_that_are_no_judge_are_refused(tmp_path, labels, mapping, match):
    save(tmp_path, labels)
    with pytest.raises(JudgeError, match=match):
        load_judge(str(tmp_path), labels=mapping)


def test_a_single_logit_is_the_log_odds_of_supported(tmp_path):
    model = save(tmp_path, ["LABEL_0"])
    with pytest.raises(JudgeError, match="LABEL_0 means"):  # a reranker has one nameless output, too
        load_judge(str(tmp_path))
    [row] = load_judge(str(tmp_path), device="cpu", labels={"LABEL_0": "supported"}).judge(PAIRS[:1])
    ids = tokenizer()(*PAIRS[0], return_tensors="pt")
    with torch.inference_mode():
        odds = torch.sigmoid(model(**ids).logits[0, 0]).item()
    np.testing.assert_allclose(row, [odds, 0.0, 1 - odds], atol=1e-5)


def test_folders_without_a_trained_head_or_with_pickled_weights_are_refused(tmp_path):
    BertModel(config(["entailment", "neutral", "contradiction"])).save_pretrained(tmp_path / "encoder")
    tokenizer().save_pretrained(tmp_path / "encoder")
    with pytest.raises(JudgeError, match=r"classifier\.weight"):
        load_judge(str(tmp_path / "encoder"), device="cpu").judge(PAIRS)
    model = save(tmp_path / "pickled", ["entailment", "contradiction"])
    (tmp_path / "pickled" / "model.safetensors").unlink()
    torch.save(model.state_dict(), tmp_path / "pickled" / "pytorch_model.bin")
    with pytest.raises(JudgeError, match="safetensors"):
        load_judge(str(tmp_path / "pickled"))
    save(tmp_path / "multi", ["entailment", "contradiction"], problem_type="multi_label_classification")
    with pytest.raises(JudgeError, match="exclude each other"):
        load_judge(str(tmp_path / "multi"))


def test_names_that_mean_nothing_are_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    for name in ("", str(tmp_path / "missing")):
        with pytest.raises(
            JudgeError, match="known: builtin, base, reader, writer, auto, a model's folder or hub id, openai:"
        ):
            load_judge(name)
    save(tmp_path, ["entailment", "contradiction"])
    with pytest.raises(JudgeError, match="'nowhere' is not usable"):
        load_judge(str(tmp_path), device="nowhere")


class Recorder(torch.nn.Module):
    """Stands for a model: keeps what it is given and prefers supported."""

    device = torch.device("cpu")

    def __init__(self, logit=1.0):
        super().__init__()
        self.logit = logit
        self.batches = []

    def forward(self, **inputs):
        self.batches.append(inputs)
        logits = torch.tensor([[self.logit, 0.0, 0.0]]).repeat(len(inputs["input_ids"]), 1)
        return type("Output", (), {"logits": logits})


def record(pairs, max_tokens=20, logit=1.0):
    model = Recorder(logit)
    judge = CrossEncoderJudge(model, tokenizer(), Head((0, 1, 2)), "recorder", max_tokens)
    return judge.judge(pairs), [row.tolist() for batch in model.batches for row in batch["input_ids"]]


def test_evidence_is_cut_and_claims_never_are():
    claim = "k l m n o p q r s t"  # longer than what it leaves of the evidence
    rows, [ids] = record([("a b c d e f g h i j " * 50, claim)], max_tokens=21)
    assert tokenizer().decode(ids) == f"[CLS] a b c d e f g h [SEP] {claim} [SEP]"
    assert rows[0].argmax() == SUPPORTED


@pytest.mark.parametrize("claim", ["", "  ", "a " * 10, "a " * 5000])
def test_a_claim_without_words_or_without_room_for_evidence_is_inconclusive(claim, caplog):
    with caplog.at_level(logging.WARNING):
        rows, seen = record([("a b", claim), ("a b", "c")])
    np.testing.assert_array_equal(rows[0], [0, 0, 1])
    assert rows[1].argmax() == SUPPORTED
    assert len(seen) == 1
    assert "inconclusive" in caplog.text


def test_control_tokens_in_texts_are_text():
    _, [ids] = record([("a [SEP] b [CLS]", "c [PAD]")], max_tokens=40)
    special = tokenizer().all_special_ids
    assert [token for token in ids if token in special and token != 1] == [2, 3, 3]


def test_odd_texts_are_judged():
    rows, _ = record([("", "a"), ("\ud800 a", "b \udfff"), ("\0\n\t" * 5, "c"), ("🙂" * 9, "d")])
    assert rows.shape == (4, 3)


def test_batches_hold_pairs_of_like_length_and_rows_keep_their_order(tmp_path):
    model = save(tmp_path, ["entailment", "contradiction", "neutral"])
    judge = load_judge(str(tmp_path), device="cpu")
    pairs = [(" ".join(WORDS[: 1 + 7 * i % 20]), WORDS[i % 26]) for i in range(50)]
    for row, pair in zip(judge.judge(pairs), pairs, strict=True):
        np.testing.assert_allclose(row, expected(model, *pair), atol=1e-5)


def test_long_batches_are_split(monkeypatch):
    monkeypatch.setattr("ewe.verification.judges.cross_encoder._BATCH_TOKENS", 40)
    model = Recorder()
    judge = CrossEncoderJudge(model, tokenizer(), Head((0, 1, 2)), "recorder", 20)
    assert judge.judge([("a b c d e f g", "h")] * 7).shape == (7, 3)
    assert all(batch["input_ids"].numel() <= 40 for batch in model.batches)


def test_no_pairs_give_no_rows_and_no_work():
    rows, seen = record([])
    assert rows.shape == (0, len(COLUMNS))
    assert seen == []


def test_logits_that_are_no_numbers_are_an_error():
    with pytest.raises(JudgeError, match="NaN"):
        record([("a", "b")], logit=float("nan"))


def test_threads_may_share_a_judge(tmp_path):
    save(tmp_path, ["entailment", "contradiction", "neutral"])
    judge = load_judge(str(tmp_path), device="cpu")
    alone = judge.judge(PAIRS)
    results = []
    threads = [threading.Thread(target=lambda: results.append(judge.judge(PAIRS))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 4
    for rows in results:
        np.testing.assert_allclose(rows, alone, atol=1e-6)
