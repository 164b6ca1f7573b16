"""Examples of `bert_elmo_jax.runs.start_run`."""

from bert_elmo_jax.runs.start_run import keep_freed_memory, run_point


def test_example_of_keep_freed_memory():
    keep_freed_memory()


def test_a_point_runs_with_its_fields(capsys):
    def greet(config, workdir, name):
        print(f"{name} trains {config.steps} steps")

    assert run_point(greet, "experiments/configs/bert.py:toy", {"steps": "100"}, "runs/bert", {"name": "Kim"}) == 0
    assert capsys.readouterr().out == "Kim trains 100 steps\n"
