"""Examples of `bert_elmo_jax.data.rows.widths`."""

from bert_elmo_jax.data.rows.widths import height_for, width_for


def test_example_of_width_for():
    assert ([width_for(length, 512) for length in (3, 16, 17, 300)], width_for(100, 100), width_for(600, 1024)) == (
        [16, 16, 32, 384],
        100,
        1024,
    )


def test_example_of_height_for():
    assert [height_for(rows, 32) for rows in (1, 3, 17, 32)] == [1, 4, 32, 32]
