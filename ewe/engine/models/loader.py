"""Loading a model and its tokenizer, or refusing them with the reason."""

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from transformers import AutoConfig, AutoModelForCausalLM
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING
from transformers.utils import logging

from ewe.config import ModelConfig
from ewe.config.loading import WEIGHTS_LOCK, LoadStep, OnLoad, ignore_step
from ewe.config.lora import merge_adapter, read_adapter
from ewe.engine.attention.choose import missing_for_kernels
from ewe.engine.attention.ewe_attention import NAME as ATTENTION
from ewe.engine.attention.probe import attention_layers
from ewe.engine.attention.support import refuse_unsupported, rope_settings
from ewe.engine.models.cpu_linear import speed_up_decoding
from ewe.engine.models.device import launching_on, on_one_device, precision_on, usable_device
from ewe.engine.models.gguf_weights import cost_of_widening, widening
from ewe.engine.models.model_files import ModelSource, adapter_folder, adapter_folders, model_source
from ewe.engine.models.pretrained import load_tokenizer, pretrained_options, read_pretrained
from ewe.engine.models.quantization import refuse_unusable, shrink
from ewe.engine.models.row_adapters import RowAdapters
from ewe.engine.models.small_products import choose_few_rows
from ewe.errors import ConfigError, DeviceMemoryError

_WEIGHTS = "loading weights"
_BAR = "Loading weights"  # of transformers
OnCount = Callable[[int, int], object]


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """A model ready for ModelRunner (eval, no gradients), its tokenizer and its limits.

    tokenizer: None only for load_format "dummy" without tokenizer files. max_model_len: number of positions, so the
    units' capacity counts too. eos_token_ids: the tokens that end an answer. vocab_size: ids are below it. adapters:
    what rows of a pass may name, None if they may not. settings: by which its files were read; None for other models.
    """

    model: Any
    tokenizer: Any
    max_model_len: int
    eos_token_ids: frozenset[int]
    vocab_size: int
    adapters: RowAdapters | None = None
    settings: ModelConfig | None = None


def load_model(
    config: ModelConfig,
    on_load: OnLoad = ignore_step,
    adapters: Mapping[str, Path] | None = None,
    pool_gib: float | None = None,
) -> LoadedModel:
    """The model that `config` names: "builtin", a known model, a directory, a GGUF file or a hub id.

    load_format "dummy" takes a config.json as well. on_load: hears of the weights as they are read. adapters: more than
    the settings name. pool_gib: what `model.device_map` leaves free for the KV pool; None: it chooses.

    Raises ConfigError if it cannot be found or read, UnsupportedModelError if its attention cannot be honoured.
    """
    source, model_config = model_source(config), read_config(config)
    max_model_len = _max_model_len(model_config, config.max_model_len)
    try:
        named = adapter_folders(config) | dict(adapters or {})
        model, rows = _model(source, model_config, config, on_load, named, pool_gib)
    except torch.OutOfMemoryError as error:
        raise DeviceMemoryError(
            f"the weights of {config.name} have no room on the device: set model.dtype to bfloat16, "
            f"model.weights to int8, model.device to another device, or take a smaller model ({error})"
        ) from error
    attention_layers(model)
    _fuse_on_gpu(model, config)
    vocab_size = model.get_input_embeddings().num_embeddings
    tokenizer = load_tokenizer(config)
    return LoadedModel(model, tokenizer, max_model_len, _eos_token_ids(model), vocab_size, rows, config)


def read_config(config: ModelConfig) -> Any:
    """transformers' configuration of the model that `config` names; raises as `load_model`."""
    model_config = read_pretrained(AutoConfig, model_source(config), pretrained_options(config))
    model_class: Any = MODEL_FOR_CAUSAL_LM_MAPPING.get(type(model_config), None)
    refuse_unsupported(model_config, model_class)
    return model_config


def _model(
    source: ModelSource,
    model_config: Any,
    config: ModelConfig,
    on_load: OnLoad,
    adapters: Mapping[str, Path],
    pool_gib: float | None,
) -> tuple[Any, RowAdapters | None]:
    options, (device, dtype) = pretrained_options(config), _place(model_config, config)
    in_parts = _sharding(config) if config.tensor_parallel > 1 else {}
    if config.device_map is not None:
        from ewe.engine.models.device_map import spreading

        in_parts = spreading(model_config, dtype, device, pool_gib)
    if in_parts:
        model = _read_model(source, model_config, dtype, options | in_parts, on_load)
        return model.eval().requires_grad_(False), None
    adapter = adapter_folder(config)
    if config.weights != "auto":
        refuse_unusable(config.weights, model_config, device, dtype, config.compile)
    if config.load_format == "dummy":
        on_load(LoadStep("making random weights"))
        model = _random_model(model_config, config, device, dtype)
    else:
        model = _read_model(source, model_config, torch.float32 if adapter else dtype, options, on_load)
        if adapter is not None:
            on_load(LoadStep(f"merging the adapter {adapter.name}"))
            model = merge_adapter(model, adapter, dtype)
    read = {name: read_adapter(model, folder) for name, folder in adapters.items()}
    if config.weights != "auto":
        shrink(model, config.weights, device, choose_few_rows(config.weights, device, dtype))
    model = model.to(device).eval().requires_grad_(False)
    speed_up_decoding(model)
    return model, RowAdapters(model, read) if read else None


def _sharding(config: ModelConfig) -> dict[str, Any]:
    """What has each process of a group read its own part onto its own device; raises ConfigError outside of a group."""
    if not torch.distributed.is_initialized():
        raise ConfigError("this runs in one process: set model.tensor_parallel to 1")
    try:
        from transformers.distributed.configuration_utils import DistributedConfig

        return {"distributed_config": DistributedConfig(tp_size=config.tensor_parallel)}
    except (ImportError, TypeError) as error:
        raise ConfigError("model.tensor_parallel needs a newer transformers (it is tested with 5.23)") from error


def _random_model(model_config: Any, config: ModelConfig, device: torch.device, dtype: torch.dtype) -> Any:
    with WEIGHTS_LOCK, torch.random.fork_rng(), device:
        torch.manual_seed(0)
        return AutoModelForCausalLM.from_config(  # type: ignore[no-untyped-call]
            model_config,
            dtype=dtype,
            attn_implementation=ATTENTION,
            trust_remote_code=False,
        )


def _read_model(
    source: ModelSource, model_config: Any, dtype: torch.dtype, options: dict[str, Any], on_load: OnLoad
) -> Any:
    """The model of a checkpoint, in host memory."""
    more = {"config": model_config, "dtype": dtype, "attn_implementation": ATTENTION, "use_safetensors": True}
    if source.gguf_file is not None:
        more |= widening()
    on_load(LoadStep(_WEIGHTS))
    with WEIGHTS_LOCK, _counted_weights(lambda done, total: on_load(LoadStep(_WEIGHTS, done, total, "tensors"))):
        model, report = read_pretrained(AutoModelForCausalLM, source, options, output_loading_info=True, **more)
    if report["missing_keys"]:
        # transformers would fill them with random numbers and go on.
        raise ConfigError(f"{source} lacks the weights {', '.join(sorted(report['missing_keys']))}")
    if source.gguf_file is not None:
        on_load(cost_of_widening(model, Path(source.place) / source.gguf_file))
    return model


def _place(model_config: Any, config: ModelConfig) -> tuple[torch.device, torch.dtype]:
    """Device and dtype; "auto": the GPU, if any, with the checkpoint's own precision if it has that; else the CPU."""
    device = usable_device(config.device)
    if config.dtype != "auto":
        return device, getattr(torch, config.dtype)
    return device, precision_on(device, model_config.get_text_config().dtype or torch.float32)


def _max_model_len(model_config: Any, requested: int | None) -> int:
    """The requested length, or the model's own; raises ConfigError if the model cannot go that far.

    With longrope the limit is the original length: beyond it transformers would switch the rotary factors of every
    sequence in the batch, and with them the meaning of all cached keys.
    """
    limits = [
        item.get("original_max_position_embeddings")
        for item in rope_settings(model_config)
        if item.get("rope_type") == "longrope"
    ]
    own = getattr(model_config.get_text_config(), "max_position_embeddings", None)
    limit = min((item for item in [own, *limits] if item is not None), default=requested)
    if limit is None:
        raise ConfigError(f"{model_config.model_type} does not say how long it can go: set model.max_model_len")
    if requested is not None and requested > limit:
        raise ConfigError(f"model.max_model_len {requested} is beyond what the model can do ({limit} positions)")
    return int(requested or limit)


def _eos_token_ids(model: Any) -> frozenset[int]:
    token_ids: set[int] = set()
    for holder in (model.generation_config, model.config.get_text_config()):
        item = getattr(holder, "eos_token_id", None)
        token_ids.update(item if isinstance(item, (list, tuple)) else [] if item is None else [item])
    return frozenset(token_ids)


def _fuse_on_gpu(model: Any, config: ModelConfig) -> None:
    """Fuses the layers on a GPU that runs the kernels, unless the settings say otherwise; a CPU is faster without."""
    should_fuse = model.device.type == "cuda" and config.fused == "auto" and not config.compile
    should_fuse = should_fuse and config.tensor_parallel == 1 and on_one_device(model)
    if should_fuse and missing_for_kernels(model.device) is None:
        from ewe.engine.models.fused_layer import fuse_layers

        with launching_on(model.device):
            fuse_layers(model)


@contextmanager
def _counted_weights(on_count: OnCount) -> Iterator[None]:
    """Inside, `on_count(done, total)` hears of every tensor that is read. Older transformers tell of none."""
    set_hook = getattr(logging, "set_tqdm_hook", None)
    if set_hook is None:
        yield
        return

    def watch(make: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        if args and options.get("desc") == _BAR:
            options = {**options, "total": len(args[0])}
            args = (_counted(args[0], on_count), *args[1:])
        return make(*args, **options)

    previous = set_hook(watch)
    try:
        yield
    finally:
        set_hook(previous)


def _counted(items: Collection[Any], on_count: OnCount) -> Iterator[Any]:
    for done, item in enumerate(items, 1):
        yield item
        on_count(done, len(items))
