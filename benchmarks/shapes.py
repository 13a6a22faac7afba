"""The shapes of the models that are measured, and what a decoding step of them must at least read.

`python -m benchmarks.shapes` prints the limits on paper of 1B, 8B and 70B on H100s, of which several share every layer
(tensor parallel), from the data sheet: nothing is measured.
"""

from __future__ import annotations

import argparse
from typing import Any

Shape = dict[str, Any]

SMOLLM2_135M: Shape = {
    "hidden_size": 576,
    "intermediate_size": 1536,
    "num_hidden_layers": 30,
    "num_attention_heads": 9,
    "num_key_value_heads": 3,
    "vocab_size": 49152,
    "tie_word_embeddings": True,
}
LLAMA: dict[str, Shape] = {
    "1b": {
        "hidden_size": 2048,
        "intermediate_size": 8192,
        "num_hidden_layers": 16,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "head_dim": 64,
        "vocab_size": 128256,
        "tie_word_embeddings": True,
    },
    "8b": {
        "hidden_size": 4096,
        "intermediate_size": 14336,
        "num_hidden_layers": 32,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "vocab_size": 128256,
        "tie_word_embeddings": False,
    },
    "70b": {
        "hidden_size": 8192,
        "intermediate_size": 28672,
        "num_hidden_layers": 80,
        "num_attention_heads": 64,
        "num_key_value_heads": 8,
        "vocab_size": 128256,
        "tie_word_embeddings": False,
    },
}
# Of one H100 SXM, from its data sheet: bytes per second from its memory, and to the others over NVLink (one way), and
# the memory, of which a tenth is left for activations.
_READ_RATE, _LINK_RATE, _MEMORY_BYTES = 3.35e12, 4.5e11, 0.9 * 80e9
_BYTES_PER_NUMBER = 2  # bfloat16
# 8 units of 256 tokens that all answers share, and a context of each.
_UNIT_TOKENS, _CONTEXT_TOKENS = 8 * 256, 544


def weight_bytes(shape: Shape) -> int:
    """The weights that a decoding step reads, in bfloat16: all but an embedding of its own."""
    hidden, inner, layers = shape["hidden_size"], shape["intermediate_size"], shape["num_hidden_layers"]
    queries, keys = shape["num_attention_heads"] * head_dim(shape), shape["num_key_value_heads"] * head_dim(shape)
    per_layer = hidden * (2 * queries + 2 * keys + 3 * inner + 2)
    return _BYTES_PER_NUMBER * int(layers * per_layer + hidden + shape["vocab_size"] * hidden)


def token_bytes(shape: Shape) -> int:
    """Keys and values of one token, in bfloat16."""
    numbers = 2 * shape["num_hidden_layers"] * shape["num_key_value_heads"] * head_dim(shape)
    return _BYTES_PER_NUMBER * int(numbers)


def head_dim(shape: Shape) -> int:
    """The length of a head."""
    return int(shape.get("head_dim", shape["hidden_size"] // shape["num_attention_heads"]))


def step_seconds(shape: Shape, gpus: int, batch: int) -> float | None:
    """The least time of a step on so many GPUs, None if it does not fit: reading a share each, and two sums per layer.

    The sums (all-reduces of a batch's hidden states) are counted by their bytes; what each costs beside them is not.
    """
    tokens = _UNIT_TOKENS + batch * _CONTEXT_TOKENS
    share = (weight_bytes(shape) + tokens * token_bytes(shape)) / gpus
    if share > _MEMORY_BYTES:
        return None
    states = batch * shape["hidden_size"] * _BYTES_PER_NUMBER
    sums = 2 * shape["num_hidden_layers"] * 2 * (gpus - 1) / gpus * states / _LINK_RATE
    return float(share / _READ_RATE + sums)


def table(batches: tuple[int, ...] = (1, 64, 256)) -> str:
    """The limits as a table in Markdown: milliseconds per step and tokens per second."""
    lines = [
        "| shape | GPUs | " + " | ".join(f"batch {batch}" for batch in batches) + " |",
        "| --- " * (2 + len(batches)) + "|",
    ]
    for name, shape in LLAMA.items():
        for gpus in (1, 2, 4, 8) if name == "70b" else (1,):
            limits = [(batch, step_seconds(shape, gpus, batch)) for batch in batches]
            cells = [
                "no room" if step is None else f"{1e3 * step:.2f} ms, {batch / step:,.0f} tokens/s"
                for batch, step in limits
            ]
            lines.append(f"| {name} | {gpus} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    """Prints the limits."""
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    print(table())


if __name__ == "__main__":
    main()
