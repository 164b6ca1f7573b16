"""Fields that the task networks share; each network's config adds its own."""

from ml_collections import ConfigDict

from . import finetune


def fields() -> ConfigDict:
    """Return the fields of every run with a task network."""
    c = finetune.fields()
    c.network = ""
    c.encoder = ""  # anything `load` understands (BERT: each word's first piece is read); empty: none
    c.tune_encoder = False  # fine-tune it too; otherwise its vectors are computed once and kept on disk
    # Epochs that the encoder first trains on the training texts, as a language model; 0: none.
    c.adapt = ConfigDict({"epochs": 0.0, "learning_rate": 1e-3, "batch_size": 32})
    c.cache = ""  # the folder of these vectors; empty: below the run directory
    c.layers = ""  # layers of the encoder to mix (0: its words, -1 or top: the last), with commas; empty: all
    c.directions = "both"  # forward or backward: only this direction of a language model
    c.places = "input"  # where they enter the network; for several places, with commas, each has its own mixture
    c.mix_dropout = 0.5
    c.mix_l2 = 0.1  # λ in λ·‖w‖² for the weights of the mixtures
    c.vectors = ""  # a file in the format of GloVe, word2vec or fastText, or a run of static; empty: random vectors
    c.word_size = 0  # width of a word's vector; 0: 100, or as in the file
    c.tune_words = True  # False: word vectors are not trained
    c.min_count = 5  # a word that the training data have so often gets a row of its own
    # The vector of a word that is not in the file and is rarer than that: unk: one for all; classes: one per
    # class (number, capitals, suffix, particle); characters: one for all, and a vector of the characters;
    # vectors: the file's, also for words first met in prediction; random: drawn from a hash of the word;
    # vectors_or_random: the file's, else drawn.
    c.unknown = "characters"
    # A vector of each word's characters, appended to the word's own: cnn, gru, lstm or none; empty: cnn with
    # unknown=characters, else none.
    c.character_vectors = ""
    c.character_size = 128  # filters of the cnn; cells in each direction of gru and lstm
    c.character_embedding_size = 16
    c.character_layers = 1  # of gru and lstm
    c.optimizer.update(name="adamw", schedule="constant", learning_rate=1e-3, warmup=0.0, decay=0.0, clip=5.0)
    return c
