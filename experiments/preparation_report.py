"""What `prepare_data` says in the end."""

from collections.abc import Mapping
from typing import Any

MANY_UNKNOWN = {
    True: "is words that are not among the {:,}: an ELMo reads their characters all the same, but predicts them\n  as "
    "one, <UNK>; a larger --vocab_size knows more of them, if the text has enough of each",
    False: "is pieces that are not among the {:,}: this tokenizer was made for other text; train one (--tokenizer=…)",
}


def report(manifest: Mapping[str, Any], output: str, seconds: float, wanted: bool) -> None:
    """Say what was made, and what of it may surprise; `wanted` is whether any text was to be held out."""
    size = sum(source["bytes"] for source in manifest["sources"]) / 1e6
    tokenizer = manifest["tokenizer"]
    speed = f"{size:.1f} MB in {seconds:.1f} s ({size / seconds:.2f} MB/s)"
    print(f"\n{output}: {len(manifest['sources'])} files, {speed}, {len(manifest['shards'])} shards")
    print(f"  {tokenizer['kind']} with {tokenizer['vocab_size']:,} entries")
    for part, counts in manifest["counts"].items():
        numbers = "".join(f"{counts[name]:>13,} {name}" for name in ("documents", "sentences", "words", "tokens"))
        print(f"  {part:8}{numbers}   unknown {counts['unknown'] / max(1, counts['tokens']):.4%}")
    counts = manifest["counts"]["train"]
    if (share := counts["unknown"] / max(1, counts["tokens"])) > 0.1:
        print(f"  {share:.0%} of the text {MANY_UNKNOWN[tokenizer['kind'] == 'words'].format(tokenizer['vocab_size'])}")
    for what, count in manifest["skipped"].items():
        print(f"  skipped or mended: {count:,} × {what}")
    if not manifest["counts"]["heldout"]["documents"] and wanted:
        print(
            "  nothing is held out: too few documents; is every line a text of its own (--documents=line)? else raise"
        )
        print("  --heldout, try another --seed, or set off chapters by blank lines")
