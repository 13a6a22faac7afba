"""The parts of scripts/train_builtin_judge.py: data, made pairs, training, calibration and export of the judge."""
