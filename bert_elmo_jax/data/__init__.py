"""Turn text into training batches: corpora and stores, masking, pairs, packing, streams, tasks and the toy world."""
