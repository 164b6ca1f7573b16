"""Metrics that give the same results as the official scorers.

>>> from bert_elmo_jax.evals import entities, glue, squad
>>> glue.score("nsmc", ["1", "0"], ["1", "1"])
{'accuracy': 0.5}
"""

from bert_elmo_jax.evals import entities, glue, squad, translation

__all__ = ["entities", "glue", "squad", "translation"]
