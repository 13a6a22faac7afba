import json
import sys
from itertools import islice
from pathlib import Path
from random import Random

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

from judge_training.claim_corpus import Corpus, is_held_out  # noqa: E402
from judge_training.claim_packs import manifest_of, packs  # noqa: E402
from judge_training.packed_model import PackedModel  # noqa: E402
from judge_training.pairs import Label  # noqa: E402
from judge_training.reading_batches import Batches, split  # noqa: E402
from judge_training.reading_figures import calibrated  # noqa: E402
from judge_training.retrieved import RetrievedEvidence  # noqa: E402

from ewe.verification.combination import Thresholds  # noqa: E402
from ewe.verification.decision import rule_for  # noqa: E402
from ewe.verification.judges.checkpoints import check_adapter, named_model, read_settings  # noqa: E402
from ewe.verification.judges.load import load_judge  # noqa: E402
from ewe.verification.judges.protocol import ReadingWindow  # noqa: E402

DATA = ROOT.parent / "shared" / "data"
needs_data = pytest.mark.skipif(not DATA.is_dir(), reason="the public sets are not beside the project")


def tokenizer(texts, **_):
    """Enough of one for a model that is asked by token ids."""
    return {"input_ids": [[number] for number, _ in enumerate(texts, 3)]}


@pytest.fixture
def model():
    pytest.importorskip("peft")
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=50, hidden_size=32, intermediate_size=64, num_hidden_layers=3, num_attention_heads=4,
        num_key_value_heads=2, attn_implementation="sdpa",
    )  # fmt: skip
    return PackedModel(LlamaForCausalLM(config), tokenizer, None, rank=4, first_layer=1)


def test_claims_that_share_passages_are_judged_as_if_each_were_alone(model):
    shared, own = [5, 6, 7, 8, 9], [[10, 11, 12], [13, 14], [15, 16, 17, 18]]
    together = model.logits([(shared, own)])
    apart = torch.cat([model.logits([(shared, [one])]) for one in own])
    torch.testing.assert_close(together, apart)
    assert together.shape == (3, 3)


def test_packs_of_different_lengths_in_one_pass_are_judged_as_if_each_were_alone(model):
    packs = [([5, 6, 7, 8, 9], [[10, 11, 12], [13, 14]]), ([20, 21], [[22, 23]]), ([30], [[31], [32, 33, 34]])]
    torch.testing.assert_close(model.logits(packs), torch.cat([model.logits([pack]) for pack in packs]))


def test_batches_are_split_by_padded_tokens_and_no_pack_is_lost():
    batch = [(([1] * size, [[2, 3]]), [0]) for size in (2, 3, 10, 11, 40)]
    parts = list(split(batch, 30))
    assert [one for part in parts for one in part] == batch
    assert [len(part) for part in parts] == [2, 2, 1]


def test_thresholds_let_few_claims_get_the_opposite_verdict():
    sure = [["", "", 0, 4.0, 0.0, 0.0]] * 60 + [["", "", 1, 0.0, 4.0, 0.0]] * 60
    unsure = [["", "", 1, 1.5, 0.0, 0.0]] * 20 + [["", "", 0, 0.0, 1.5, 0.0]] * 20
    found = calibrated([*sure, *unsure])
    supported, refuted = (0, found["supported"]), (1, found["refuted"])
    for column, threshold in (supported, refuted):
        shares = [torch.tensor(row[3:]).div(found["temperature"]).softmax(-1)[column] for row in [*sure, *unsure]]
        given = [row[2] for row, share in zip([*sure, *unsure], shares, strict=True) if share > threshold]
        assert given.count(1 - column) <= 0.05 * 80
        assert given.count(column) == 60


def test_a_trained_adapter_is_a_judge_that_reads_passages_together(model, tmp_path):
    model.save(tmp_path, "some/model")
    told = {"temperature": 1.2, "max_characters": 900, "supported": 0.8, "refuted": 0.7}
    (tmp_path / "judge.json").write_text(json.dumps(told))
    check_adapter(tmp_path)
    assert named_model(tmp_path) == "some/model"
    assert read_settings(tmp_path).window == ReadingWindow(900)
    judge = load_judge(str(tmp_path))
    assert judge.window == ReadingWindow(900)
    assert rule_for(judge, judge.name).thresholds == Thresholds(0.8, 0.7, 0.0)


def test_an_adapter_changes_its_layers_only(model):
    names = [name for name, parameter in model.module.named_parameters() if parameter.requires_grad]
    assert names
    assert not any(".layers.0." in name for name in names)


@pytest.fixture(scope="module")
def corpus():
    return Corpus.read(DATA)


@pytest.fixture(scope="module")
def made(corpus):
    """All packs of one seed, which take long to make."""
    return packs(corpus, seed=3)


@needs_data
def test_packs_show_the_passages_that_their_claims_are_about(corpus, made):
    assert made == packs(corpus, seed=3)
    assert made != packs(corpus, seed=4)
    for pack in made:
        shown = {text.id for text in pack.texts}
        for claim in pack.claims:
            if claim.source == "removed":
                assert claim.label is Label.INCONCLUSIVE
                assert not shown & set(claim.home)
            else:
                assert set(claim.home) <= shown


@needs_data
def test_articles_kept_apart_and_those_reported_on_are_not_trained_on(corpus, made):
    reported = set()
    for name in ("wikitext/passages.jsonl", "written_claims/report.jsonl"):
        reported |= {json.loads(line)["title"] for line in (DATA / name).read_text().splitlines()}
    titles = {text.title for pack in made for text in pack.texts}
    assert titles
    assert not titles & reported
    assert set(manifest_of(corpus)["articles"]) & reported == set()
    apart = {text.title for pack in packs(corpus, seed=1, held_out=True) for text in pack.texts}
    assert apart
    assert all(is_held_out(title) for title in apart)
    trained = {pack.texts[0].title for pack in made if pack.claims[0].source.startswith("claims")}
    assert not any(is_held_out(title) for title in trained)


@needs_data
def test_claims_are_shown_what_the_verifier_would_find_and_keep_their_label_only_then(corpus):
    found = RetrievedEvidence(list(corpus.texts.values()), max_characters=1800)
    rng = Random(1)
    made = [pack for claim in corpus.claims[:60] if (pack := found.pack(rng, claim))]
    assert len(made) > 30
    for pack in made:
        [claim] = pack.claims
        shown = {text.id for text in pack.texts}
        assert sum(len(text.text) for text in pack.texts) <= 1900
        assert claim.source == "retrieved"
        if claim.label is not Label.INCONCLUSIVE:
            assert set(claim.home) <= shown


@needs_data
def test_a_run_goes_on_with_the_batches_that_it_would_have_had(corpus):
    def encode(pack):
        return [len(pack.texts)], [[len(claim.text)] for claim in pack.claims]

    first = list(islice(Batches(corpus, encode, seed=1, batch_claims=40, start=0, retrieved=0.3), 6))
    assert list(islice(Batches(corpus, encode, seed=1, batch_claims=40, start=4, retrieved=0.3), 2)) == first[4:]
    assert all(len(labels) == len(own) for batch in first for (_, own), labels in batch)
