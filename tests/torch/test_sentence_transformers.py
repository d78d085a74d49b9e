"""Cross-encoders of sentence-transformers and models of Hugging Face's Trainer, on a tiny BERT with random weights made here."""

import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest

import exactrank as er

torch = pytest.importorskip("torch", reason="needs PyTorch: pip install 'exactrank[torch]'")
datasets = pytest.importorskip("datasets", reason="needs datasets, of sentence-transformers[train]")
transformers = pytest.importorskip("transformers", reason="needs transformers, of sentence-transformers")
sentence_transformers = pytest.importorskip("sentence_transformers", reason="needs sentence-transformers[train]")
pytest.importorskip("accelerate", reason="needs accelerate, of sentence-transformers[train]")

import tokenizers  # noqa: E402
from sentence_transformers.cross_encoder import CrossEncoder, CrossEncoderTrainer, CrossEncoderTrainingArguments, losses  # noqa: E402

import exactrank.torch as xt  # noqa: E402

WORDS = [f"w{i}" for i in range(12)]


@pytest.fixture(autouse=True)
def one_thread():
    """Threads of tests that run at the same time wait for each other, which takes far longer than models as small as these."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def tiny_bert(tmp_path_factory):
    """The folder of a BERT of one layer that knows `WORDS`."""
    folder = tmp_path_factory.mktemp("bert")
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
    vocabulary = {word: number for number, word in enumerate([*special, *WORDS])}
    words = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocabulary, unk_token="[UNK]"))
    words.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    words.post_processor = tokenizers.processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    names = dict(zip(["pad_token", "unk_token", "cls_token", "sep_token"], special, strict=True))
    transformers.PreTrainedTokenizerFast(tokenizer_object=words, model_max_length=32, **names).save_pretrained(folder)
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16, "max_position_embeddings": 32}
    config = transformers.BertConfig(vocab_size=len(vocabulary), num_labels=1, **sizes)
    transformers.BertForSequenceClassification(config).save_pretrained(folder)
    return folder


@pytest.fixture
def model(tiny_bert):
    encoder = CrossEncoder(str(tiny_bert), device="cpu", local_files_only=True)
    encoder.eval()  # no dropout
    return encoder


def lists(queries: int, seed: int):
    """Queries with 3 to 7 documents each; what makes a document relevant are the words w0 and w1."""
    rng = np.random.default_rng(seed)
    rows = []
    for _ in range(queries):
        documents = [[WORDS[i] for i in rng.integers(0, len(WORDS), 4)] for _ in range(rng.integers(3, 8))]
        grades = [float(sum(word in ("w0", "w1") for word in words)) for words in documents]
        rows.append({"query": WORDS[rng.integers(12)], "docs": [" ".join(words) for words in documents], "labels": grades})
    return rows


def measured(model, rows, measure):
    lengths = [len(row["docs"]) for row in rows]
    scores = model.predict([(row["query"], document) for row in rows for document in row["docs"]], convert_to_tensor=True)
    return xt.evaluate(scores, torch.tensor([g for row in rows for g in row["labels"]]), measure, lengths=lengths)[measure]


def batch(rows):
    """What the trainer's collator makes of rows."""
    return [[row["query"] for row in rows], [row["docs"] for row in rows]], [torch.tensor(row["labels"]) for row in rows]


def gradients(model, value):
    model.zero_grad()
    value.backward()
    return torch.cat([p.grad.reshape(-1) for p in model.parameters() if p.grad is not None])


@pytest.mark.parametrize("measure", ["AP", "nDCG@10"])
def test_training_raises_the_measure(measure, model, tmp_path):
    rows, others = lists(64, seed=1), lists(64, seed=2)
    before = measured(model, others, measure)
    loss = xt.CrossEncoderLoss(model, er.losses.Lambdas(er.parse_measure(measure)), mini_batch_size=0)
    arguments = CrossEncoderTrainingArguments(
        output_dir=str(tmp_path), num_train_epochs=4, per_device_train_batch_size=8, learning_rate=1e-2, report_to="none", use_cpu=True,
        logging_steps=8, disable_tqdm=True, eval_strategy="epoch",
    )  # fmt: skip
    trainer = CrossEncoderTrainer(
        model=model,
        args=arguments,
        train_dataset=datasets.Dataset.from_list(rows),
        eval_dataset=datasets.Dataset.from_list(others),
        loss=loss,
    )
    trainer.train()
    after = measured(model, others, measure)
    assert after > before + 0.1
    assert trainer.evaluate()["eval_loss"] == pytest.approx(-after, abs=1e-6)  # the mean of batches of equal size
    model.save_pretrained(str(tmp_path / "saved"))
    card = (tmp_path / "saved" / "README.md").read_text()
    assert "CrossEncoderLoss" in card
    assert measure.partition("@")[0] in card
    assert "burges2006learning" in card


def test_the_loss_is_that_of_the_scores(model):
    inputs, labels = batch(rows := lists(5, seed=3))
    scores = torch.tensor(
        model.predict([(q, d) for q, listed in zip(*inputs, strict=True) for d in listed], activation_fn=torch.nn.Identity())
    )
    data = er.RankingData.from_arrays(None, torch.cat(labels).numpy(), group=[len(row["docs"]) for row in rows])
    for size in (None, 3, 0, -1):
        value = xt.CrossEncoderLoss(model, er.losses.Lambdas(er.measures.AP()), mini_batch_size=size)(inputs, labels)
        assert value.item() == pytest.approx(-er.evaluate(data, scores.numpy(), "AP")["AP"].mean, abs=1e-6)


class OfVersion5(torch.nn.Module):
    """A model as version 6 has it, called as versions 4 and 5 are."""

    num_labels = 1

    def __init__(self, model):
        super().__init__()
        self.tokenizer, self.device, self.inner = (
            model.tokenizer,
            model.device,
            model[0].model if hasattr(model, "preprocess") else model.model,
        )

    def forward(self, **tokens):
        return self.inner(**tokens)


def test_models_of_older_versions_give_the_same_gradient(model):
    inputs, labels = batch(lists(5, seed=4))
    objective, older = er.losses.Lambdas(er.measures.NDCG(k=3)), OfVersion5(model)
    ours = gradients(model, xt.CrossEncoderLoss(model, objective)(inputs, labels))
    theirs = gradients(model, xt.CrossEncoderLoss(older, objective)(inputs, labels))
    assert torch.allclose(ours, theirs, rtol=0, atol=1e-7)
    with pytest.raises(er.errors.IncompatibleError, match="need sentence-transformers 6"):
        xt.CrossEncoderLoss(older, objective)(inputs, labels, prompt="Rank: ")


class Fixed(torch.nn.Module):
    """A model with given scores, of either version of the library."""

    num_labels, device = 1, torch.device("cpu")

    def __init__(self, scores):
        super().__init__()
        self.scores = scores
        if hasattr(CrossEncoder, "preprocess"):
            self.preprocess = lambda pairs, **_: {}

    def tokenizer(self, pairs, **_):
        return transformers.BatchEncoding({})

    def forward(self, *_):
        return {"scores": self.scores} if hasattr(self, "preprocess") else [self.scores]


@pytest.fixture
def scored():
    """Lists of several lengths with scores, as the losses of the library take them."""
    rng = np.random.default_rng(6)
    lengths = [7, 4, 9, 1, 7]
    scores = torch.tensor(rng.normal(size=sum(lengths)).astype(np.float32), requires_grad=True)
    labels = [torch.tensor(rng.integers(0, 4, n).astype(np.float32)) for n in lengths]
    return scores, labels, [["q"] * len(lengths), [["d"] * n for n in lengths]], lengths


def pairs_of_different_grades(labels):
    return sum(int((y[:, None] > y[None, :]).sum()) for y in labels)


def test_lambdas_of_ndcg_are_those_of_their_lambdarank(scored):
    scores, labels, inputs, lengths = scored
    theirs = losses.LambdaLoss(Fixed(scores), losses.LambdaRankScheme(), reduction_log="natural", mini_batch_size=len(scores))
    (expected,) = torch.autograd.grad(theirs(inputs, labels), scores)
    (result,) = torch.autograd.grad(
        xt.RankingLoss(er.losses.Lambdas(er.measures.NDCG()), "sum")(scores, torch.cat(labels), lengths=lengths), scores
    )
    assert torch.allclose(result / pairs_of_different_grades(labels), expected, rtol=0, atol=2e-8)


@pytest.mark.parametrize("measure", ["nDCG@3", "AP", "ERR", "RR", "P@5", "RBP"])
def test_weights_make_their_loss_that_of_any_measure(measure, scored):
    scores, labels, inputs, lengths = scored
    theirs = losses.LambdaLoss(Fixed(scores), xt.Weights(measure), reduction_log="natural", mini_batch_size=len(scores))
    (expected,) = torch.autograd.grad(theirs(inputs, labels), scores)
    ours = xt.RankingLoss(er.losses.Lambdas(er.parse_measure(measure)), "sum")
    (result,) = torch.autograd.grad(ours(scores, torch.cat(labels), lengths=lengths), scores)
    assert result.abs().max() > 0.01
    assert torch.allclose(result / pairs_of_different_grades(labels), expected, rtol=0, atol=1e-7)


def test_ranknet_is_that_of_rax(scored):
    jax = pytest.importorskip("jax", reason="needs jax")
    rax = pytest.importorskip("rax", reason="needs Rax")
    scores, labels, _, lengths = scored
    grades, exact = torch.cat(labels), scores.detach().double().requires_grad_()
    (result,) = torch.autograd.grad(xt.RankingLoss(er.losses.Lambdas(), "sum")(exact, grades, lengths=lengths), exact)
    with jax.enable_x64(True):
        segments = np.repeat(np.arange(len(lengths)), lengths)
        expected = jax.grad(lambda s: rax.pairwise_logistic_loss(s, grades.numpy(), segments=segments, reduce_fn=jax.numpy.sum))(
            exact.detach().numpy()
        )
    assert np.abs(result.numpy() - np.asarray(expected)).max() < 1e-12


def test_a_model_with_its_own_loss_trains_in_the_trainer_of_hugging_face(tmp_path):
    class Scorer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.score, self.loss = torch.nn.Linear(3, 1), xt.RankingLoss(er.losses.Lambdas(er.measures.NDCG(k=10)))

        def forward(self, features, labels, mask):
            scores = self.score(features).squeeze(-1)
            return {"loss": self.loss.padded(scores, labels, mask), "scores": scores}

    rng = np.random.default_rng(0)
    rows = []
    for length in rng.integers(2, 9, 64):
        features = rng.normal(size=(8, 3)).astype(np.float32)
        grades = np.digitize(features @ [1.0, -1.0, 0.0], [0.5, 1.5]).astype(np.float32)
        rows.append({"features": features, "labels": grades, "mask": np.arange(8) < length})
    torch.manual_seed(0)
    arguments = transformers.TrainingArguments(
        output_dir=str(tmp_path), num_train_epochs=4, per_device_train_batch_size=8, learning_rate=5e-2, report_to="none", use_cpu=True,
        disable_tqdm=True, label_names=["labels"],
    )  # fmt: skip
    trainer = transformers.Trainer(model=Scorer(), args=arguments, train_dataset=rows, eval_dataset=rows)
    before = trainer.evaluate()["eval_loss"]
    trainer.train()
    assert trainer.evaluate()["eval_loss"] < before - 0.1


@pytest.mark.parametrize(
    ("inputs", "labels", "message"),
    [
        ([["q"], [["a", "b"]], [["c"]]], [torch.zeros(2)], "has 3 columns beside the grades"),
        ([["q", "r"], ["a", "b"]], torch.zeros(2), "a column holds single values"),
        ([["q", "r"], [["a"], ["b", "c"]]], [torch.zeros(1), torch.zeros(1)], "query 1 of the batch has 2 documents and 1 grades"),
        ([["q"], [[]]], [torch.zeros(0)], "none of the 1 queries of the batch has documents"),
    ],
)
def test_batches_that_cannot_be_meant_are_refused(inputs, labels, message):
    loss = xt.CrossEncoderLoss(Fixed(torch.zeros(2, requires_grad=True)), er.losses.Lambdas())
    with pytest.raises(er.errors.DataError, match=message):
        loss(inputs, labels)


def test_models_of_several_numbers_are_refused():
    with pytest.raises(er.errors.IncompatibleError, match="outputs 3 numbers per pair"):
        xt.CrossEncoderLoss(SimpleNamespace(num_labels=3), er.losses.Lambdas())
    with pytest.raises(er.errors.IncompatibleError, match="AP is a measure"):
        xt.CrossEncoderLoss(SimpleNamespace(num_labels=1), er.measures.AP())


def test_exactrank_torch_does_not_import_the_library():
    code = "import sys, exactrank.torch; sys.exit('sentence_transformers' in sys.modules or 'transformers' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
