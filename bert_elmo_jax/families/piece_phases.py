"""The phases of pretraining on pieces: longer rows, more rows, a falling mask rate, next pieces before masked ones.

A phase begins where any of these changes. If only the number of rows and the masking change, it continues in the data
where the previous phase ended (see `data.pipeline.batches.Phases`).
"""

from collections.abc import Iterable

from ml_collections import ConfigDict

from bert_elmo_jax.data.rows.masking import Masking
from bert_elmo_jax.data.rows.pieces import PieceExamples
from bert_elmo_jax.families.family import Phase

RATES = 16  # of a mask rate that changes, if the config does not say


def plan_phases(config: ConfigDict) -> tuple[Phase, ...]:
    """Return the phases of a config."""
    steps = config.steps
    long = round(steps * config.long_share)
    causal = _causal_steps(config)
    few = _rows_by_step(config)
    rates = _rates_by_step(config, causal)
    cuts = sorted({0, causal, steps - long, *few, *rates} - {steps})
    phases = []
    for first, end in zip(cuts, [*cuts[1:], steps], strict=True):
        grown = first >= steps - long and long > 0
        rows = config.long_batch_size or config.batch_size if grown else few[_last(few, first)]
        rate = rates[max(_last(rates, first), causal)]
        length = config.long_length if grown else config.length
        masking = _training_masking(config, length, rate, next_pieces=first < causal)
        phases.append(Phase(end - first, rows, _examples(config, length, masking)))
    return tuple(phases)


def check_positions(phases: Iterable[Phase], max_positions: int) -> None:
    """Raise ValueError if the rows of a phase have more pieces than the model has positions."""
    for number, phase in enumerate(phases):
        if phase.examples.length > max_positions:
            name = "length" if number == 0 else "long_length"
            raise ValueError(
                f"config.{name}={phase.examples.length}, but the model has {max_positions} positions: lower it, or "
                "raise config.model.max_positions"
            )


def _last(cuts: Iterable[int], step: int) -> int:
    """Return the last cut up to a step, or 0."""
    return max((cut for cut in cuts if cut <= step), default=0)


def held_out_examples(config: ConfigDict) -> PieceExamples:
    """Return the examples of evaluations, which have the first phase's length and the last phase's mask rate."""
    m = config.masking
    rate = m.rate if m.get("end_rate") is None else m.end_rate
    return _examples(config, config.length, Masking(m.kind, rate, m.predictions, tuple(m.split)))


def _training_masking(config: ConfigDict, length: int, rate: float, next_pieces: bool) -> Masking:
    m = config.masking
    predictions = m.predictions
    if predictions is None and m.get("end_rate") is not None:
        # One width for all rates, so that the step is compiled once.
        predictions = Masking(m.kind, max(m.rate, m.end_rate)).places(length)
    return Masking("next" if next_pieces else m.kind, rate, predictions, tuple(m.split))


def _examples(config: ConfigDict, length: int, masking: Masking) -> PieceExamples:
    how = (config.short_share, config.short_per, masking, config.sequences, config.copies)
    texts = config.texts if config.objective == "replaced" else config.objective  # the latter are kinds of rows
    return PieceExamples(length, texts, *how)


def _causal_steps(config: ConfigDict) -> int:
    """Return the number of first steps that predict the next piece."""
    share = config.get("causal_share") or 0.0
    if not 0 <= share < 1:
        raise ValueError(f"config.causal_share={share}: expected a share of the steps from 0 to below 1, such as 0.25")
    if share and config.objective not in ("documents", "sentences"):
        raise ValueError(
            f"config.causal_share={share} with config.objective={config.objective!r}: where a piece sees only those "
            "before it, the first one sees no pair; use objective=documents or sentences"
        )
    if share and config.masking.kind == "next":
        raise ValueError(
            f"config.causal_share={share} with config.masking.kind='next': all steps predict the next piece already; "
            "use masking.kind=token, word or span, or leave causal_share out"
        )
    return round(config.steps * share)


def _rows_by_step(config: ConfigDict) -> dict[int, int]:
    """Return the steps at which the number of rows changes, with the number from there on."""
    warmup = config.get("batch_warmup") or {}
    rows, share = tuple(warmup.get("rows") or ()), warmup.get("share") or 0.0
    if bool(rows) != bool(share) or not 0 <= share < 1:
        raise ValueError(
            f"config.batch_warmup.rows={rows} and share={share}: give both, such as rows=(64,128) and share=0.1 "
            "(of the steps, below 1), or neither"
        )
    if any(n < 1 or n % config.accumulate for n in rows):
        raise ValueError(
            f"config.batch_warmup.rows={rows}: every number of rows is split into config.accumulate="
            f"{config.accumulate} parts, so use multiples of it"
        )
    cuts = [round(config.steps * share * k / len(rows)) for k in range(len(rows))]
    return dict(zip([*cuts, round(config.steps * share)], [*rows, config.batch_size], strict=True))


def _rates_by_step(config: ConfigDict, first: int) -> dict[int, float]:
    """Return the steps at which the mask rate changes, with the rate from there on; masking begins at step `first`."""
    m = config.masking
    if m.get("end_rate") is None:
        return {first: m.rate}
    count = RATES if m.get("rates") is None else m.rates
    if count < 2:
        raise ValueError(f"config.masking.rates={count}: expected 2 or more rates, from rate to end_rate")
    if m.kind == "next":
        raise ValueError(
            "config.masking.end_rate is for masked pieces, and masking.kind='next' masks none: leave it out"
        )
    cuts = [first + (config.steps - first) * k // count for k in range(count)]
    change = (m.end_rate - m.rate) / (count - 1)
    return {cut: m.rate + change * k if k < count - 1 else m.end_rate for k, cut in enumerate(cuts)}
