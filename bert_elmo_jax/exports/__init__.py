"""Models for other programs: ONNX and StableHLO folders with a tokenizer, labels and a runner."""
