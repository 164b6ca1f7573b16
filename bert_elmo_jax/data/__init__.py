"""Ids to batches, in numpy: corpora and their stores, masks, pairs, packing, streams, tasks, and the toy world."""
