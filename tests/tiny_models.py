"""Models small enough to make in a test: the real classes, with random weights from a seed."""

from pathlib import Path

WORDS = "[PAD] [UNK] [CLS] [SEP] [MASK] apple pear plum dog cat tree the a of is in tastes barks grows sweet red green"
MODEL = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
WINDOW = 64


def save_cross_encoder(folder: Path, *, seed: int = 0, labels: int = 1, dtype: str = "float32") -> Path:
    """Save a BERT that scores pairs of texts into `folder` and return it. Knows the words of WORDS only."""
    import torch
    from transformers import BertConfig, BertForSequenceClassification

    tokenizer = _tokenizer()
    config = BertConfig(
        vocab_size=len(tokenizer), max_position_embeddings=WINDOW, num_labels=labels, initializer_range=1.0, **MODEL
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = BertForSequenceClassification(config)
    model.to(getattr(torch, dtype)).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def save_encoder(folder: Path, *, prompts: dict[str, str] | None = None, seed: int = 0) -> Path:
    """Save a sentence-transformers model of a small BERT with mean pooling into `folder` and return it."""
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer
    from transformers import BertConfig, BertModel

    bert = folder / "bert"
    tokenizer = _tokenizer()
    config = BertConfig(vocab_size=len(tokenizer), max_position_embeddings=WINDOW, initializer_range=1.0, **MODEL)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        BertModel(config).save_pretrained(bert)
    tokenizer.save_pretrained(bert)
    transformer = Transformer(str(bert))
    pooling = Pooling(MODEL["hidden_size"])
    SentenceTransformer(modules=[transformer, pooling], prompts=prompts).save(str(folder / "model"))
    return folder / "model"


def _tokenizer():
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import BertTokenizerFast

    words = {word: number for number, word in enumerate(WORDS.split())}
    tokenizer = Tokenizer(models.WordPiece(words, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", words["[SEP]"]), ("[CLS]", words["[CLS]"]))
    return BertTokenizerFast(tokenizer_object=tokenizer, model_max_length=WINDOW)
