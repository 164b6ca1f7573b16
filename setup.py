"""The packages of a wheel: the folder `experiments` becomes a part of `bert_elmo_jax`; all else is in setup.cfg."""

from setuptools import find_packages, setup

programs = [f"bert_elmo_jax.{name}" for name in find_packages(include=["experiments", "experiments.*"])]
setup(
    packages=[*find_packages(include=["bert_elmo_jax", "bert_elmo_jax.*"]), *programs],
    package_dir={"bert_elmo_jax.experiments": "experiments"},
)
