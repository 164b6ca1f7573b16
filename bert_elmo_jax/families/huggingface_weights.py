"""The weights of transformers, `model.safetensors` or `pytorch_model.bin`, for any family: read them and write them.

Kernels are [out, in], and names are PyTorch module paths, with any prefix that the saved module added.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from bert_elmo_jax.families import Family, WeightFormat, get_family
from bert_elmo_jax.families.family import TASK_HEADS
from bert_elmo_jax.families.huggingface_config import READ_FIELDS, ConfigFile
from bert_elmo_jax.families.huggingface_format import CLASSIFIERS, make_format
from bert_elmo_jax.families.init_params import param_shapes
from bert_elmo_jax.families.sentence_files import ACTIVATIONS
from bert_elmo_jax.files import read_json
from bert_elmo_jax.weights.huggingface_files import read_folder, read_model_type, write_model
from bert_elmo_jax.weights.parameter_tree import (
    Report,
    ancestors,
    check_depth,
    check_shapes,
    collect,
    count_layers,
    encoder_prefix,
    flatten,
    locate,
    part,
)
from bert_elmo_jax.weights.stored import StoredTensor
from bert_elmo_jax.weights.stored_layouts import join_parts, split_parts, turn_kernels, turn_stored

Tensor = TypeVar("Tensor")
TASKS = (*CLASSIFIERS, "span")
SIZED = ("classify", "tag")  # heads whose size depends on the task
OLD_NAMES = ((".LayerNorm.gamma", ".LayerNorm.weight"), (".LayerNorm.beta", ".LayerNorm.bias"))  # until 2019
CONSTANTS = ("embeddings.position_ids", "embeddings.token_type_ids")
# The names of a BERT and of its nearest relatives.
USUAL_TABLES = {
    "embeddings/word": "embeddings.word_embeddings",
    "embeddings/position": "embeddings.position_embeddings",
    "embeddings/type": "embeddings.token_type_embeddings",
}
USUAL_LAYER = {
    "attention/query": "attention.self.query",
    "attention/key": "attention.self.key",
    "attention/value": "attention.self.value",
    "attention/output": "attention.output.dense",
    "attention/norm": "attention.output.LayerNorm",
    "feed_forward/up": "intermediate.dense",
    "feed_forward/down": "output.dense",
    "feed_forward/norm": "output.LayerNorm",
}


@dataclass(frozen=True)
class WeightFile:
    """The names of one family's tensors: our path -> theirs.

    A module has a kernel and a bias, or is a norm with a scale and a bias: its path ends with `norm`. `encoder` and
    `layer` are modules below the prefix; paths that the configuration has no parameters for are left out. `heads` are
    the modules of each head with their full names; a head may claim a module of the encoder, such as a pooler that
    transformers stores as the first dense layer of a classifier.
    """

    family: str
    config_file: ConfigFile
    prefix: str  # "bert.": the encoder's name inside a model with heads
    encoder: Mapping[str, str]  # "embeddings/norm" -> "embeddings.LayerNorm"
    heads: Mapping[str, Mapping[str, str]]  # in the order of messages; the heads in `classifiers` share names
    tables: Mapping[str, str] = field(default_factory=lambda: USUAL_TABLES)  # without kernel or bias
    layers: str = "encoder.layer"  # the list of layers
    # configuration -> the names of the layers that have parameters, if they are not in one list
    layer_names: Callable[[Any], Sequence[str]] | None = None
    layer: Mapping[str, str] = field(default_factory=lambda: USUAL_LAYER)
    biases: Mapping[str, str] = field(default_factory=dict)  # "mlm/bias" -> "cls.predictions.bias"
    decoder: str = ""  # the module of the `mlm` head's decoder, a copy of the word embeddings
    classifiers: tuple[str, ...] = CLASSIFIERS  # heads that a file does not tell apart
    # Modules stored as one, with their rows in this order: "attn.Wqkv" -> ("query", "key", "value"), which are then
    # called "attn.Wqkv.query" and so on here.
    joined: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    by_head: bool = False  # the rows of these modules lie head by head, and for each head part by part
    renamed: Mapping[str, str] = field(default_factory=dict)  # ends of names in files -> as the modules above have them
    turned: tuple[str, ...] = ()  # modules whose kernels are stored [in, out]: "attn.c_attn"
    constants: tuple[str, ...] = CONSTANTS  # ends of the names of tensors that are no parameters
    unread: Mapping[str, str] = field(default_factory=dict)  # beginnings of further names -> why they are not read
    bare: bool = True  # a file without a head has no prefix
    # Paths of tensors that transformers reads by copies alone: an adapter of their module does nothing there.
    uncalled: tuple[str, ...] = ()

    def format(self) -> WeightFormat:
        """Return the entry in the `formats` of a family that reads and writes all its files by these names."""
        model_types = (self.config_file.model_type, *self.config_file.variants)
        form = make_format(self.read_config, self.read_weights, self.write, model_types, self.classifiers)
        return form._replace(names=lambda config: self)

    def names(self, config: Any, classifier: str | None = None) -> dict[str, str]:
        """Return their name for each path of the tree, without prefix; `classifier` selects one of `classifiers`."""
        count = count_layers(config)
        layers = self.layer_names(config) if self.layer_names else [f"{self.layers}.{i}" for i in range(count)]
        modules = {f"encoder/{ours}": theirs for ours, theirs in self.encoder.items() if ours != "pooler"}
        for i, layer in enumerate(layers):
            modules |= {f"encoder/layer_{i}/{ours}": f"{layer}.{theirs}" for ours, theirs in self.layer.items()}
        if "pooler" in self.encoder:
            modules["encoder/pooler"] = self.encoder["pooler"]
        for head in self.heads:
            if head not in self.classifiers or head == classifier:
                modules |= self.heads[head]
        table = {f"encoder/{ours}": f"{theirs}.weight" for ours, theirs in self.tables.items()}
        for ours, theirs in modules.items():
            weight = "scale" if ours.split("/")[-1] == "norm" else "kernel"
            table[f"{ours}/{weight}"] = f"{theirs}.weight"
            if ours not in TASK_HEADS or self._family.task_head(ours).bias:
                table[f"{ours}/bias"] = f"{theirs}.bias"
        return table | dict(self.biases)

    def shapes(self, config: Any, outputs: Mapping[str, int]) -> dict[str, tuple[int, ...]]:
        """Return the shape of every parameter that a model may have; `outputs` are the sizes of `SIZED` heads."""
        heads = [head for head in self._all_heads if head not in SIZED or head in outputs]
        return param_shapes(self._family, config, heads, outputs=outputs)

    def read_config(self, folder: str | Path) -> Any:
        """Return the configuration of a folder, from its `config.json`."""
        return self.config_file.read_folder(self._family.config, folder, self._title)

    def read_weights(
        self, folder: str | Path, *, config: Any = None, classifier: str | None = None
    ) -> tuple[dict[str, Any], Report]:
        """Return the parameter tree of a folder and a report on every tensor.

        `config` replaces the folder's `config.json`. `classifier` says which head the `classifier` tensors are if
        `architectures` does not. Heads without any tensor are left out of the tree.
        """
        folder = Path(folder)
        config = config or self.read_config(folder)
        extras = _read_extras(folder / "config.json")
        source, stored = read_folder(folder)
        stored = self.from_file(stored, config)
        report = Report(source, extras=extras)
        if classifier is None:
            file, named = self.config_file, extras.get("architectures", ())
            model_type = read_model_type(folder)
            candidates = [head for head in self.classifiers if file.class_of((head,), model_type) in named]
            classifier = candidates[0] if len(candidates) == 1 else None

        plain = self._name_words(_plain_names(stored, report.source))
        prefix = encoder_prefix(plain, f"{self.tables['embeddings/word']}.weight", ".", report.source)
        check_depth(count_layers(config), stored, report.source)
        table = self.names(config, classifier)
        if self._only_classifier(plain):
            gone = self.heads["mlm"].keys() - self.heads.get(classifier or "", {}).keys()
            table = {path: name for path, name in table.items() if path.rsplit("/", 1)[0] not in {*gone, "mlm"}}
        names, expected = locate(table, plain, prefix, ".", self.stored_outside(classifier))
        unread = f"the head {classifier} does not read it"
        if classifier is None:
            unread = "the architectures in config.json do not say which head the classifier is; give classifier="
            unread += "|".join(self.classifiers)
        unclear: list[str] = []
        for scope in ancestors(prefix, "."):
            self._check_decoder(scope, plain, stored, names, report)
            for name in self._unclear():
                if scope + name in plain and plain[scope + name] not in names.values():
                    report.skipped[plain[scope + name]] = unread
                    unclear.append(plain[scope + name])
        if unclear and classifier is None:
            named = ", ".join(extras.get("architectures", ())) or "no class"
            classes = " or ".join(filter(None, (file.class_of((head,), model_type) for head in self.classifiers)))
            report.lost_heads.append(
                f"{', '.join(unclear)} are left out: config.json names {named}; if they are a classifier, write "
                f"{classes} into its architectures"
            )
        for plain_name, name in plain.items():
            if plain_name.endswith(self.constants):
                report.skipped[name] = "a constant"
            for begin, why in self.unread.items():
                if plain_name.startswith(begin):
                    report.skipped[name] = why

        outputs: dict[str, int] = {}
        for head in SIZED:
            rows = [stored[names[path]].shape[:1] for path in names if path.split("/")[0] == head]
            if rows:
                outputs[head] = (*rows[0], 0)[0]
        shapes = self.shapes(config, outputs)
        names, expected = ({p: name for p, name in paths.items() if _exists(p, shapes)} for paths in (names, expected))
        transposed = {path for path in table if path.endswith("/kernel")}
        return collect(stored, names, expected, transposed, shapes, report), report

    def write(
        self,
        folder: str | Path,
        params: Mapping[str, Any],
        config: Any,
        *,
        labels: Sequence[str] | None = None,
        problem_type: str | None = None,
        activation: str = "",
    ) -> None:
        """Write a folder that transformers can load: weights and `config.json`.

        `config.json` names one architecture for each task head of the tree, or else the pretraining architecture;
        `labels` name the classes, and `activation` is a reranker's. Raise if a head lacks its pooler, or if tensors are
        missing, unknown or mis-shaped.
        """
        config.to_huggingface()  # raises first on fields that the file cannot have
        heads, tensors, classes = self._to_theirs(params, config)
        content = self._config_json(heads, config, classes, labels, problem_type)
        if activation:  # where sentence-transformers looks for it
            content["sentence_transformers"] = {"activation_fn": ACTIVATIONS[activation]}
        write_model(folder, {"config.json": content, **self.more_files(config)}, tensors)

    def from_file(self, stored: dict[str, StoredTensor], config: Any) -> dict[str, StoredTensor]:
        """Return the tensors of a file as the names of this record expect them."""
        stored = _rename(turn_stored(stored, self.turned), self.renamed)
        return split_parts(stored, self.joined, config.num_heads if self.by_head else 1)

    def to_file(self, tensors: dict[str, np.ndarray], config: Any) -> dict[str, np.ndarray]:
        """Return tensors as a file has them."""
        tensors = _rename(tensors, {ours: theirs for theirs, ours in self.renamed.items()})
        return turn_kernels(join_parts(tensors, self.joined, config.num_heads if self.by_head else 1), self.turned)

    def more_files(self, config: Any) -> dict[str, Any]:
        """Return the content of further JSON files of a folder."""
        return {}

    @property
    def _family(self) -> Family:
        return get_family(self.family)

    @property
    def _title(self) -> str:
        return self.config_file.called.split(" ", 1)[1]

    @property
    def _all_heads(self) -> tuple[str, ...]:
        return (*self._family.heads, *TASKS)

    def stored_outside(self, classifier: str | None) -> set[str]:
        """Return the paths of the encoder that are stored with a head, such as the classifier."""
        heads = [modules for head, modules in self.heads.items() if head not in self.classifiers or head == classifier]
        modules = [path for of_head in heads for path in of_head if path.startswith("encoder/")]
        return {f"{path}/{kind}" for path in modules for kind in ("kernel", "scale", "bias")}

    def _unclear(self) -> list[str]:
        """Return the names of the tensors that belong to one of `classifiers`."""
        modules = dict.fromkeys(name for head in self.classifiers for name in self.heads.get(head, {}).values())
        return [f"{module}.{kind}" for module in modules for kind in ("weight", "bias")]

    def _name_words(self, plain: dict[str, str]) -> dict[str, str]:
        """Call the decoder the word embeddings if the file has only it: of two tied tensors, one is saved."""
        word, decoder = f"{self.tables['embeddings/word']}.weight", f"{self.decoder}.weight"
        if decoder not in plain or any(name == word or name.endswith(f".{word}") for name in plain):
            return plain
        return {self.prefix + word if name == decoder else name: theirs for name, theirs in plain.items()}

    def _only_classifier(self, plain: Mapping[str, str]) -> bool:
        """Return True for a file with a classifier and no decoder; its modules may have names of `mlm`'s modules."""
        shared = set(self.heads.get("mlm", {}).values()).intersection(
            name.rsplit(".", 1)[0] for name in self._unclear()
        )
        classifier_names = [name for name in self._unclear() if name.rsplit(".", 1)[0] not in shared]
        decoders = (f"{self.decoder}.weight", f"{self.decoder}.bias")
        return (
            bool(shared)
            and any(name in plain for name in classifier_names)
            and not any(name in plain for name in decoders)
        )

    def _check_decoder(
        self,
        scope: str,
        plain: Mapping[str, str],
        stored: Mapping[str, StoredTensor],
        names: dict[str, str],
        report: Report,
    ) -> None:
        """Leave out the masked-language head if the stored decoder differs from the word embeddings: ours are tied."""
        weight, bias = plain.get(f"{scope}{self.decoder}.weight"), plain.get(f"{scope}{self.decoder}.bias")
        if bias and "mlm/bias" not in names:
            names["mlm/bias"] = bias  # saved only under the decoder's name
        if bias == names.get("mlm/bias"):
            bias = None
        different = [
            name
            for name, twin in ((weight, names.get("encoder/embeddings/word")), (bias, names.get("mlm/bias")))
            if name and twin and not stored[name].equals(stored[twin])
        ]
        copies = [name for name in (weight, bias) if name and name not in different]
        report.skipped |= dict.fromkeys(copies, "a copy of its tied tensor")
        if different:
            left = [path for path in names if path.startswith("mlm/")]
            reason = f"the head is left out: {' and '.join(different)} differs from its tied tensor"
            report.skipped |= {names.pop(path): reason for path in left} | dict.fromkeys(different, reason)
            report.lost_heads.append(
                f"without its head of masked words, as {' and '.join(different)} differs from its tied tensor"
            )

    def _to_theirs(self, params: Mapping[str, Any], config: Any) -> tuple[list[str], dict[str, np.ndarray], int]:
        """Return the heads of a tree, its tensors under their names, and its number of classes."""
        flat = {path: np.asarray(value, np.float32) for path, value in flatten(params).items()}
        heads = [head for head in self._all_heads if head in params]
        classifiers = [head for head in heads if head in self.classifiers]
        if len(classifiers) > 1:
            raise ValueError(
                f"{' and '.join(classifiers)} would have the same names in one file: write each to its own folder"
            )
        outputs = {head: flat[f"{head}/kernel"].shape[-1] for head in SIZED if f"{head}/kernel" in flat}
        shapes = self.shapes(config, outputs)
        all_heads = {**self._family.heads, **TASK_HEADS, **self._family.task_heads}
        pooled = [name for name, head in all_heads.items() if head.pooled]
        has_pooler, needed = (any(path.startswith("encoder/pooler/") for path in paths) for paths in (flat, shapes))
        lacking = [head for head in heads if head in pooled and needed and not has_pooler]
        if lacking:
            raise ValueError(f"{', '.join(lacking)} cannot be written without its pooler: encoder/pooler is missing")
        classifier = classifiers[0] if classifiers else None
        names, outside = self.names(config, classifier), self.stored_outside(classifier)
        table = {path: name for path, name in names.items() if _exists(path, shapes)}
        if has_pooler and not any(path.startswith("encoder/pooler/") for path in table):
            raise ValueError(
                f"encoder/pooler has no place in a {self._title} without a classifier, whose first layer it is there: "
                "leave it out"
            )
        present = {part(path) for path in flat} | {"encoder"}
        flat_shapes = {path: value.shape for path, value in flat.items()}
        # A classifier without a bias has no known width: only its missing bias is reported.
        expected = {path: shapes.get(path, flat_shapes.get(path, ())) for path in table if part(path) in present}
        check_shapes(flat_shapes, expected, "cannot write")
        prefix = self.prefix if heads or not self.bare else ""
        tensors: dict[str, np.ndarray] = {}
        for path, value in flat.items():
            name = (prefix if path.startswith("encoder/") and path not in outside else "") + table[path]
            value = np.ascontiguousarray(value.T if path.endswith("/kernel") else value)
            if name in tensors and not np.array_equal(tensors[name], value):
                raise ValueError(
                    f"{path} differs from another part that would have the same name in the file, {name}: write only "
                    "one of them"
                )
            tensors[name] = value
        return heads, self.to_file(tensors, config), sum(outputs.values())

    def _config_json(
        self, heads: Sequence[str], config: Any, classes: int, labels: Sequence[str] | None, problem_type: str | None
    ) -> dict[str, Any]:
        tasks = [head for head in heads if head in TASKS]
        content: dict[str, Any] = config.to_huggingface(tuple(head for head in heads if head not in TASKS))
        if tasks:
            content["architectures"] = [self.config_file.class_of((head,), content["model_type"]) for head in tasks]
        content["dtype"] = "float32"
        if labels is not None and len(labels) != classes:
            raise ValueError(f"{len(labels)} labels were given for {classes} classes: {', '.join(map(str, labels))}")
        if labels is not None and len(set(labels)) < len(labels):
            raise ValueError(f"labels must be different: {', '.join(map(str, labels))}")
        if classes:
            label_of = dict(enumerate(labels or [f"LABEL_{number}" for number in range(classes)]))
            content |= {"id2label": label_of, "label2id": {label: number for number, label in label_of.items()}}
        if problem_type is not None:
            content["problem_type"] = problem_type
        return content


def _exists(path: str, shapes: Mapping[str, Any]) -> bool:
    """Return False for a parameter that the configuration has not, outside the task heads."""
    return path in shapes or path.split("/")[0] in TASKS


def _rename(tensors: Mapping[str, Tensor], renamed: Mapping[str, str]) -> dict[str, Tensor]:
    """Return tensors with other ends of their names."""

    def rename(name: str) -> str:
        end = next((end for end in renamed if f".{name}".endswith(f".{end}")), None)
        return name if end is None else name.removesuffix(end) + renamed[end]

    return {rename(name): tensor for name, tensor in tensors.items()}


def _plain_names(stored: Mapping[str, StoredTensor], source: str) -> dict[str, str]:
    """Map current names to the names in the file."""
    plain: dict[str, str] = {}
    for name in stored:
        current = name
        for old, new in OLD_NAMES:
            current = current.removesuffix(old) + new if current.endswith(old) else current
        if current in plain:
            raise ValueError(f"{source} has the same tensor under an old and a new name: {plain[current]}, {name}")
        plain[current] = name
    return plain


def _read_extras(path: Path) -> dict[str, Any]:
    """Return the task fields of `config.json`: architectures, problem_type, labels, num_labels."""
    config = read_json(path, default={}, fields=READ_FIELDS)
    extras = {key: config[key] for key in ("architectures", "problem_type") if config.get(key)}
    saved = config.get("sentence_transformers")
    activation = saved.get("activation_fn") if isinstance(saved, Mapping) else None
    if activation := activation or config.get("sbert_ce_default_activation_function"):
        extras["activation"] = activation
    labels: Any = config.get("id2label")
    if labels:
        try:
            extras["labels"] = [str(labels[str(number)]) for number in range(len(labels))]
        except (KeyError, TypeError):
            raise ValueError(f"{path}: id2label must name the labels 0 to {len(labels) - 1}, it is {labels}") from None
    if config.get("num_labels") or labels:
        extras["num_labels"] = config.get("num_labels") or len(labels)
    return extras
