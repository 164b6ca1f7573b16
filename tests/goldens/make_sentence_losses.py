"""Losses of sentence-transformers and their gradients, for tests/losses/test_similarity.py. Needs the extra `peers`.

python tests/goldens/make_sentence_losses.py
"""

from pathlib import Path

import numpy as np

LOSSES = {
    "MultipleNegativesRankingLoss": 3,  # texts of an example
    "MultipleNegativesSymmetricRankingLoss": 2,
    "CoSENTLoss": 2,
    "TripletLoss": 3,
    "CosineSimilarityLoss": 2,
}


def main() -> None:
    """Write sentence_losses.npz next to this file."""
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer import losses, modules

    draw = np.random.default_rng(0)
    arrays = {name: draw.normal(size=(7, 6)).astype(np.float32) for name in ("anchors", "positives", "negatives")}
    arrays["scores"] = np.array([0.2, 0.9, 0.2, 0.5, 1.0, 0.0, 0.5], np.float32)
    model = SentenceTransformer(modules=[modules.BoW(vocab=["a"])])
    for name, texts in LOSSES.items():
        vectors = [torch.tensor(x, requires_grad=True) for x in list(arrays.values())[:texts]]
        loss = getattr(losses, name)(model).compute_loss_from_embeddings(vectors, torch.tensor(arrays["scores"]))
        loss.backward()
        arrays[f"{name}/loss"] = loss.detach().numpy()
        for part, vector in zip(("anchors", "positives", "negatives"), vectors):
            arrays[f"{name}/{part}"] = vector.grad.numpy()
    np.savez(Path(__file__).parent / "sentence_losses.npz", **arrays)


if __name__ == "__main__":
    main()
