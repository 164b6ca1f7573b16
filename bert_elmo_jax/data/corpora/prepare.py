"""Prepare a store of shards from raw text; an interrupted preparation resumes from its finished steps.

The steps are: plan · unpack files · leave documents out (on request) · tokenizer · shards (for words: count, merge,
renumber) · manifest. A step is finished when its result exists under its final name; incomplete results have temporary
names.
"""

import contextlib
import functools
import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from bert_elmo_jax.data.corpora.cleaning.clean_texts import Cleaning, clean, name_places
from bert_elmo_jax.data.corpora.cleaning.filters import read_limits
from bert_elmo_jax.data.corpora.cleaning.mixtures import check_mixture, find_owners, mix_sources
from bert_elmo_jax.data.corpora.cleaning.near_duplicates import SHINGLE_BITS
from bert_elmo_jax.data.corpora.corpus import iterate_sample
from bert_elmo_jax.data.corpora.describe_source import describe
from bert_elmo_jax.data.corpora.reading import BadInput, Reading, Source, Tally, find_files, has_text, shown
from bert_elmo_jax.data.corpora.runners import Report, Runner, run_here
from bert_elmo_jax.data.corpora.shards import Job, building, file_facts, make_piece_shard, make_word_shard, plan_ranges
from bert_elmo_jax.data.corpora.store import FORMAT, PARTS, WORD_COUNTS, misfits, read_manifest
from bert_elmo_jax.data.corpora.table_texts import is_table, write_texts
from bert_elmo_jax.data.corpora.unpack import needs_unpacking, unpack
from bert_elmo_jax.data.corpora.word_table import MERGED, choose_vocabulary, renumber_shard, write_table
from bert_elmo_jax.did_you_mean import did_you_mean
from bert_elmo_jax.files import LockHeld, lock, read_json, write_json
from bert_elmo_jax.text import Tokenizer, load_tokenizer, train_byte_bpe, train_sentencepiece, train_wordpiece
from bert_elmo_jax.text.words import WordVocabulary

SHARD = 16 << 20  # bytes of text per shard; small, so that a laptop's corpus keeps several cores busy
TRAINED = ("wordpiece", "sentencepiece", "byte_bpe", "words")
DROPPED = "dropped.json"
LATER_OPTIONS = {"min_count": 1, "dedupe": 0.0, "filter": "", "mix": "", "temperature": 1.0}
JOINED = ".pairs.partial"  # the folder with the joined pairs of `joined_inputs`
UNFINISHED = re.compile(r"^(\.lock|plan\.json.*|work|.*\.partial)$")  # files that exist before any step is finished
Phase = Callable[[str, int], contextlib.AbstractContextManager[Report]]  # takes a name and the bytes to process


@dataclass(frozen=True)
class Request:
    """The settings of a preparation, which determine its output."""

    inputs: tuple[str, ...]
    output: str
    tokenizer: str = "wordpiece"  # trained under this name, or a folder to load one from, such as a run's
    vocab_size: int = 8192
    lowercase: bool = False
    sentencepiece_model: Literal["unigram", "bpe"] = "unigram"
    word_rule: str = "punctuation"
    min_count: int = 1  # rarer words are unknown
    heldout: float = 0.01
    shards: int = 0  # 0: by size
    sample_mb: float = 32.0
    seed: int = 0
    reading: Reading = field(default_factory=Reading)
    dedupe: float = 0.0  # the similarity of near-duplicates that are left out; 0: none
    filter: str = ""  # "default" leaves out documents of poor quality; its limits can be changed
    mix: str = ""  # weights of the inputs, "novels=0.7,reviews=0.3"
    temperature: float = 1.0  # or shares that are proportional to bytes ** temperature
    joined: tuple[tuple[str, int], ...] = ()  # the files that were joined to the only input, and where each begins

    def __post_init__(self) -> None:
        if not self.inputs:
            raise ValueError("no input; give files with --input='folder/*.txt'")
        if self.tokenizer not in TRAINED and not Path(self.tokenizer).is_dir():
            raise ValueError(
                f"tokenizer={self.tokenizer!r} is neither a folder nor one of {', '.join(TRAINED)}; give one of these "
                f"to train a vocabulary, or a folder to load one from{did_you_mean(self.tokenizer, TRAINED)}"
            )
        if self.dedupe and not 0.5 <= self.dedupe <= 1:
            raise ValueError(
                f"--dedupe={self.dedupe:g} is the share of shingles that near-duplicates have in common: give 0.5 to "
                "1, for example 0.8, or 0 to keep all documents"
            )
        if self.filter:
            read_limits(self.filter)
        check_mixture(self.mix, self.temperature, self.inputs)
        if _is_words(self) and self.shards > MERGED:
            raise ValueError(f"shards={self.shards}: a word model merges all shards at once; use at most {MERGED}")


TOKENIZERS = {
    "lowercase": ("wordpiece",),
    "sentencepiece_model": ("sentencepiece",),
    "word_rule": ("words",),
    "min_count": ("words",),
    "vocab_size": TRAINED,
    "sample_mb": ("wordpiece", "sentencepiece", "byte_bpe"),
}


def refuse_idle_options(request: Request, flags_set: Iterable[str]) -> None:
    """Raise on options that were given but have no effect with the requested tokenizer."""
    for name in flags_set:
        words = name == "word_rule" and _is_words(request)
        if not words and request.tokenizer not in TOKENIZERS.get(name, (request.tokenizer,)):
            raise ValueError(f"--{name} has no effect with --tokenizer={request.tokenizer}; leave it out")


class OtherPlan(ValueError):
    """The output folder is in use, or belongs to a preparation with other options or to other files."""


def report_nothing(name: str, size: int) -> contextlib.AbstractContextManager[Report]:
    """Return a phase without a report of its progress."""
    return contextlib.nullcontext(lambda done: None)


def prepare(request: Request, runner: Runner = run_here, phase: Phase = report_nothing) -> dict[str, Any]:
    """Prepare a corpus and return its manifest; resume an unfinished preparation."""
    output = Path(request.output)
    tally = Tally(request.reading)
    files = [describe(path, path) for path in find_files(request.inputs, tally)]
    files = [source for source in files if has_text(source, tally)]
    if not files:
        raise _no_text(request)
    with hold_output(output):
        return _prepare_files(request, output, files, tally, runner, phase)


@contextlib.contextmanager
def hold_output(output: Path) -> Iterator[None]:
    """Make the output folder and hold its lock; raise if it is in use, or has files of something else."""
    if output.exists() and not output.is_dir():
        raise BadInput(str(output), None, "the output is a file, not a folder", "give another --output")
    output.mkdir(parents=True, exist_ok=True)
    _refuse_others(output)  # before the lock, which would be left there
    try:
        with lock(output / ".lock"):
            yield
    except LockHeld:
        raise OtherPlan(f"another preparation is writing to {output}; wait for it, or give another --output") from None


def _prepare_files(
    request: Request, output: Path, files: list[Source], tally: Tally, runner: Runner, phase: Phase
) -> dict[str, Any]:
    plan = _plan(request, files)
    _check_plan(output, plan, _earlier_plan(plan, files))
    leftovers = ["plan.json.*.partial", "manifest.json.*.partial", "work/*.partial"]
    if not request.joined:
        leftovers.append(JOINED)
    for leftover in (path for pattern in leftovers for path in output.glob(pattern)):  # from runs that were killed
        shutil.rmtree(leftover) if leftover.is_dir() else leftover.unlink()
    if manifest := _finished(output):
        return manifest
    (output / "work").mkdir(exist_ok=True)
    sources = _unpack_all(files, request, tally, runner, phase)
    sources = _clean(sources, request, tally, runner, phase)
    shards = request.shards or min(256, -(-sum(source.size for source in sources) // SHARD))
    jobs = [
        Job(k, ranges, request.reading, request.seed, request.heldout, request.output, request.word_rule)
        for k, ranges in enumerate(plan_ranges(sources, shards))
    ]
    if _is_words(request):
        tokenizer = _prepare_words(request, jobs, runner, phase)
    else:
        tokenizer = _make_tokenizer(request, lambda: _train(request, sources, phase))
        _run_shards(make_piece_shard, jobs, output, runner, phase, "preparing")
    manifest = _manifest(output, request, files, jobs, tokenizer, tally)
    write_json(output / "manifest.json", manifest)
    shutil.rmtree(output / "work")
    return manifest


def _is_complete(output: Path) -> bool:
    return (output / "manifest.json").exists() and not misfits(output, read_manifest(output))


def _no_text(request: Request, remedy: str = "check --input") -> BadInput:
    return BadInput(", ".join(request.inputs), None, "no text in any file", remedy)


def _finished(output: Path) -> dict[str, Any] | None:
    """Return the manifest of a finished store; otherwise remove damaged shards and return None."""
    if not (output / "manifest.json").exists():
        return None
    manifest = read_manifest(output)
    damaged = {path.relative_to(output).parts[0] for path, _ in misfits(output, manifest)}
    if not damaged:
        shutil.rmtree(output / "work", ignore_errors=True)
        return manifest
    (output / "manifest.json").unlink()
    shards = {shard["name"] for shard in manifest["shards"]}
    if damaged - shards or manifest["tokenizer"]["kind"] == "words":  # all shards depend on the damaged files
        damaged = {*shards, "tokenizer"}
    for name in damaged:
        shutil.rmtree(output / name, ignore_errors=True)
    return None


def _plan(request: Request, files: list[Source]) -> dict[str, Any]:
    """Return the settings that must not change when a preparation resumes; inputs count by name and content."""
    options = asdict(request)
    options |= options.pop("reading")
    del options["output"], options["inputs"], options["joined"]
    for name, unused in LATER_OPTIONS.items():  # as in plans before there were such options
        if options[name] == unused:
            del options[name]
    if request.dedupe:
        options["shingle_bits"] = SHINGLE_BITS
    if request.tokenizer not in TRAINED:
        options["tokenizer"] = _load(request.tokenizer).fingerprint
    if request.mix or request.temperature != 1:  # the shares depend on the inputs that files belong to
        owners = find_owners(request.inputs, request.reading)
        options["inputs"] = dict(Counter(shown(owners[source.path]) for source in files))
    sources = [
        {"name": shown(Path(source.path).name), "bytes": source.size, "sample": source.sample} for source in files
    ]
    return {"format": FORMAT, "options": options, "sources": sources}


def _earlier_plan(plan: dict[str, Any], files: list[Source]) -> dict[str, Any]:
    """Return a plan as earlier versions wrote it, whose finished stores stay valid."""
    options = {name: value for name, value in plan["options"].items() if name != "inputs"}
    sources = [{**entry, "sample": source.earlier_sample} for entry, source in zip(plan["sources"], files)]
    return {**plan, "options": options, "sources": sources}


def _refuse_others(output: Path) -> None:
    """Raise if a folder without a plan has files of something else."""
    expected = re.compile(rf"\.lock|plan\.json(\.\d+\.partial)?|{re.escape(JOINED)}")
    foreign = sorted(p.name for p in output.iterdir() if not expected.fullmatch(p.name))
    if foreign and not (output / "plan.json").exists():
        raise OtherPlan(f"{output} has other files ({', '.join(foreign[:5])}); give an empty --output")


def _check_plan(output: Path, plan: dict[str, Any], earlier: dict[str, Any]) -> None:
    """Write the plan, or raise if the folder was started with another one; `earlier` is as an earlier version's."""
    path = output / "plan.json"
    if not path.exists():
        _refuse_others(output)
        write_json(path, plan)
        return
    old = read_json(path)
    results = [p for p in (*output.iterdir(), *output.glob("work/*")) if not UNFINISHED.search(p.name)]
    if "shingle_bits" not in old.get("options", {}) and _is_complete(output):
        # Of an earlier version, which found other near-duplicates: only a complete store stays valid.
        for one in (plan, earlier):
            one["options"] = {name: value for name, value in one["options"].items() if name != "shingle_bits"}
    # Steps finished with on_bad="error" met no bad input, so they stay valid with "skip".
    milder = {**old, "options": {**old.get("options", {}), "on_bad": plan["options"]["on_bad"]}}
    if not results or (milder in (plan, earlier) and old["options"]["on_bad"] == "error"):
        write_json(path, plan)
    elif old not in (plan, earlier):
        lines = min(_differences(old, plan), _differences(old, earlier), key=len)
        more = [f"  and {len(lines) - 20} more"] if len(lines) > 20 else []
        advice = f"Use the previous options or another --output, or delete {output} to start over."
        raise OtherPlan("\n".join([f"{output} was started with other options:", *lines[:20], *more, advice]))


def _differences(old: dict[str, Any], plan: dict[str, Any]) -> list[str]:
    lines = [
        f"  {name}: {old['options'].get(name)!r} there, {plan['options'].get(name)!r} given"
        for name in sorted({*old["options"], *plan["options"]})
        if old["options"].get(name) != plan["options"].get(name)
    ]
    before, now = ({f"{s['name']} ({n})": s for n, s in enumerate(p["sources"], 1)} for p in (old, plan))
    lines += [
        f"  input {name}: {_change(before.get(name), now.get(name))}"
        for name in sorted({*before, *now})
        if before.get(name) != now.get(name)
    ]
    return lines or [f"  its format is {old.get('format')}, this version writes {FORMAT}"]


def _change(before: dict[str, Any] | None, now: dict[str, Any] | None) -> str:
    if before is None:
        return "not there before"
    if now is None:
        return "no longer among the inputs"
    sizes = f" ({before['bytes']} bytes there, {now['bytes']} now)" if before["bytes"] != now["bytes"] else ""
    return f"its content has changed{sizes}"


def _unpack_file(reading: Reading, source: Source, report: Report) -> None:
    tally = Tally(reading)
    (write_texts if is_table(source.path) else unpack)(source.path, Path(source.plain), tally)
    write_json(Path(f"{source.plain}.json"), dict(tally.skipped))
    report(source.size)


def _unpack_all(files: list[Source], request: Request, tally: Tally, runner: Runner, phase: Phase) -> list[Source]:
    """Unpack the files that need it, count skipped input in the tally, and return the plain sources."""
    packed = {
        n: replace(file, plain=str(Path(request.output, "work", f"plain-{n:05d}")), rows=is_table(file.path))
        for n, file in enumerate(files)
        if is_table(file.path) or needs_unpacking(file.path, request.reading)
    }
    jobs = [source for source in packed.values() if not Path(f"{source.plain}.json").exists()]
    if jobs:
        with phase("unpacking", sum(job.size for job in jobs)) as report:
            runner(functools.partial(_unpack_file, request.reading), jobs, report)
    sources = []
    for n, source in enumerate(files):
        if n in packed:
            source = replace(packed[n], size=Path(packed[n].plain).stat().st_size)
            tally.skipped.update(read_json(f"{source.plain}.json"))
            if not has_text(source, tally):
                continue
        sources.append(source)
    if not sources:
        raise _no_text(request)
    return sources


def _clean(sources: list[Source], request: Request, tally: Tally, runner: Runner, phase: Phase) -> list[Source]:
    """Leave documents out and mix the inputs as requested, and write a report."""
    cleaning, output = Cleaning(request.dedupe, request.filter), Path(request.output)
    report: dict[str, Any] = {}
    if cleaning != Cleaning():
        files = sources
        sources, report = clean(files, request.reading, output, cleaning, runner, phase, tally)
        name_places(report, files, request.reading, request.joined)
        write_json(output / DROPPED, report)
        if not sources:
            raise _no_text(request, f"every document was left out; {output / DROPPED} says why")
    if request.mix or request.temperature != 1:
        mixed = mix_sources(sources, request.inputs, request.reading, request.mix, request.temperature)
        sources, report["mixture"] = mixed
        write_json(output / DROPPED, report)
    return sources


def _is_words(request: Request) -> bool:
    return request.tokenizer == "words" or (request.tokenizer not in TRAINED and _holds_words(request.tokenizer))


def find_tokenizer_folder(folder: str | Path) -> Path:
    """Return the folder `tokenizer/` of a run or of a prepared corpus, and any other folder itself."""
    inner = Path(folder, "tokenizer")
    return inner if inner.is_dir() else Path(folder)


def _holds_words(folder: str) -> bool:
    return (find_tokenizer_folder(folder) / "words.txt").exists()


def _load(folder: str) -> Tokenizer | WordVocabulary:
    inner = find_tokenizer_folder(folder)
    return WordVocabulary.load(inner) if _holds_words(folder) else load_tokenizer(inner)


def _make_tokenizer(request: Request, train: Callable[[], Tokenizer | WordVocabulary]) -> dict[str, Any]:
    """Train the tokenizer or copy the given one, unless this is done; return its entry in the manifest."""
    folder = Path(request.output, "tokenizer")
    if not folder.exists():
        with building(folder, Path(request.output, "work")) as partial:
            (train() if request.tokenizer in TRAINED else _load(request.tokenizer)).save(partial)
    tokenizer = _load(str(folder))
    kind = "words" if isinstance(tokenizer, WordVocabulary) else tokenizer.kind
    return {"kind": kind, "vocab_size": tokenizer.vocab_size, "fingerprint": tokenizer.fingerprint}


def _train(request: Request, sources: list[Source], phase: Phase) -> Tokenizer:
    """Train a tokenizer on a sample of the sources."""
    size = sum(source.size for source in sources)
    with phase(f"training {request.tokenizer}", min(size, int(request.sample_mb * (1 << 20)))) as report:

        def sample() -> Iterator[str]:
            for sentence in iterate_sample(sources, request.reading, request.sample_mb, request.seed):
                report(len(sentence.encode("utf-8", "ignore")))
                yield sentence

        if request.tokenizer == "wordpiece":
            return train_wordpiece(sample(), request.vocab_size, lowercase=request.lowercase)
        if request.tokenizer == "byte_bpe":
            return train_byte_bpe(sample(), request.vocab_size)
        return train_sentencepiece(sample(), request.vocab_size, model=request.sentencepiece_model)


def _prepare_words(request: Request, jobs: list[Job], runner: Runner, phase: Phase) -> dict[str, Any]:
    output, work = Path(request.output), Path(request.output, "work")
    _run_shards(make_word_shard, jobs, work, runner, phase, "counting words")
    folders = [work / job.name for job in jobs]

    def choose() -> WordVocabulary:
        with phase("choosing words", 0) as report:
            return choose_vocabulary(folders, request.vocab_size, report, request.word_rule, request.min_count)

    tokenizer = _make_tokenizer(request, choose)
    write_json(work / "vocabulary.json", tokenizer)
    if not (work / "table").exists():
        with phase("merging words", 0) as report:
            write_table(folders, WordVocabulary.load(output / "tokenizer"), work / "table", report)
    _run_shards(renumber_shard, jobs, output, runner, phase, "numbering words")
    names = ["forms.npy", "form_ends.npy"]
    if request.tokenizer not in TRAINED and (work / "table" / WORD_COUNTS).exists():  # earlier versions wrote none
        names.append(WORD_COUNTS)
    for name in names:
        shutil.copyfile(work / "table" / name, output / name)
    return tokenizer


def _run_shards(
    function: Callable[[Job, Report], None], jobs: list[Job], folder: Path, runner: Runner, phase: Phase, name: str
) -> None:
    missing = [job for job in jobs if not (folder / job.name).exists()]
    total = sum(job.size for job in jobs)
    with phase(name, total) as report:
        report(total - sum(job.size for job in missing))
        runner(function, missing, report)


def _manifest(
    output: Path, request: Request, files: list[Source], jobs: list[Job], tokenizer: dict[str, Any], tally: Tally
) -> dict[str, Any]:
    shards = []
    totals: dict[str, Counter[str]] = {part: Counter() for part in PARTS}
    for job in jobs:
        shard = read_json(output / job.name / "shard.json")
        tally.skipped.update(shard.pop("skipped"))
        shards.append({"name": job.name, **shard})
        for part in PARTS:
            totals[part].update(shard[part]["counts"])
    if not sum(total["sentences"] for total in totals.values()):
        raise _no_text(request, "check --input and --encoding")
    if not totals["train"]["documents"]:
        problem = "all documents are held out, none is left for training"
        remedy = "lower --heldout, try another --seed, or check --documents"
        raise BadInput(", ".join(request.inputs), None, problem, remedy)
    table = ["form_ends.npy", "forms.npy"] if _is_words(request) else []
    table += [name for name in (DROPPED, WORD_COUNTS) if (output / name).exists()]
    extra = table + sorted(f"tokenizer/{path.name}" for path in (output / "tokenizer").iterdir())
    return {
        **_plan(request, files),
        "tokenizer": tokenizer,
        "counts": {part: dict(total) for part, total in totals.items()},
        "skipped": dict(sorted(tally.skipped.items())),
        "files": {name: file_facts(output / name) for name in extra},
        "shards": shards,
    }
