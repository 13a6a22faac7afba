"""The chat model, its adapter, and what is minimised."""

from __future__ import annotations

import math
from pathlib import Path

import torch
from chat_model_files import place_of
from peft import LoraConfig, PeftModel, get_peft_model, get_peft_model_state_dict
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 (its usual name)
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase

from reader_training.attention import mask_for
from reader_training.batches import Batch
from reader_training.packing import Packed


def load_tokenizer(model: Path) -> PreTrainedTokenizerBase:
    """The tokenizer in a model folder or GGUF file; ValueError if it has no chat template."""
    tokenizer: PreTrainedTokenizerBase = AutoTokenizer.from_pretrained(**place_of(model))
    if not tokenizer.chat_template:
        raise ValueError(f"{model} has no chat template: only chat models can be taught")
    return tokenizer


def load_model(model: Path, device: torch.device) -> PreTrainedModel:
    """The model in a folder or GGUF file (widened from its quantisation), bfloat16 on CUDA, else float32; frozen."""
    dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
    loaded: PreTrainedModel = AutoModelForCausalLM.from_pretrained(
        **place_of(model), dtype=dtype, attn_implementation="sdpa"
    )
    # What was read from a GGUF file is no longer quantised.
    loaded.hf_quantizer, loaded.is_quantized = None, False
    if hasattr(loaded.config, "quantization_config"):
        del loaded.config.quantization_config
    loaded.tie_weights()
    return loaded.to(device).eval().requires_grad_(False)  # type: ignore[arg-type]


def add_adapter(model: PreTrainedModel, rank: int, seed: int) -> PeftModel:
    """The model with a new LoRA on all linear layers of its blocks, in float32; its inner model reads through it."""
    torch.manual_seed(seed)
    config = LoraConfig(r=rank, lora_alpha=2 * rank, target_modules="all-linear", task_type="CAUSAL_LM")
    return get_peft_model(model, config)


def with_adapter(model: PreTrainedModel, folder: Path) -> PreTrainedModel:
    """The model with the adapter in `folder` merged into its weights, as the engine loads it."""
    merged: PreTrainedModel = PeftModel.from_pretrained(model, str(folder)).merge_and_unload()
    return merged


def save_adapter(folder: Path, model: PeftModel, base: str) -> None:
    """Writes adapter_model.safetensors (bfloat16) and adapter_config.json; base: its model's name."""
    folder.mkdir(parents=True, exist_ok=True)
    tensors = {name: tensor.to(torch.bfloat16).cpu() for name, tensor in get_peft_model_state_dict(model).items()}
    save_file(tensors, folder / "adapter_model.safetensors", {"format": "pt"})
    config = model.peft_config["default"]
    config.base_model_name_or_path = base
    config.save_pretrained(str(folder), inference_mode=True)


def rate_at(progress: float, warmup: float = 0.04) -> float:
    """Share of the peak learning rate at `progress` in [0, 1]: linear warm-up, then a cosine to 0."""
    if progress < warmup:
        return (progress + 1e-3) / (warmup + 1e-3)
    return 0.5 * (1 + math.cos(math.pi * min((progress - warmup) / (1 - warmup), 1.0)))


def target_logits(model: PreTrainedModel, batch: Packed, implementation: str) -> Tensor:
    """float32 logits [targets, vocabulary] of what predicts the tokens of the answers."""
    mask = mask_for(batch, implementation)
    read = model.get_decoder()(input_ids=batch.ids, position_ids=batch.positions, attention_mask=mask, use_cache=False)
    hidden = read.last_hidden_state
    logits: Tensor = model.get_output_embeddings()(hidden.flatten(0, 1)[batch.index])
    return logits.float()


def losses(
    student: PreTrainedModel, teacher: PreTrainedModel, batch: Batch, implementation: str
) -> tuple[Tensor, Tensor]:
    """Cross-entropy of the answers, and the KL divergence from the teacher, who reads the right passages in its prompt.

    Both are means over the tokens they are about; 0 for the divergence if there are none.
    """
    logits = target_logits(student, batch.student, implementation)
    entropy = F.cross_entropy(logits, batch.student.labels)
    if not len(batch.taught):
        return entropy, torch.zeros_like(entropy)
    with torch.no_grad():
        wanted = F.log_softmax(target_logits(teacher, batch.teacher, implementation), -1)
    given = F.log_softmax(logits[batch.taught], -1)
    return entropy, F.kl_div(given, wanted, reduction="batchmean", log_target=True)


def compile_layers(model: PreTrainedModel) -> None:
    """Compiles the blocks one by one: they share one graph, so that it takes seconds."""
    layers = next(module for module in model.get_decoder().children() if isinstance(module, nn.ModuleList))
    for layer in layers:
        layer.compile(dynamic=False)
