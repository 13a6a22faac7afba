"""What the last layer attended to while a text was written, for policies that ask.

No pass is slowed but by keeping the queries.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ewe.engine.attention.probe import AttentionLayer
from ewe.engine.kvcache.fp8 import dequantise
from ewe.engine.kvcache.pool import KVPool

FloatArray = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class TextAttention:
    """Attention of the last layer, over a prompt of P tokens and the T tokens of the text that were read again.

    The last token of a text is not among them: nothing follows it. weights: [1 + T, P + T], mean over heads, of the
    prompt's last token and then of the text's. received: [T], what each token of the text got from any that was
    written after it or from itself: per head the most, then the mean over heads.
    """

    weights: FloatArray
    received: FloatArray


@torch.inference_mode()
def text_attention(pool: KVPool, layer: AttentionLayer, slots: npt.NDArray[np.int64], prompt: int) -> TextAttention:
    """The attention of a text after a prompt of so many tokens, within its context; units and prefix left aside.

    slots: int64 [P + T], where the context lies. layer: the last one. The pool keeps queries.
    """
    assert pool.states is not None
    index = torch.tensor(slots, device=pool.device)
    queries = pool.states.index_select(0, index[prompt - 1 :]).float().view(-1, layer.num_heads, layer.key_dim)
    logits = (queries.transpose(0, 1) * layer.scale) @ _keys(pool, index, layer).float().transpose(1, 2)
    if layer.softcap is not None:
        logits = torch.tanh(logits / layer.softcap) * layer.softcap
    place = torch.arange(len(slots), device=pool.device)
    behind = place[prompt - 1 :, None] - place
    hidden = behind < 0 if layer.window is None else (behind < 0) | (behind >= layer.window)
    weights = logits.masked_fill_(hidden, -torch.inf).softmax(-1)  # [heads, 1 + T, P + T]
    received = weights[:, 1:, prompt:].amax(1) if len(slots) > prompt else weights.new_zeros(len(weights), 0)
    return TextAttention(weights.mean(0).cpu().numpy(), received.mean(0).cpu().numpy())


def _keys(pool: KVPool, index: Tensor, layer: AttentionLayer) -> Tensor:
    """[Hq, keys, D] of the last layer; those that heads share are repeated."""
    keys, scales = pool.keys[-1], pool.key_scales[-1]
    if scales is None:
        selected = keys.index_select(0, index)
    else:
        codes = keys.view(torch.uint8).index_select(0, index).view(keys.dtype)
        selected = dequantise(codes, scales.index_select(0, index), torch.float32)
    return selected.repeat_interleave(layer.num_heads // layer.num_kv_heads, 1).transpose(0, 1)
