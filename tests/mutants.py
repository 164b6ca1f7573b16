r"""Seeded mutants: small faults in the package, each to be noticed by a test.

    python tests/mutants.py                                # all; a second start continues where the first one ended
    python tests/mutants.py --only=crf_partition,lstm_forget
    python tests/mutants.py --only=losses,optim            # by part of the package
    python tests/mutants.py --compare                      # the results against tests/mutants_baseline.json

A mutant is a piece of source text and its replacement. It is looked for in the whole package, so it survives a move of
its function to another file; `gone` means that the text is in no file, and `ambiguous` that it is in several places:
then give the mutant its new text. Each mutant runs, in a copy of the tree, the tests that mirror its file, its file's
doctests and its own further tests, up to the first failure; one that survives also runs the others of the folder.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = "bert_elmo_jax"
BASELINE = Path(__file__).with_name("mutants_baseline.json")
SECONDS = 900  # the longest run of the tests of one mutant; a mutant that hangs counts as killed
# Tests that compare a whole model with frozen outputs, for faults in its layers.
GOLDENS = ("tests/families/test_golden_contract.py", "tests/families/*/test_golden.py")


@dataclass(frozen=True)
class Mutant:
    """A fault: `text`, which occurs once in the package, becomes `fault`; `tests` are files or patterns of files."""

    part: str
    name: str
    text: str
    fault: str
    tests: tuple[str, ...] = ()


def mutants() -> list[Mutant]:
    """Return all mutants, the quick ones of text and data first."""
    all_mutants = []
    for part, rows in MUTANTS.items():
        for name, row in rows.items():
            marked, *tests = (row,) if isinstance(row, str) else row
            text, fault = (re.sub("«(.*?)→(.*?)»", rf"\{n}", marked, flags=re.S) for n in (1, 2))
            all_mutants.append(Mutant(part, name, text, fault, tuple(tests)))
    return all_mutants


# Each is the text with «what it says→what the fault says», or a tuple with further tests.
MUTANTS = {
    "text": {
        "word_order_by_count": "usable.sort(key=lambda pair: (-pair[1], pair[0]«→[::-1]»))",
        "word_min_count": "if pair[1] >«=→» min_count and",
        "special_words_are_looked_up": "enumerate(self.words)« if number > 2→»}",
        "compose_marks": "«    if unicodedata.combining(character):\n        return False\n→»",
        "vector_width": 'line.«rsplit→split»(b" ", width)',
        "marian_code": 're.compile(r">>.*«?→»<<", re.S)',
        "pair_types": "(self.sep_id,), (self.sep_id,), (0, «0→1»))",
    },
    "data": {
        "mask_share": "fate < masking.split[0] + masking.split[«1→2»]",
        "mask_count": "np.«rint→floor»(masking.rate * (segments > 0).sum(axis=1))",
        "unknown_piece_continues": "continues[tokenizer.unk_id] = «False→True»",
        "random_next_coin": "single | (coin < 0.«5→6»)",
        "truncate_b": "(excess - uneven«→ + 1») // 2",
        "another_document": "return other + (other >«=→» owner)",
        "backward_end_mark": "«back_y[back_y == marks.bos] = marks.eos→pass»",
        "stream_halves": "np.where(rng.random(count) < HALVES, length / «2→3», length)",
        "next_window": "place.window + «1→2» < len(self.windows(place.epoch))",
        "null_score": "null_score = «null - best.score→best.score - null»",
        "best_spans_first": 'np.argsort(«-→»sums, axis=None, kind="stable")',
        "rows_of_corpora": 'np.searchsorted(self.shares[:-1], «→1 - »draws, side="right")',
    },
    "weights": {
        "crc_rotation": "(rotated >> «17 | rotated << 15→15 | rotated << 17»)",
        "slice_numbers": "magnitude.bit_length() // «7→8» + 1",
        "varint": "(byte & «0x7F→0x3F») << shift",
        "snappy_copy": "(tag & 0xE0) << «3→2»",
        "torch_strides": "[«stride * →»width for stride in strides]",
        "turned_kernels": "tensor.shape[::-1], tensor.dtype, lambda: tensor.read().«T→reshape(tensor.shape[::-1])»",
        "infinite_weights": "if «not np.isfinite→np.isnan»(flat[path]).all():",
        "storage_reach": "sum((axis - 1) * stride for axis, stride in zip(shape, strides))« + 1→»",
    },
    "losses": {
        "crf_partition": "tags) «-→+» log_partition(scores, transitions, lengths)",
        "crf_legal": "transitions = jnp.where(jnp.asarray(legal), transitions, -«jnp.inf→1.0»)",
        "log_loss_gradient": "(share «-→+» target.astype(share.dtype))",
        "smoothing": "return «(1 - smoothing) * →»total + smoothing",
        "accuracy_ties": "((logits == chosen) & (place «>→<» target))",
        "chunk_overlap": "start + jnp.arange(size) >«=→» begin",
        "zipf": "/ math.log(vocab_size + «1→2»)\n\n\ndef draw_negatives",
        "accidental_hits": "jnp.where(targets[:, None] == negatives[None, :], «jnp.finfo(wide).min→0.0»",
        "temperature": "return temperature«**2→» * jnp.sum",
        "triplet_margin": "jax.nn.relu(near - far «+→-» margin)",
    },
    "optim": {
        "second_moment": "b2 * v + (1 - «b2→b1») * jnp.square(g)",
        "epsilon": "m / «(jnp.sqrt(v)→jnp.sqrt(v» + eps)",
        "clip": "jnp.where(norm < longest, jnp.ones_like(norm), «longest / norm→norm / longest»)",
        "noam_first_step": "after(jnp.asarray(step)« + 1→»)",
        "slanted_down": "down = up * (1 / cut« - 1→»)",
        "decayed_norms": '_)?bias", r"(.*/)?«norm→norms»/.*"',
        "depth_factor": "decay ** «(top - depth)→depth»",
        "repeated_rows": "again = ids == jnp.concatenate([jnp.full(1, «-1→0», jnp.int32), ids[:-1]])",
    },
    "nn": {
        "attention_scale": ("scores / math.sqrt(query.shape[-«1→2»])\n    sees", *GOLDENS),
        "causal_mask": ("jnp.tri(tokens, «→k=1, »dtype=bool)[None] if causal", *GOLDENS),
        "norm_gradient": "(scaled - «scaled.mean(-1, keepdims=True) - →»normal * along)",
        "rotation": ("second * cosines «+→-» first * sines", *GOLDENS),
        "lstm_forget": "d_new * before * f« * (1 - f)→»",
        "lstm_forget_bias": "[0.0, «0.0, 1→1.0, 0».0, 0.0]], np.float32)",
        "gru_state": "«(1 - z) * n + z→z * n + (1 - z)» * hidden",
        "highway": "jax.nn.relu(dense(x, **transform)) + «(1 - gate)→gate» * x",
        "negative_ids": "ids = jnp.where(ids < 0, jnp.«full_like(ids, jnp.iinfo(ids.dtype).max→zeros_like(ids»), ids)",
        "empty_rows": "«jnp.where(real.any(axis=1)[:, None], largest, 0.0)→largest»",
        "gelu_slope": "wide * jnp.exp(-0.5 * wide * wide) / math.sqrt(«2 * →»math.pi)",
        "dropout_scale": "«(x.astype(jnp.float32) / (1 - rate)→x.astype(jnp.float32»)",
    },
    "train": {
        "failed_steps": "jnp.where(fine, «0→state.failed», state.failed + 1)",
        "finite_gradient": "jnp.isfinite(loss)« & jnp.isfinite(norm)→»",
        "patience": "value >«→=» self._best",
        "newest_checkpoints": "steps[«-self.keep :→: self.keep»]",
        "stale_average": "[«-1:] !→:1] =»= saved[-1:]",
        "fixed_fields": "{k: v for k, v in values.items() if k «not →»in free}",
    },
    "runs": {
        "not_a_number_is_best": (
            'float("«-→»inf") if value is None or value != value else value',
            "tests/experiments/test_finetune.py",
            "tests/experiments/test_finetune_tagger.py",
        ),
        "sampled_coefficient": ('term«.removesuffix("_sampled")→»', "tests/families/elmo/test_loss.py"),
        "long_rate": (
            "_build_phase(o, o.«long_learning_rate→learning_rate», o.long_warmup, long, width)",
            "tests/experiments/test_pretrain.py",
        ),
        "warm_share": (
            "round(warmup * steps) if warmup <«→=» 1 else int(warmup)",
            "tests/experiments/test_pretrain.py",
        ),
        "chain_thaw": "(first * n, first * (n + «1→2»))",
        "gradient_scale": (
            "optax.chain(«optax.scale(o.gradient_scale), method→method, optax.scale(o.gradient_scale)»)",
            "tests/experiments/test_pretrain.py",
        ),
        "dropped_depth": "«optax.chain(method, optim.scale_by_depth(config.layer_decay, depth_of))→method»",
    },
}


def find(mutant: Mutant, root: Path = ROOT) -> tuple[Path | None, str]:
    """Return the file of a mutant below the root, or None and why it cannot be placed."""
    places = {
        file: count
        for file in sorted((root / PACKAGE).rglob("*.py"))
        if (count := file.read_text(encoding="utf-8").count(mutant.text))
    }
    if len(places) != 1 or sum(places.values()) != 1:
        names = ", ".join(str(file.relative_to(root)) for file in places)
        return None, f"ambiguous: {names}" if places else "gone"
    return next(iter(places)).relative_to(root), ""


def list_tests(mutant: Mutant, file: Path) -> list[list[str]]:
    """Return the tests for a mutant in a file: the quick ones, and the others of the folder, for those that survive."""
    folder = Path("tests", *file.parts[1:-1])
    mirror = [folder / f"test_{file.stem}.py"] if (ROOT / folder / f"test_{file.stem}.py").is_file() else []
    more = [path.relative_to(ROOT) for pattern in mutant.tests for path in sorted(ROOT.glob(pattern))]
    folder_tests = [path.relative_to(ROOT) for path in sorted((ROOT / folder).rglob("test_*.py"))]
    near = list(dict.fromkeys(map(str, [file, *mirror, *more])))
    return [near, [name for name in map(str, folder_tests) if name not in near]]


def copy_tree(folder: Path) -> None:
    """Copy all files that git would commit."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT, capture_output=True, check=True,
    )  # fmt: skip
    for name in filter(None, listed.stdout.decode().split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)


def run(mutant: Mutant, tree: Path) -> str:
    """Return `killed`, `survived`, `gone`, `ambiguous: FILES`, or `broken: OUTPUT` if the tests could not run."""
    file, problem = find(mutant)
    if file is None:
        return problem
    source = (ROOT / file).read_text(encoding="utf-8")
    assert source.count(mutant.text) == 1 and mutant.fault != mutant.text
    (tree / file).write_text(source.replace(mutant.text, mutant.fault), encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-n0", "-p", "no:cacheprovider", "--doctest-modules"]
    try:
        for tests in filter(None, list_tests(mutant, file)):
            done = subprocess.run(
                [*command, *tests],
                cwd=tree, env={**os.environ, "PYTHONPATH": str(tree)}, capture_output=True, text=True, timeout=SECONDS,
            )  # fmt: skip
            if done.returncode == 1:
                return "killed"
            if done.returncode not in (0, 5):  # 5: no test was collected
                return f"broken: {(done.stdout + done.stderr)[-400:]}"
    except subprocess.TimeoutExpired:
        return "killed (it hangs)"
    finally:
        (tree / file).write_text(source, encoding="utf-8")
    return "survived"


def main() -> int:
    """Run the mutants; the exit status is 1 if one survives that the baseline kills."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="names or parts, with commas")
    parser.add_argument("--results", type=Path, default=ROOT / "build" / "mutants.json")
    parser.add_argument("--again", action="store_true", help="also those that have a result")
    parser.add_argument("--compare", action="store_true", help="run nothing: compare the results with the baseline")
    parser.add_argument("--list", action="store_true", help="run nothing: show where the mutants are")
    flags = parser.parse_args()
    selection = set(filter(None, flags.only.split(",")))
    chosen = [mutant for mutant in mutants() if not selection or {mutant.part, mutant.name} & selection]
    results = json.loads(flags.results.read_text(encoding="utf-8")) if flags.results.is_file() else {}
    if flags.list:
        for mutant in chosen:
            file, problem = find(mutant)
            print(f"{mutant.part:8} {mutant.name:28} {problem or file}")
        return 0
    if not flags.compare:
        flags.results.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory() as folder:
            copy_tree(Path(folder))
            for mutant in chosen:
                if mutant.name not in results or flags.again:
                    results[mutant.name] = run(mutant, Path(folder))
                    flags.results.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
                print(f"{mutant.part:8} {mutant.name:28} {results[mutant.name]}", flush=True)
    before = json.loads(BASELINE.read_text(encoding="utf-8"))["mutants"] if BASELINE.is_file() else {}
    names = [mutant.name for mutant in chosen]
    lost = [n for n in names if before.get(n, "").startswith("killed") and not results.get(n, "").startswith("killed")]
    killed = sum(results.get(name, "").startswith("killed") for name in names)
    print(f"{killed} of {len(names)} killed; the baseline kills these, which are not killed now: {lost or 'none'}")
    return int(bool(lost))


if __name__ == "__main__":
    sys.exit(main())
