"""/v1/embeddings through the openai client, and /v1/rerank: the models' own numbers, limits, servers without them."""

from __future__ import annotations

import base64
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from builtin_rig import server
from late_import import late_import
from server_rig import openai_client
from unit.bert_folder import write_bert

from ewe.retrieval.encoders import SentenceEncoder, SentenceModel
from ewe.retrieval.reranker import CrossEncoderScorer

openai = pytest.importorskip("openai", reason="the openai client is not installed")
late_import("sentence_transformers", reason="encoders need the extra 'dense'")

TEXTS = ["w1 w2", "w3", "w4 w5 w6"] * 12  # more than a batch
TOO_LONG = "w1 " * 63


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    from transformers import BertForSequenceClassification, BertModel

    encoder, reranker = tmp_path_factory.mktemp("encoder"), tmp_path_factory.mktemp("reranker")
    return write_bert(encoder, BertModel), write_bert(reranker, BertForSequenceClassification, num_labels=1)


@pytest.fixture(scope="module")
def served(folders: tuple[Path, Path]) -> Iterator[Any]:
    encoder, reranker = folders
    named = [f"retrieval.encoder={encoder}", f"retrieval.reranker={reranker}", "retrieval.query_prefix='w9 '"]
    with server(assignments=named) as opened:
        yield opened


@pytest.fixture(scope="module")
def client(served: Any) -> Any:
    return openai_client(str(served.base_url))


def test_vectors_are_the_encoders_in_either_form(client: Any, folders: tuple[Path, Path]) -> None:
    expected = SentenceEncoder(folders[0]).encode_passages(TEXTS)
    answer = client.embeddings.create(model=folders[0].name, input=TEXTS)  # the client asks for base64
    assert [item.index for item in answer.data] == list(range(len(TEXTS)))
    np.testing.assert_allclose([item.embedding for item in answer.data], expected, atol=1e-5)
    assert (answer.model, answer.usage.prompt_tokens) == (folders[0].name, 12 * (4 + 3 + 5))
    [one] = client.embeddings.create(model="builtin", input=TEXTS[0], encoding_format="float").data
    np.testing.assert_allclose(one.embedding, expected[0], atol=1e-5)


def test_they_are_listed_beside_the_model(client: Any, folders: tuple[Path, Path]) -> None:
    encoder, reranker = (folder.name for folder in folders)
    tasks = {model.id: model.task for model in client.models.list()}
    assert tasks == {"builtin": "generate", encoder: "embed", reranker: "rerank"}
    assert next(iter(tasks)) == "builtin"
    assert client.models.retrieve(encoder).task == "embed"


def test_a_query_has_the_prefix_of_queries(client: Any, folders: tuple[Path, Path]) -> None:
    expected = SentenceEncoder(folders[0], "w9 ").encode_queries(["w1"])
    [one] = client.embeddings.create(model="builtin", input="w1", extra_body={"input_type": "query"}).data
    np.testing.assert_allclose(one.embedding, expected[0], atol=1e-5)


@pytest.mark.parametrize(
    ("asked", "field", "told"),
    [
        ({"input": [1, 2]}, "input", "send texts"),
        ({"input": [[1], [2]]}, "input", "send texts"),
        ({"input": ["w1", ""]}, "input", "at least 1 character"),
        ({"input": []}, "input", "at least 1"),
        ({"input": ["w1"] * 2049}, "input", "at most 2048"),
        ({"input": ["w1", TOO_LONG]}, "input.1", "65 tokens, and the model reads 64"),
        ({"input": "w1", "dimensions": 8}, "dimensions", "vectors of 16 numbers"),
        ({"input": "w1", "encoding_format": "int8"}, "encoding_format", "not supported yet"),
    ],
)
def test_what_cannot_be_encoded_is_refused_in_words(client: Any, asked: dict[str, Any], field: str, told: str) -> None:
    with pytest.raises(openai.BadRequestError, match=told) as caught:
        client.embeddings.create(**{"model": "builtin", **asked})
    assert caught.value.param.startswith(field)


def test_other_models_are_not_there_and_long_texts_are_cut_if_asked(client: Any) -> None:
    with pytest.raises(openai.NotFoundError, match="there is no model 'text-embedding-3-small' here"):
        client.embeddings.create(model="text-embedding-3-small", input="w1")
    cut = client.embeddings.create(
        model="builtin", input=TOO_LONG, dimensions=16, extra_body={"truncate_prompt_tokens": -1}
    )
    assert cut.usage.prompt_tokens == 64


# --- Cohere's form


@pytest.fixture(scope="module")
def embed(served: Any) -> Any:
    cohere = pytest.importorskip("cohere", reason="the cohere client is not installed")
    client = cohere.ClientV2(base_url=str(served.base_url), api_key="none")
    return lambda **asked: client.embed(**{"model": "builtin", "input_type": "search_document", **asked})


def test_cohere_gets_the_same_vectors(embed: Any, folders: tuple[Path, Path]) -> None:
    expected = SentenceEncoder(folders[0]).encode_passages(TEXTS)
    answer = embed(texts=TEXTS, embedding_types=["float", "base64"], output_dimension=16)
    np.testing.assert_allclose(answer.embeddings.float_, expected, atol=1e-5)
    decoded = [np.frombuffer(base64.b64decode(text), "<f4") for text in answer.embeddings.base64]
    np.testing.assert_allclose(decoded, expected, atol=1e-5)
    assert (answer.texts, answer.response_type) == (TEXTS, "embeddings_by_type")
    assert answer.meta.tokens.input_tokens == answer.meta.billed_units.input_tokens == 12 * (4 + 3 + 5)
    parts = [{"content": [{"type": "text", "text": "w1 w2"}]}]
    np.testing.assert_allclose(embed(inputs=parts).embeddings.float_, expected[:1], atol=1e-5)


def test_cohere_tells_queries_from_documents_and_cuts_unless_told_not_to(
    embed: Any, folders: tuple[Path, Path]
) -> None:
    [query] = SentenceEncoder(folders[0]).encode_passages(["w9 w1"])
    [told] = embed(texts=["w1"], input_type="search_query").embeddings.float_
    np.testing.assert_allclose(told, query, atol=1e-5)
    assert embed(texts=[TOO_LONG]).meta.tokens.input_tokens == 64


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"texts": ["w1", TOO_LONG], "truncate": "NONE"}, "texts.1: this has 65 tokens"),
        ({"texts": ["w1"], "truncate": "START"}, "truncate"),
        ({"texts": ["w1"], "embedding_types": ["int8"]}, "embedding_types"),
        ({"texts": ["w1"], "output_dimension": 8}, "vectors of 16 numbers"),
        ({"images": ["data:image/png;base64,"]}, "images"),
        ({"inputs": [{"content": [{"type": "image_url", "image_url": {"url": "x"}}]}]}, "images"),
        ({"texts": ["w1"], "inputs": [{"content": [{"type": "text", "text": "w1"}]}]}, "either texts or inputs"),
        ({"texts": [""]}, "texts.0"),
    ],
)
def test_cohere_is_told_what_there_is_not(embed: Any, asked: dict[str, Any], told: str) -> None:
    from cohere.errors import BadRequestError

    with pytest.raises(BadRequestError) as caught:
        embed(**asked)
    assert told in caught.value.body["message"]


@pytest.mark.parametrize("path", ["/rerank", "/v1/rerank", "/v2/rerank"])
def test_documents_come_by_the_rerankers_scores(served: Any, folders: tuple[Path, Path], path: str) -> None:
    expected = CrossEncoderScorer(folders[1]).score([("w1 w2", text) for text in TEXTS])
    documents = [TEXTS[0], {"text": TEXTS[1]}, *TEXTS[2:]]
    answer = served.post(path, json={"model": folders[1].name, "query": "w1 w2", "documents": documents}).json()
    scores = [item["relevance_score"] for item in answer["results"]]
    assert scores == sorted(scores, reverse=True)
    for item in answer["results"]:
        assert item["relevance_score"] == pytest.approx(expected[item["index"]], abs=1e-5)
        assert item["document"] == {"text": TEXTS[item["index"]]}
    equal = [item["index"] for item in answer["results"] if TEXTS[item["index"]] == "w3"]
    assert all(one < other for one, other in itertools.pairwise(equal)), "equal scores stay in order"
    assert (answer["model"], answer["usage"]["total_tokens"]) == (folders[1].name, 12 * (7 + 6 + 8))
    few = {"query": "w1 w2", "documents": documents, "top_n": 2, "return_documents": False}
    assert [item["document"] for item in served.post(path, json=few).json()["results"]] == [None, None]


def test_a_pair_that_is_too_long_is_refused(served: Any) -> None:
    body = {"query": "w1", "documents": ["w2", TOO_LONG]}
    error = served.post("/v1/rerank", json=body).json()["error"]
    assert (error["param"], error["code"]) == ("documents.1", "context_length_exceeded")
    assert len(served.post("/v1/rerank", json={**body, "truncate_prompt_tokens": -1}).json()["results"]) == 2


def test_a_server_without_such_models_names_the_setting() -> None:
    with server() as client:
        for path, body, setting in (
            ("/v1/embeddings", {"input": "w1"}, "retrieval.encoder"),
            ("/rerank", {"query": "w1", "documents": ["w2"]}, "retrieval.reranker"),
        ):
            answer = client.post(path, json=body)
            assert answer.status_code == 404
            assert f"set {setting} to a folder" in answer.json()["error"]["message"]


def test_a_model_that_cannot_be_loaded_is_the_servers_fault(tmp_path: Path) -> None:
    with server(assignments=[f"retrieval.encoder={tmp_path / 'nothing'}"]) as client:
        answer = client.post("/v1/embeddings", json={"input": "w1"})
        assert answer.status_code == 500
        assert str(tmp_path) not in answer.text, "where it should lie is nobody's business"


def test_texts_far_beyond_what_is_read_are_refused_before_they_are_tokenised(
    served: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted: list[int] = []
    count = SentenceModel.count_tokens
    monkeypatch.setattr(
        SentenceModel, "count_tokens", lambda self, texts: counted.append(len(texts)) or count(self, texts)
    )
    cut = {"truncate_prompt_tokens": -1}
    long = "w1 " * (1 << 15)
    told = served.post("/v1/embeddings", json={"input": ["w1", long], **cut})
    assert (told.status_code, told.json()["error"]["param"]) == (413, "input.1")
    told = served.post("/v1/rerank", json={"query": long, "documents": ["w1"], **cut})
    assert (told.status_code, told.json()["error"]["param"]) == (413, "documents.0")
    told = served.post("/v1/rerank", json={"query": long[: 1 << 15], "documents": ["w1"] * 200, **cut})
    assert (told.status_code, told.json()["error"]["param"]) == (413, "query")
    assert counted == []
    served.post("/v1/embeddings", json={"input": TEXTS}).raise_for_status()
    assert max(counted) <= 8, "so that few tokens are held at once"
