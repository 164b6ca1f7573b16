"""Adapters as peft stores them: `adapter_config.json` and `adapter_model.safetensors`, by a family's names of tensors.

The matrix `lora_A` is [rank, in] and `lora_B` [out, rank], also for the modules of a GPT-2 whose kernels are [in, out];
for a table they are `lora_embedding_A`, [rank, entries], and `lora_embedding_B`.
The format: https://huggingface.co/docs/peft/developer_guides/checkpoint.
"""

import json
import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bert_elmo_jax.families.family import Family
from bert_elmo_jax.families.huggingface_weights import SIZED
from bert_elmo_jax.files import hash_file, read_json, write_sums
from bert_elmo_jax.json_values import NUMBER, TEXT, TRUTH, Fields, object_of, whole_number
from bert_elmo_jax.optim.adapters import Merge, list_adapters
from bert_elmo_jax.weights.huggingface_files import read_safetensors, write_safetensors
from bert_elmo_jax.weights.parameter_tree import flatten, nest
from bert_elmo_jax.weights.stored import StoredTensor
from bert_elmo_jax.weights.stored_layouts import split_parts, turn_stored

CONFIG, WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
SCOPE = "base_model.model."
HEADS = {"SEQ_CLS": "classify", "TOKEN_CLS": "tag", "QUESTION_ANS": "span"}  # by peft's task_type
# The values that a field may have; another value changes the mathematics in a way that is not computed here.
ONLY: Mapping[str, tuple[Any, ...]] = {
    "use_dora": (False,),
    "bias": ("none",),
    "lora_bias": (False,),
    "layer_replication": (),
    "target_parameters": (),
    "trainable_token_indices": (),
    "alora_invocation_tokens": (),
    "use_qalora": (False,),
    "use_bdlora": (False,),
    "megatron_config": (),
    **dict.fromkeys((f"{name}_config" for name in ("arrow", "corda", "kasa", "lora_ga", "monteclora", "velora")), ()),
}
# These ways to begin change the weights below the adapter, which its file does not hold.
CHANGED_BASE = ("pissa", "olora", "corda", "loftq", "lora_ga")
KINDS: Fields = {  # of the fields that are read
    "r": whole_number(1, 10**5),
    "lora_alpha": NUMBER,
    "use_rslora": TRUTH,
    **dict.fromkeys(("peft_type", "task_type", "base_model_name_or_path"), TEXT),
    "alpha_pattern": object_of(NUMBER),
    "rank_pattern": object_of(whole_number(1, 10**5)),
}
REPEATED_GROUP = re.compile(r"\)\s*[*+?{]")  # of a regular expression that can take time without bound
REPEATED = re.compile(r"[*+?{]")  # what makes an expression try many ways
MOST_PATTERNS, MOST_REPEATED = 2000, 20  # in one file; of the second, each repeats at most two parts
PAIR = {"lora_A": "down", "lora_B": "up"}
TABLE_PAIR = {"lora_embedding_A": "down", "lora_embedding_B": "up"}  # of a table of embeddings
PATTERNS = ("alpha_pattern", "rank_pattern")  # fields with values for single modules
WORDS = "encoder/embeddings/word"  # the table that the decoder of a pretraining head reads, too


class PeftAdapter(NamedTuple):
    """An adapter that was read: its matrices, their scale, and the parts of the model that it replaces."""

    adapters: dict[str, Any]
    merge: Merge
    parts: dict[str, Any]
    base: str  # the name of the model that it was trained on


class Names(NamedTuple):
    """The names of a family's modules in files of transformers, by our paths, and the prefix of the encoder's."""

    tensors: Mapping[str, str]  # "encoder/embeddings/norm/scale" -> "embeddings.LayerNorm.weight"
    modules: Mapping[str, str]  # "encoder/layer_0/attention/query" -> "encoder.layer.0.attention.self.query"
    tables: frozenset[str]  # paths of the modules that are tables of embeddings, such as "encoder/embeddings/word"
    prefix: str
    outside: frozenset[str]  # paths of the encoder whose names have no prefix
    joined: Mapping[str, Sequence[str]]
    turned: Sequence[str]
    bare: bool
    heads: int  # the rows of a joined module lie part by part for each of so many attention heads
    # Paths of the modules that peft saves with a head: all below each module whose name ends in `classifier`.
    with_head: frozenset[str]

    def find(self, module: str) -> list[str]:
        """Return our paths of a module of a file; two if a pretraining head and the encoder share it."""
        return [path for path, name in self.modules.items() if module in (name, self.prefix + name)]

    def find_tensor(self, tensor: str) -> list[str]:
        """Return our paths of a tensor of a file, as `find` does."""
        return [path for path, name in self.tensors.items() if tensor in (name, self.prefix + name)]

    def is_inside(self, place: str) -> bool:
        """Return True for a path whose module has the prefix in a model with a head."""
        return place.startswith("encoder/") and place not in self.outside

    def stored_in(self, module: str) -> str:
        """Return the module of a file that holds a module: itself, or the one that it is a part of."""
        above, _, part = module.rpartition(".")
        joined = any(f".{above}".endswith(f".{end}") and part in parts for end, parts in self.joined.items())
        return above if joined else module

    def parts_of(self, module: str) -> Sequence[str]:
        """Return the names of the modules that a file stores as one, or the module itself."""
        parts = next((parts for end, parts in self.joined.items() if f".{module}".endswith(f".{end}")), ())
        return [f"{module}.{part}" for part in parts] or [module]

    def heads_of(self, parts: Sequence[str]) -> int:
        """Return the number of heads by which the rows of a module with these parts lie."""
        return self.heads if len(parts) > 1 else 1


def read_names(family: Family, config: Any, head: str | None, heads: Collection[str] | None = None) -> Names:
    """Return the names of a family's modules; `head` is the one that a classifier is, `heads` are the model's."""
    form = family.formats.get("huggingface")
    if form is None or form.names is None:
        raise ValueError(f"{family.called} has no files of transformers, so peft has no names for its layers")
    file = form.names(config)
    table = file.names(config, head if head in file.classifiers else None)
    # A classifier has no pretraining head, whose modules a file may call as the classifier's.
    absent = {name for name in family.heads if head or (heads is not None and name not in heads)}
    table = {path: name for path, name in table.items()
             if path.split("/")[0] not in absent and path not in file.biases and path not in file.uncalled}  # fmt: skip
    modules = {path.removesuffix("/kernel"): name.removesuffix(".weight")
               for path, name in table.items() if path.endswith("/kernel")}  # fmt: skip
    tables = {path: name.removesuffix(".weight") for path, name in table.items()
              if path.startswith("encoder/embeddings/") and path.count("/") == 2}  # fmt: skip
    outside = {path.rpartition("/")[0] for path in file.stored_outside(head)}
    modules |= tables
    attention_heads = config.num_heads if file.by_head else 1
    head_modules = file.heads.get(head or "", {})
    with_head = {path for path, name in head_modules.items() if name.partition(".")[0].endswith("classifier")}
    return Names(
        table, modules, frozenset(tables), file.prefix, frozenset(outside), file.joined, file.turned, file.bare,
        attention_heads, frozenset(with_head),
    )  # fmt: skip


def find_tied_head(family: Family, config: Any, params: Mapping[str, Any]) -> str | None:
    """Return the pretraining head of a model that has the table of words as its decoder, or None."""
    form = family.formats.get("huggingface")
    if form is None or form.names is None or not form.names(config).decoder:
        return None
    return next((name for name, head in family.heads.items() if head.tied or (name == "mlm" and name in params)), None)


def read_adapter(folder: Path, family: Family, config: Any, heads: Collection[str] | None = None) -> PeftAdapter:
    """Return the adapter of a folder for a model of this configuration; raise if it is of another kind or model.

    `heads` are those of the model; None stands for all that the family has.
    """
    path = folder / CONFIG
    if not path.is_file():
        raise FileNotFoundError(f"{folder} holds no adapter: there is no {CONFIG}")
    fields = read_json(path, fields=KINDS)
    check_fields(fields, str(path))
    weights = folder / WEIGHTS
    if not weights.is_file():
        raise FileNotFoundError(f"{folder} has no {WEIGHTS}; an adapter_model.bin must first be saved as safetensors")
    alpha = fields.get("lora_alpha")
    alpha = 8.0 if alpha is None else float(alpha)  # as in peft
    merge = Merge(int(fields["r"]), alpha, bool(fields.get("use_rslora")), any_rank=True)
    head = HEADS.get(fields.get("task_type") or "")
    names = read_names(family, config, head, heads)
    pairs: dict[str, dict[str, np.ndarray]] = {}
    saved: dict[str, StoredTensor] = {}
    for name, tensor in read_safetensors(weights).items():
        module, kind = split_name(name, str(weights))
        if "float" not in tensor.dtype:
            raise ValueError(f"{weights}: {name} has numbers of the type {tensor.dtype}; expected floats")
        if side := (PAIR | TABLE_PAIR).get(kind):
            if side in pairs.get(module, ()):
                raise ValueError(f"{weights} has {kind} of {module} twice, under two names: copy it again")
            places = names.find(module)
            if not places and kind in TABLE_PAIR:
                raise ValueError(
                    f"{weights} has an adapter for {module}, and the model has no such table, or transformers reads "
                    "only copies of it: choose a model that fits, or train without this adapter"
                )
            if (kind in TABLE_PAIR) != (not names.tables.isdisjoint(places)):
                raise ValueError(f"{weights} has {kind} for {module}, which is another kind of layer: copy it again")
            pairs.setdefault(module, {})[side] = np.ascontiguousarray(np.asarray(tensor.read(), np.float32).T)
            continue
        if f"{module}.{kind}" in saved:
            raise ValueError(f"{weights} has the {kind} of {module} twice, under two names: copy it again")
        saved[f"{module}.{kind}"] = tensor
    parts = read_parts(names, saved, str(weights))
    check_parts(names, parts, family, config, str(weights))
    flat: dict[str, np.ndarray] = {}
    alphas, ranks = ({re.compile(rf"(.*\.)?({pattern})$"): value for pattern, value in (fields.get(name) or {}).items()}
                     for name in PATTERNS)  # fmt: skip
    for module, pair in pairs.items():
        if set(pair) != set(PAIR.values()):
            raise ValueError(f"{weights} has only one of the two matrices of {module}: copy it again")
        down, up = pair["down"], pair["up"]
        if down.ndim != 2 or up.ndim != 2 or not down.shape[1] == up.shape[0] > 0:
            shapes = f"{list(down.T.shape)} and {list(up.T.shape)}"
            raise ValueError(f"{weights}: the matrices of {module} are {shapes}; expected [rank, in] and [out, rank]")
        rank = find_value(ranks, module, merge.rank)
        if down.shape[1] != rank:
            raise ValueError(
                f"{weights}: the matrices of {module} have rank {down.shape[1]}, and {CONFIG} says {rank}: they do not "
                "belong together"
            )
        factor = Merge(int(rank), float(find_value(alphas, module, merge.alpha)), merge.rslora).scale / merge.scale
        for place, matrices in read_pair(names, module, pair, str(weights)).items():
            flat |= {f"{place}/down": matrices["down"], f"{place}/up": matrices["up"] * np.float32(factor)}
    if not flat:
        raise ValueError(f"{weights} holds no matrices of LoRA (….lora_A.weight)")
    contiguous = {path: np.ascontiguousarray(value) for path, value in parts.items()}
    return PeftAdapter(nest(flat), merge, nest(contiguous), str(fields.get("base_model_name_or_path") or ""))


def check_fields(fields: Mapping[str, Any], source: str) -> None:
    """Raise ValueError for an adapter that is not plain LoRA.

    >>> check_fields({"peft_type": "LORA", "r": 8, "use_dora": True}, "adapter_config.json")
    Traceback (most recent call last):
    ...
    ValueError: adapter_config.json: use_dora=True is not supported: merge the adapter with peft, and load the result
    """
    kind = fields.get("peft_type")
    advice = "is not supported: merge the adapter with peft, and load the result"
    if kind != "LORA":
        raise ValueError(f"{source}: peft_type={kind!r} {advice}")
    for name, allowed in ONLY.items():
        if (value := fields.get(name)) not in (None, *allowed) and value != [] and value != {}:
            raise ValueError(f"{source}: {name}={value!r} {advice}")
    begin = fields.get("init_lora_weights")
    if isinstance(begin, str) and begin.lower().startswith(CHANGED_BASE):
        raise ValueError(f"{source}: init_lora_weights={begin!r} changed the weights below the adapter, so it {advice}")
    if fields.get("lora_alpha") == 0:
        raise ValueError(f"{source}: lora_alpha is 0, so the adapter would change nothing: copy it again")
    if type(fields.get("r")) is not int or fields["r"] < 1:
        raise ValueError(f"{source}: r={fields.get('r')!r}; expected a whole number from 1: copy it again")
    for name in PATTERNS:
        _check_patterns(fields.get(name) or {}, f"{source}: {name}")


def _check_patterns(patterns: Mapping[str, Any], where: str) -> None:
    """Raise for patterns that are none, that have no value, or that could take time without bound."""
    if len(patterns) > MOST_PATTERNS or sum(bool(REPEATED.search(pattern)) for pattern in patterns) > MOST_REPEATED:
        raise ValueError(
            f"{where} has {len(patterns):,} patterns; at most {MOST_PATTERNS:,} are supported, and {MOST_REPEATED} of "
            "them with *, +, ? or {"
        )
    for pattern, value in patterns.items():
        try:
            re.compile(rf"(.*\.)?({pattern})$")
        except (re.error, RecursionError, OverflowError) as error:
            raise ValueError(f"{where} has {pattern!r:.60}, which is no pattern ({error})") from None
        if REPEATED_GROUP.search(pattern) or len(REPEATED.findall(pattern)) > 2 or len(pattern) > 300:
            raise ValueError(f"{where} has {pattern!r:.60}; only names and simple patterns are supported")
        if value is None:
            raise ValueError(f"{where} has no value for {pattern!r:.60}: copy the file again")


def split_name(name: str, source: str) -> tuple[str, str]:
    """Return the module of a tensor and its kind: lora_A, lora_B, their counterparts for a table, weight or bias.

    >>> split_name("base_model.model.bert.pooler.dense.lora_A.weight", "adapter_model.safetensors")
    ('bert.pooler.dense', 'lora_A')
    """
    plain = name.removeprefix(SCOPE).replace(".default", "").replace("modules_to_save.", "").replace("base_layer.", "")
    module, _, kind = plain.rpartition(".")
    if kind in TABLE_PAIR:
        return module, kind
    above, _, matrix = module.rpartition(".")
    if kind == "weight" and matrix in PAIR:
        return above, matrix
    if kind not in ("weight", "bias") or "lora_" in plain:
        raise ValueError(
            f"{source} holds {name}, which is not supported: merge the adapter with peft, and load the result"
        )
    return module, kind


def read_parts(names: Names, saved: Mapping[str, StoredTensor], source: str) -> dict[str, np.ndarray]:
    """Return the tensors of modules that were trained in full, by our paths.

    The table below an adapter, `base_layer`, is one of them: peft stores it, too, if it is called `embed_tokens`.
    """
    parts: dict[str, np.ndarray] = {}
    for tensor, stored in split_parts(turn_stored(saved, names.turned), names.joined, names.heads).items():
        places = names.find_tensor(tensor)
        if not places:
            raise ValueError(
                f"{source} holds {tensor}, for which the model has no place: choose the model that it is for, or merge "
                "the adapter with peft, and load the result"
            )
        values = np.asarray(stored.read(), np.float32)
        for place in places:
            if place in parts:
                raise ValueError(f"{source} has {tensor} twice, under two names: copy it again")
            parts[place] = values.T if place.endswith("/kernel") else values
    return parts


def check_parts(names: Names, parts: Mapping[str, np.ndarray], family: Family, config: Any, source: str) -> None:
    """Raise for a saved module that is not complete, or that does not fit a model of this configuration."""
    if not parts:
        return
    sizes = {path.partition("/")[0]: value.shape[-1] for path, value in parts.items() if value.ndim}
    name_files = family.formats["huggingface"].names
    assert name_files is not None  # `read_names` has refused the other families
    shapes = name_files(config).shapes(config, {head: size for head, size in sizes.items() if head in SIZED})
    for path, value in parts.items():
        above, _, kind = path.rpartition("/")
        kind = kind if kind in ("kernel", "scale", "bias") else "table"
        module = names.modules.get(above) or names.tensors[path].rpartition(".")[0]
        if path not in shapes:
            raise ValueError(f"{source}: {module} has a {kind}, for which {family.called} has no place")
        needed = [other for other in ("kernel", "scale", "bias") if f"{above}/{other}" in shapes]
        if lacking := [other for other in needed if f"{above}/{other}" not in parts]:
            raise ValueError(f"{source}: {module} has no {lacking[0]}; {' and '.join(needed)} are needed")
        if value.shape != shapes[path]:
            actual, expected = (" x ".join(map(str, shape)) for shape in (value.shape, shapes[path]))
            resized = ", or of one whose vocabulary was resized" if path == WORDS else ""
            raise ValueError(
                f"{source}: the {kind} of {module} is {actual}, and the model's is {expected}: it is of another model"
                f"{resized}"
            )


def read_pair(
    names: Names, module: str, pair: Mapping[str, np.ndarray], source: str
) -> dict[str, dict[str, np.ndarray]]:
    """Return the matrices of a module by our path, several if the file stores several of our layers as one."""
    parts = names.parts_of(module)
    heads, (rank, rows) = names.heads_of(parts), pair["up"].shape
    if rows % (heads * len(parts)):
        raise ValueError(f"{source}: lora_B of {module} has {rows} rows, which {heads * len(parts)} cannot share")
    by_head = pair["up"].reshape(rank, heads, len(parts), -1)
    matrices: dict[str, dict[str, np.ndarray]] = {}
    for number, part in enumerate(parts):
        places = names.find(part)
        if not places:
            raise ValueError(f"{source} has an adapter for {module}, and the model has no such layer")
        up = by_head[:, :, number].reshape(rank, -1)
        matrices |= {place: {"down": pair["down"], "up": up} for place in places}
    return matrices


def find_value(patterns: Mapping[re.Pattern[str], int | float], module: str, usual: int | float) -> int | float:
    """Return the value of the first pattern that a module's name has; `usual` without one.

    >>> find_value({re.compile("(.*[.])?(layer.1.query)$"): 4}, "bert.layer.1.query", 8)
    4
    """
    return next((value for pattern, value in patterns.items() if pattern.match(module)), usual)


def write_adapter(
    folder: Path,
    family: Family,
    config: Any,
    adapters: Mapping[str, Any],
    merge: Merge,
    parts: Mapping[str, Any],
    params: Mapping[str, Any],
    *,
    base: str = "",
) -> None:
    """Write adapters, and parts that were trained in full, as peft does.

    `params` are those of the model with both added: peft stores all layers of a classifier with two in full. `base`
    names the model below.
    """
    head = next((name for name in HEADS.values() if name in parts), None)
    names = read_names(family, config, head)
    with_adapters = dict(list_adapters(adapters))
    places = [*with_adapters, *(path.rpartition("/")[0] for path in flatten(parts))]
    has_prefix = head or not names.bare or any(not names.is_inside(place) for place in places)
    scope = SCOPE + (names.prefix if has_prefix else "")
    modules: dict[str, dict[str, Mapping[str, np.ndarray]]] = {}
    scopes: dict[str, str] = {}
    for path, pair in with_adapters.items():
        if path not in names.modules:
            raise ValueError(f"the layer {path} has no name in files of transformers, so peft could not find it")
        if path in names.with_head:
            continue
        name, matrices = names.modules[path], {kind: np.asarray(x, np.float32) for kind, x in pair.items()}
        module = names.stored_in(name)
        twin = modules.setdefault(module, {}).setdefault(name, matrices)
        if any(not np.array_equal(twin[kind], matrices[kind]) for kind in matrices):
            raise ValueError(f"two layers have the name {name} in the file, with other adapters: leave {path} out")
        scopes[module] = scope if names.is_inside(path) else SCOPE
    tensors: dict[str, np.ndarray] = {}
    ranks: dict[str, int] = {}
    for module, by_name in modules.items():
        stored_parts = names.parts_of(module)
        down, up = join_pairs([by_name.get(part) for part in stored_parts], names.heads_of(stored_parts))
        of_table = not names.tables.isdisjoint(names.find(module))
        for kind, matrix in zip(TABLE_PAIR if of_table else ("lora_A.weight", "lora_B.weight"), (down, up)):
            tensors[f"{scopes[module]}{module}.{kind}"] = np.ascontiguousarray(matrix.T)
        ranks[module] = down.shape[1]
    if not tensors:
        raise ValueError("all adapters are of the classifier, which peft stores in full: add one of another layer")
    with_head = {path: x for path, x in flatten(params).items() if path.rpartition("/")[0] in names.with_head}
    if lacking := [place for place in names.with_head if f"{place}/kernel" not in with_head]:
        raise ValueError(f"peft stores the head {head} with {lacking[0]}, which is missing: give it as a part, too")
    saved = []
    saved_parts = flatten(parts) | with_head
    for path, value in saved_parts.items():
        place, _, kind = path.rpartition("/")
        name = names.modules.get(place, "")
        if not name or names.stored_in(name) != name or any(f".{name}".endswith(f".{end}") for end in names.turned):
            raise ValueError(f"the part {place} has no name in files of transformers, so peft could not find it")
        module = (scope if names.is_inside(place) else SCOPE) + name
        saved.append(name.partition(".")[0] if place in names.with_head else name)
        array = np.asarray(value, np.float32)
        weight = kind == "kernel"
        tensors[f"{module}.{'weight' if weight else kind}"] = np.ascontiguousarray(array.T if weight else array)
    check_parts(names, saved_parts, family, config, "parts")
    other = {module: rank for module, rank in ranks.items() if rank != merge.rank}
    usual_task = "CAUSAL_LM" if family.causal(config) and not names.bare else None
    fields = {
        "peft_type": "LORA",
        "task_type": next((task for task, name in HEADS.items() if name == head), usual_task),
        "base_model_name_or_path": base or None,
        "r": merge.rank,
        "lora_alpha": merge.alpha,
        "lora_dropout": 0.0,
        "use_rslora": merge.rslora,
        "target_modules": sorted(modules),
        "rank_pattern": other,
        "alpha_pattern": {module: alpha_for(merge, rank) for module, rank in other.items()},
        "modules_to_save": sorted(set(saved)) or None,
        "fan_in_fan_out": any(f".{module}".endswith(f".{end}") for module in modules for end in names.turned),
        "bias": "none",
        "use_dora": False,
        "init_lora_weights": True,
        "inference_mode": True,
    }
    folder.mkdir(parents=True, exist_ok=True)
    write_safetensors(folder / WEIGHTS, tensors, {"format": "pt"})
    text = json.dumps(fields, indent=2, ensure_ascii=False) + "\n"
    (folder / CONFIG).write_text(text, encoding="utf-8", newline="\n")
    write_sums(folder, {name: hash_file(folder / name) for name in (CONFIG, WEIGHTS)})


def alpha_for(merge: Merge, rank: int) -> float:
    """Return the alpha that gives matrices of another rank the same factor.

    >>> alpha_for(Merge(rank=4, alpha=8.0), 12)
    24.0
    """
    return merge.scale * (rank**0.5 if merge.rslora else rank)


def join_pairs(pairs: Sequence[Mapping[str, np.ndarray] | None], heads: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Return the matrices of one module that several layers share; None is a layer without an adapter.

    The columns lie layer by layer, or for each of `heads` attention heads layer by layer.

    >>> one = {"down": np.ones((3, 2)), "up": np.ones((2, 4))}
    >>> [matrix.shape for matrix in join_pairs([one, None])], [matrix.shape for matrix in join_pairs([one, one])]
    ([(3, 2), (2, 8)], [(3, 2), (2, 8)])
    """
    there = [pair for pair in pairs if pair is not None]
    first = there[0]
    if len(there) == len(pairs) and all(np.array_equal(pair["down"], first["down"]) for pair in there):
        return first["down"], _join_columns([pair["up"] for pair in there], heads)
    rows: list[np.ndarray] = []
    for number, pair in enumerate(pairs):
        if pair is not None:
            ups = [np.zeros(pair["up"].shape, np.float32)] * len(pairs)
            ups[number] = pair["up"]
            rows.append(_join_columns(ups, heads))
    return np.concatenate([pair["down"] for pair in there], axis=1), np.concatenate(rows)


def _join_columns(ups: Sequence[np.ndarray], heads: int) -> np.ndarray:
    rank = len(ups[0])
    return np.stack([up.reshape(rank, heads, -1) for up in ups], axis=2).reshape(rank, -1)
