"""Mix inputs by weight or by temperature: documents of small ones are repeated, documents of large ones left out.

The mixture has as many bytes as all inputs together. An input that should have `copies` times its bytes gives
each of its documents floor(copies) times, and once more with the probability that is left, by a coin that depends only
on the document's place. A held-out document is there at most once, so no text is in both parts.
"""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from bert_elmo_jax.data.corpora.reading import Reading, Source, Tally, find_files
from bert_elmo_jax.did_you_mean import did_you_mean

MOST_COPIES = 100.0


def name_input(pattern: str) -> str:
    """Return the name of an input in a mixture: of its file, or of its folder if the file's name is only a glob.

    >>> [name_input(pattern) for pattern in ("data/reviews.jsonl.gz", "novels/*.txt", "wiki-*.txt", "s3://b/news/**/*")]
    ['reviews', 'novels', 'wiki', 'news']
    """
    names = [re.split(r"[*?\[]|\.\w", part)[0].strip("-_.") for part in re.split(r"[/\\]", pattern)]
    return next((name for name in reversed(names) if name), pattern)


def read_weights(text: str, inputs: Sequence[str]) -> dict[str, float]:
    """Return the share of each input in the mixture; weights need not add up to one.

    >>> read_weights("novels=3,reviews=1", ["novels/*.txt", "reviews.txt"])
    {'novels': 0.75, 'reviews': 0.25}
    >>> read_weights("novels=1", ["novels/*.txt", "reviews.txt"])
    Traceback (most recent call last):
    ValueError: --mix=novels=1: no weight for reviews; give one for each --input
    """
    names = _name_inputs(inputs)
    weights: dict[str, float] = {}
    for part in text.split(","):
        name, _, number = part.strip().partition("=")
        if name not in names:
            near = did_you_mean(name, names)
            raise ValueError(f"--mix={text}: no --input is named {name!r}; they are {', '.join(names)}{near}")
        try:
            weights[name] = float(number)
        except ValueError:
            weights[name] = 0.0
        if not 0 < weights[name] < 1e9:
            raise ValueError(f"--mix={text}: {name}={number} should be a weight above 0, such as {name}=0.5")
    if missing := [name for name in names if name not in weights]:
        raise ValueError(f"--mix={text}: no weight for {', '.join(missing)}; give one for each --input")
    return {name: weights[name] / sum(weights.values()) for name in names}


def _name_inputs(inputs: Sequence[str]) -> list[str]:
    names = [name_input(pattern) for pattern in inputs]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise ValueError(f"two inputs of a mixture are named {twice}; rename a file or a folder")
    if len(names) < 2:
        raise ValueError(f"a mixture needs two or more inputs, given {', '.join(inputs)}; repeat --input")
    return names


def check_mixture(mix: str, temperature: float, inputs: Sequence[str]) -> None:
    """Raise on a mixture that cannot be made."""
    if mix and temperature != 1:
        raise ValueError(f"--mix={mix} and --temperature={temperature:g} both set the shares; leave one out")
    if mix:
        read_weights(mix, inputs)
    elif temperature != 1:
        _name_inputs(inputs)


def find_owners(inputs: Sequence[str], reading: Reading) -> dict[str, str]:
    """Return the input of each file, by its name in a mixture."""
    owners: dict[str, str] = {}
    tally = Tally(replace(reading, on_bad="skip"))  # bad files have been reported, or counted
    for pattern in inputs:
        for path in find_files([pattern], tally):
            owners.setdefault(path, name_input(pattern))
    return owners


def mix_sources(
    sources: Sequence[Source], inputs: Sequence[str], reading: Reading, mix: str, temperature: float
) -> tuple[list[Source], dict[str, dict[str, Any]]]:
    """Return the sources with their numbers of copies, and for each input its bytes, share and copies.

    Without weights, shares are proportional to bytes ** temperature: 1 changes nothing, 0 makes them
    equal.
    """
    owners = find_owners(inputs, reading)
    sizes = dict.fromkeys(map(name_input, inputs), 0)
    for source in sources:
        sizes[owners[source.path]] += source.size
    if empty := [name for name, size in sizes.items() if not size]:
        raise ValueError(f"the input {', '.join(empty)} of the mixture has no text left; leave it out")
    weights = read_weights(mix, inputs) if mix else {name: size**temperature for name, size in sizes.items()}
    total, all_weights = sum(sizes.values()), sum(weights.values())
    copies = {name: weights[name] / all_weights * total / size for name, size in sizes.items()}
    for name, count in copies.items():
        if count > MOST_COPIES:
            raise ValueError(
                f"the mixture would repeat {name} {count:,.0f} times, since it is small ({sizes[name]:,} bytes of "
                f"{total:,}); {MOST_COPIES:g} times are the most: give it a smaller share"
            )
    shares = {
        name: {"bytes": sizes[name], "share": round(weights[name] / all_weights, 6), "copies": round(copies[name], 6)}
        for name in sizes
    }
    return [replace(source, copies=copies[owners[source.path]]) for source in sources], shares


def count_copies(copies: float, seed: int, source: int, place: int) -> int:
    """Return how many times a document is written.

    >>> count_copies(1.0, 0, 0, 17), {count_copies(2.5, 0, 0, place) for place in range(20)} == {2, 3}
    (1, True)
    """
    coin = hashlib.blake2b(f"copies:{seed}:{source}:{place}".encode(), digest_size=8).digest()
    return int(copies) + (int.from_bytes(coin, "little") < copies % 1 * 2**64)
