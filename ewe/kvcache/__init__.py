"""The paged KV pool and its block manager."""

from ewe.kvcache.block_manager import BlockManager
from ewe.kvcache.block_table import BlockTable
from ewe.kvcache.pool import HostBlocks, KVPool, LayerShape

__all__ = ["BlockManager", "BlockTable", "HostBlocks", "KVPool", "LayerShape"]
