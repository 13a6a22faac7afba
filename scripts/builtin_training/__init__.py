"""Helpers of scripts/train_builtin_model.py, which makes the model in ewe/evaluation/world/model."""
