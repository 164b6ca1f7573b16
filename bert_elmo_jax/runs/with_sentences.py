"""Settings of a run on sentence vectors: the pooling of the model that it starts from, or of its config."""

import dataclasses

from ml_collections import ConfigDict

from bert_elmo_jax.data.tasks.task import Task
from bert_elmo_jax.heads.sentence_head import SentenceHead
from bert_elmo_jax.inference.run_directory import StoredModel


def prepare_sentences(
    config: ConfigDict, task: Task, stored: StoredModel | None, positions: int
) -> tuple[Task, SentenceHead]:
    """Return the task with the model's prompt and length, and the head with the pooling of model or config."""
    c = config.sentences
    if config.features.layers:
        raise ValueError(f"config.features.layers={config.features.layers!r}: sentences read the last layer; leave it")
    if task.loss == "in_batch" and config.accumulate > 1:
        raise ValueError(
            f"config.accumulate={config.accumulate} would take the negatives of each part from that part alone, "
            "which is another loss: use accumulate=1, and a smaller batch_size if memory is short"
        )
    head = stored.sentences if stored is not None else None
    if head is not None and (c.pooling or c.normalize):
        raise ValueError(
            "config.sentences.pooling and normalize are for encoders that have no pooling yet; the model given by "
            f"--init pools by {'+'.join(head.pooling)}: leave them out"
        )
    if head is None:
        if stored is not None and stored.pooling_unread and not c.pooling:
            raise ValueError(f"{stored.pooling_unread}: copy it there, or choose with config.sentences.pooling=mean")
        pooling = tuple(str(c.pooling or "mean").split("+"))
        head = SentenceHead(pooling, ("normalize",) if c.normalize else ())
    if config.transfer == "frozen" and not head.shapes():
        raise ValueError("config.transfer=frozen leaves nothing to train: the model has no dense layer")
    prompt = dict(head.prompts)[head.default_prompt] if head.default_prompt is not None else ""
    if prompt and not head.include_prompt:
        raise ValueError(f"the default prompt {prompt!r} is left out of the pooling, which training does not support")
    length = config.max_length or min(head.max_length or task.max_length, positions)
    task = dataclasses.replace(task, max_length=length, prompt=prompt, lowercase=head.lowercase)
    return task, dataclasses.replace(head, max_length=length)
