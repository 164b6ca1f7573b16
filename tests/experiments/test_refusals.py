"""Contradictory command lines: each is refused at once, in one line with status 2, before a file is written."""

import re
import shlex

import pytest

from .programs import run_program
from .task_files import write_model, write_task

# Words in capitals are short for several, and `=x` is a path that does not exist yet.
SHORT = {
    "TOY": "--config=bert:toy --workdir=x",
    "TINY": "--config=bert:tiny --workdir=x",
    "SWEEP": "--sweep=own_heads --workdir=x",
    "SEARCH": "--over=batch_size=4,8 --workdir=x",
    "TASK": "-- --task=sst2 --train=t.tsv --dev=d.tsv",
    "PLAN": "--config=bert:tiny --topology=cpu:1",
    "EXTRACT": "--model=x --input=y.conll --output=z.h5",
    "GPT": "--model=tests/goldens/gpt2_tiny --max_new=4",
    "SELF": "--task=classification --train=LICENSE --dev=LICENSE --workdir=x --tokenizer=tests/goldens/bert_tiny",
    "DIFFERENT": "expected different numbers of GPUs or TPU chips, such as 0,1",
    "HUGE": "9" * 20,
}
PROCESSES = """
pretrain TOY --processes=4 --process=9 | --processes=4, --process=9 without --coordinator
pretrain TOY --process=1 | --process=1 without --coordinator: this process would train alone
pretrain TOY --processes=0 | --processes=0: expected a whole number of at least 1
pretrain TOY --coordinator=localhost:1 --processes=2 --process=2 | counted from 0, so expected --process=0 to 1
pretrain TINY --coordinator=host:port | --coordinator=host:port: expected auto, or host:port with a
sweep SWEEP --devices=a | --devices=a: DIFFERENT
sweep SWEEP --devices=-1 | --devices=-1: DIFFERENT
sweep SWEEP --devices=0,0 | --devices=0,0: DIFFERENT
sweep SWEEP --devices=0,00 | --devices=0,00: DIFFERENT
sweep SWEEP --scale=small | --scale=small: own_heads has no such scale; it has toy, one_gpu, paper
sweep SWEEP --devices=0,1 --jobs=3 | some devices would have more jobs than others; use a multiple of 2
sweep SWEEP --runner=ray --devices=0 | --devices without effect: --runner=ray was given
sweep SWEEP --resources=GPU | --resources=GPU: expected a name and a number, such as GPU=1
sweep SWEEP --resources=GPU=nan | --resources=GPU=nan: expected a name and a number
sweep SWEEP --resources=GPU=1 | --resources without effect: --runner=local was given; use --runner=ray
sweep SWEEP --devices= | --devices= is empty: give a value, or leave it out
search SEARCH --device=-1 TASK | --device=-1: DIFFERENT
search SEARCH --seed=-1 TASK | --seed=-1: expected a whole number of at least 0
search SEARCH --score=nosuch TASK | --score=nosuch is no figure of these runs; expected one of dev/acc
search --over=batch_size=-4..0 --workdir=x TASK | --over: batch_size=-4: expected a whole number from
search SEARCH TASK --config.optimizer.clip=0 | config.optimizer.clip=0.0: expected a number above 0
"""
DATA = """
prepare_data --input=texts.txt --output=x --text_field= | --text_field= is empty: give a value, or leave it out
prepare_data --input=texts.txt --output= | prepare_data: --output= is empty: give a value, or leave it out
prepare_data --input=texts.txt --output=x --seed=-1 | --seed=-1: expected a whole number from 0 to 4,294,967,295
prepare_data --input=texts.txt --output=x --seed=HUGE | --seed=HUGE: expected a whole number from 0 to 4,294,967,295
prepare_data --input=texts.txt --output=x --workers=100000 | --workers=100000: expected a whole number from 1 to 1,024
prepare_data --input=texts.txt --output=x --workers=0 | --workers=0: expected a whole number from 1 to 1,024
prepare_data --input=texts.txt --output=x --shards=100000000 | --shards=100000000: expected a whole number from 0 to
prepare_data --input=texts.txt --output=x --vocab_size=0 | --vocab_size=0: expected a whole number from 4 to 10,000,000
prepare_data --input=texts.txt --output=x --heldout=nan | --heldout=nan: expected a finite number
prepare_data --outptu=x | prepare_data: there is no flag --outptu; did you mean --output?; --help
prepare_data --input=a --output=x --split=sentence | --split=sentence is not known; it is one of lines, sentences; did
prepare_data --input=a --output=x --split=sentence | did you mean sentences?
prepare_data --input=a --output=x --tokenizer=wordpeice | did you mean wordpiece?
prepare_data --output=x --input=nowhere/*.txt | no file matches
prepare_data --output=x --input=tests | a folder, not a file
prepare_data --output=x | no input; give files
prepare_data --output=x --input=a --encoding=utf-9 | encoding='utf-9' is not known
prepare_data --output=x --input=a --tokenizer=bert | neither a folder nor one of wordpiece
prepare_data --output=x --verify | no such folder
prepare_data --output=x --input=a --tokenizer=sentencepiece --lowercase | has no effect with --tokenizer=sentencepiece
prepare_data --output=x --input=a --tokenizer=words --sample_mb=3 | --sample_mb has no effect with --tokenizer=words
prepare_data --output=x --input=a --dedupe=0.2 | give 0.5 to 1, for example 0.8
prepare_data --output=x --input=a --filter=strict | must begin with default
prepare_data --output=x --input=a --mix=a=1 | a mixture needs two or more inputs
prepare_data --output=x --input=a --input=b --mix=a=1,c=1 | no --input is named 'c'; they are a, b
prepare_data --output=x --input=a --input=b --mix=a=1,b=1 --temperature=0.7 | both set the shares; leave one out
prepare_data --output=x stray.txt | unexpected argument 'stray.txt'
"""
CONFIGS = """
pretrain --config= --workdir=x | --config= is empty: give a recipe, such as bert:base
pretrain --config=LICENSE --workdir=x | --config=LICENSE: it cannot be run: IndentationError
pretrain --config=experiments/__init__.py --workdir=x | __init__.py: it has no function get_config
pretrain --config=experiments/configs/bert_toi.py | did you mean bert:toy?
pretrain --config=experiments/configs/bert_toy.py | did you mean bert:toy?
pretrain --config elmo-smal --workdir=x | did you mean elmo:small?
pretrain --config=강가.py | there is no such file; give your own file, or one of albert, awd_lstm,
pretrain --config=experiments/configs/bert.py | bert.py: it needs a recipe; choose from toy, tiny, mini,
pretrain --config=experiments/configs/bert.py:toi | there is no recipe 'toi'; choose from toy, tiny, mini
pretrain --config=experiments/configs/bert.py:toi | did you mean toy?
pretrain --workdir=x | --config=… is needed: a recipe, such as bert:base, or your own file
pretrain --confg=bert:base --workdir=x | there is no flag --confg; did you mean --config?
pretrain --confg.batch_size=3 --workdir=x | there is no flag --confg.batch_size; did you mean --config.batch_size?
pretrain --config=bret:toy --workdir=x | --config=bret:toy: there is no such recipe; did you mean bert:toy?
pretrain --config=bert:toi | --config=bert:toi: there is no recipe 'toi'; choose from toy, tiny, mini
pretrain --config=experiments/configs/bert.py:tiny | --workdir=… is needed
pretrain --config=experiments/configs/bert.py:tiny --config.data=setup.cfg --workdir=x | setup.cfg is a file, expected a
pretrain --config=experiments/configs/bert.py:tiny --worksdir=x | no flag --worksdir; did you mean --workdir?
pretrain TINY surplus | unexpected argument 'surplus'
pretrain TINY --config.stepz=3 | no field 'stepz'; did you mean --config.steps?
pretrain TINY --config.model.layers=3 | no field 'model.layers'; did you mean --config.model.num_layers?
pretrain TINY --config.zebra=3 | no field 'zebra'; --config=bert:tiny --help lists them
pretrain TINY --config.steps=many | steps='many': expected a value like 1000000
pretrain TINY --config.model.remat=perhaps | model.remat='perhaps': expected a value like false
pretrain TOY --config.length=100000 | config.length=100000, but the model has 128 positions: lower it
pretrain TOY --config.model.max_positions=8 | config.length=128, but the model has 8 positions
pretrain TOY --config.mesh.fsdp=64 | a mesh of fsdp=64 × tensor=1 needs 64 devices or a multiple
pretrain TOY --config.steps=nan | --config.steps='nan': expected a value like 9000
pretrain TOY --config.optimizer.clip=-1 | --config.optimizer.clip=-1.0: expected
pretrain TOY --config.masking.split=(HUGE,) | --config.masking.split=
pretrain TOY --config.model.norm_eps=-1 | --config.model.norm_eps=-1.0: expected
finetune --config= --workdir=x | --config= is empty: give a recipe, such as bert:base
finetune --workdir= | --workdir= is empty: give a value, or leave it out
finetune --workdir=x --config.optimiser.name=adamw | did you mean --config.optimizer.name?
finetune --workdir=x --batch_size=8 | there is no flag --batch_size; did you mean --config.batch_size?; --help
finetune --taks=sst2 | there is no flag --taks; did you mean --task?
finetune --config=experiments/configs/bert.py:toy --workdir=x | bert.py:toy is for pretrain, not for
finetune SELF --text=label --label=label | one column for two things: text='label', label='label'; use different
plan --config=bert_bas.py --topology=cpu:8 | did you mean bert:base?
plan --config=experiments/configs/tagger.py --topology=cpu:8 | tagger.py is for finetune, not for
"""
USES = """
plan PLAN --memory=nan | --memory=nan: expected a finite number
plan PLAN --memory=0 | --memory=0: expected GiB of a device, above 0
plan PLAN --memory=-1 | --memory=-1: expected GiB of a device, above 0
plan PLAN --vocab_size=0 | --vocab_size=0: expected a whole number from 1 to 100,000,000
plan PLAN --topology=cpu:1000000 | --topology=cpu:1000000: expected 1 to 1,024 simulated devices
plan --topology=cpu:8 | --config=… is needed
plan --config=experiments/configs/bert.py:tiny | --topology=… is needed
plan PLAN --topology=v9:1x1 | --topology='v9:1x1' is not known
plan PLAN --config.mash=3 | has no field 'mash'
plan PLAN --config.data=/nowhere | /nowhere
probe --model=x | probe: --what=…, --output=… are needed
probe --what=toyworld --output=x --model=a --words= | --words= is empty: give a value, or leave it out
probe --what=toyworld --output=x --model=a,a | --model=a,a has a path twice: name each once
probe --what=toyworld --output=x --model=a,./a | --model=a,./a has a path twice: name each once
probe --what=sense --output=x | --what=sense is not known; it is one of probe, efficiency, register, senses,
probe --what=sense --output=x | ; did you mean senses?
extract EXTRACT --column=-5 | --column=-5: expected a whole number of at least 0
extract EXTRACT --layer=1 | no flag --layer; did you mean --layers?
predict --model=x --output= | --output= is empty: give a value, or leave it out
predict --model=x --output=x.pdf | --output=x.pdf: predictions are no .pdf; end the name in .csv, .tsv
predict --model=x --batch_size=0 | --batch_size=0:
predict --model=x surplus | unexpected argument 'surplus'
predict --model=tests/goldens/bert_tiny | has no head of a task: give a run of finetune, or a released classifier
predict --model=/nowhere/at/all | nowhere
convert --from=x | convert: --to=… is needed
convert --from=tests/goldens/bert_tiny --to=x --classifier=tag | which has no classifier: leave it out
generate GPT --prompt=a --input=b.txt | --prompt and --input=b.txt were both given: choose one
generate GPT --input=b.txt --output=b.txt | --output=b.txt would replace the input
generate GPT --prompt=a --temperature=0 | temperature=0.0: use a number above 1e-06
generate GPT --prompt=a --n_best=2 | n_best=2, but beams=1
generate GPT --prompt=a --max_new=65 | max_new=65 is too many: use
generate GPT --prompt=a --beams=2 --stop=b | is a text, which a beam search does not follow
generate --model=tests/goldens/bert_tiny --prompt=a | a BERT does not write
"""
BENCHMARKS = """
benchmarks.speed --what=encoding | --what=encoding is not known; it is of step, encode, encode_onnx, sentences_onnx,
benchmarks.server_load | --model=: the folder of a sentence model is needed
benchmarks.server_load --model=nowhere | --model=nowhere: the folder of a sentence model is needed
benchmarks.server_load --model=tests --peer_python=/nowhere | --peer_python=/nowhere does not start
benchmarks.versions | --base=… is needed: a commit, such as HEAD~1, or the folder of another checkout
benchmarks.versions --base=docs | --base=docs: this folder is no checkout of this project with its benchmarks
benchmarks.versions --base=v0 | --base=v0 is neither a folder nor a commit of
benchmarks.versions --base=v0 --what=encoding | --what=encoding is not known; it is of step, encode, encode_onnx,
benchmarks.toyworld --run=nowhere | benchmarks.toyworld: nowhere is not a run directory
benchmarks.transfer --output=x | --models=… is needed
benchmarks.transfer --output=x --models=tests/goldens/elmo_tiny --ways=all,gradul | 'gradul' is not a way of this study
benchmarks.transfer --output=x --models=tests/goldens/elmo_tiny --ways=gradul | did you mean gradual?
benchmarks.transfer --output=x --models=nothing | nothing
benchmarks.attention --output=x --what=words | --what=words needs --model=…, a trained Transformer
benchmarks.attention --output=x --what=heads --language=ko | --what=heads does not read --language: leave it out
benchmarks.attention --output=x --what=words --model=x --seed=1 | --what=words does not read --seed: leave it out
benchmarks.attention --output=x --what=words --model=tests/goldens/elmo_tiny | this model gives no attention maps
benchmarks.writing --masked=runs/none --next=runs/none | runs/none
"""
# A small model and files of sst2, MODEL and FILES, which the flags behind them replace.
FINETUNE = """
finetune --task=sst2 --train=t.tsv --workdir=x | --dev is needed, such as
finetune MODEL FILES --task=poetry | there is no task 'poetry'; there are classification
finetune MODEL FILES --task=SST-2 | ; did you mean sst2?
finetune MODEL FILES --text=review | text='review': 'sst2' has fixed columns
finetune MODEL FILES --train=/nowhere.tsv | /nowhere.tsv: there is no such file
finetune MODEL FILES --init=/nowhere/at/all | nowhere
finetune FILES | --init=… is needed
finetune MODEL FILES --tokenizer=tok | --tokenizer=tok was given with --init
finetune MODEL FILES --grid=colour=1 | --grid: the config has no field 'colour'; --config=FILE
finetune MODEL FILES --grid=batchsize=16 | no field 'batchsize'; did you mean batch_size?
finetune MODEL FILES --grid=epochs=many | --grid: epochs='many': expected a value like 3.0
finetune MODEL FILES --grid= | --grid= is empty
finetune MODEL FILES --grid=optimizer.clip=1,-1 | --grid: optimizer.clip=-1.0: expected a number above 0
finetune MODEL FILES --seeds=1,1 | seed has a value twice: 1, 1
finetune MODEL FILES --seeds= | --seeds= is empty: give a value, or leave it out
finetune MODEL FILES --seeds=-1 | --seeds: seed=-1: expected a whole number from 0 to 4,294,967,295
finetune MODEL FILES --seeds=1,HUGE | --seeds: seed=HUGE: expected a whole number
finetune MODEL FILES --config.transfer=head-first | upper, lora; did you mean head_first?
finetune MODEL FILES --config.transfer=half | config.transfer='half' is not known; it is one of all, frozen
finetune MODEL FILES --config.transfer=upper | config.transfer=upper needs config.upper_layers=…, from 1 to 1
finetune MODEL FILES --config.transfer=upper --config.upper_layers=2 | config.upper_layers=2: expected 1 to 1
finetune MODEL FILES --config.upper_layers=1 | config.upper_layers=1 with transfer=all is for transfer=upper
finetune MODEL FILES --config.optimizer.schedule=cosin | ; did you mean cosine?
finetune MODEL FILES --config.optimizer.name=adamx | config.optimizer.name='adamx' is not known
finetune FILES --tokenizer=tests/goldens/bert_tiny --config.preset=Bass | did you mean base?
finetune MODEL FILES --config.max_length=400 | max_length=400: use 8 to 48, the positions of this model
finetune MODEL FILES --config.accumulate=5 | config.batch_size=32 cannot be shared by 1 devices in 5 parts
finetune MODEL FILES --config.epochs=0 | --config.epochs=0.0: expected a number above 0
finetune MODEL FILES --config.epochs=0.001 | is less than a step: use more epochs
finetune MODEL FILES --config.checkpoint_every=2 --config.eval_every=3 | the best model could not be kept
finetune MODEL FILES --config.class_weights=0=1 | config.class_weights='0=1': expected balanced, or a number
finetune MODEL FILES --config.features.layers=top | config.features.layers='top': use numbers
finetune MODEL FILES --config.features.layers=7 | there is no layer 7
finetune MODEL FILES --config.features.combine=foo | features.combine='foo' is not known; it is one of concat, mix
finetune MODEL FILES --config.context=true | config.context is for tasks with words, and sst2 has texts
finetune MODEL FILES --config.layer_decay=2 | --config.layer_decay=2.0: expected a number above 0 and at most 1
export --model=x --output=x --to=stablehlo --opset=0 | --opset=0 is for ONNX, not for --to=stablehlo: leave it out
sweep --new=x/mine.py --sweep=bert_table5 | --new=my_sweep.py, without them, writes an example
finetune MODEL FILES --config.patience=-1 | --config.patience=-1: expected a whole number from 0
"""


def rows(*tables):
    """Return (command line, message) of each row."""
    return [row.split(" | ") for table in tables for row in table.strip().splitlines()]


@pytest.fixture(scope="module")
def tuning(tmp_path_factory):
    """Return the flags of a small model, and of files of sst2."""
    folder = tmp_path_factory.mktemp("tuning")
    files = write_task(folder / "files", "sst2", count=16)
    flags = {"MODEL": f"--init={write_model(folder / 'bert')}"}
    return flags | {"FILES": "--workdir=x " + " ".join(f"--{name}={value}" for name, value in files.items())}


@pytest.mark.parametrize(
    ("command", "message"),
    rows(PROCESSES, DATA, CONFIGS, USES, BENCHMARKS, FINETUNE),
    ids=lambda text: text if text[0].islower() else "",
)
def test_refused_at_once(command, message, tuning, tmp_path):
    short = SHORT | tuning
    command, message = (
        re.sub(r"\b[A-Z]+\b", lambda word: short.get(word[0], word[0]), text) for text in (command, message)
    )
    program, *words = [re.sub(r"^(--\w+)=x$", rf"\1={tmp_path / 'x'}", word) for word in shlex.split(command)]
    status, out, err = run_program(program, *words)
    refusals = [line for line in err.splitlines() if line.startswith(f"{program}: ")]
    assert status == 2 and len(refusals) == 1 and message in refusals[0], err
    # Before it, a program may say what it begins to do.
    assert "Traceback" not in err and (err + out).count("\n") <= 3 and not list(tmp_path.rglob("run.json"))
