"""Buckets: what is read is copied into a bounded cache; what is written is published in the order of its writes.

It needs the extra `buckets`. `docs/architecture.md` has the design.
"""
