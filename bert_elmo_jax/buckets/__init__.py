"""Buckets: files that are read are copied into a bounded cache; writes are published in their order.

It needs the extra `buckets`. `docs/architecture.md` has the design.
"""
