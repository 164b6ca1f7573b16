"""The peer of `bert_encode.py`, run by the interpreter given to --peers: the usual loop over batches."""

import json
import sys
import time
from pathlib import Path


def main(folder: Path, batch_size: int) -> None:
    """Print a description with the first vectors; then, for each line read, encode everything and print the seconds."""
    import torch
    import transformers

    sentences = json.loads((folder / "sentences.json").read_text(encoding="utf-8"))
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.BertModel.from_pretrained(folder).eval()

    def encode(texts: list[str]) -> list:
        results = []
        with torch.no_grad():
            for start in range(0, len(texts), batch_size):
                batch = tokenizer(texts[start : start + batch_size], padding=True, truncation=True, return_tensors="pt")
                results.append(model(**batch).last_hidden_state.numpy())
        return results

    encode(sentences)
    about = f"transformers {transformers.__version__}, torch {torch.__version__}, {torch.get_num_threads()} threads"
    print(json.dumps({"about": about, "vectors": encode(sentences[:4])[0][:, 0, :4].tolist()}), flush=True)
    for _ in sys.stdin:
        start = time.perf_counter()
        encode(sentences)
        print(time.perf_counter() - start, flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
