"""How far memories can be believed: VeriMem, MMA, MARK, and the engine's own default."""
