"""Which weight format a folder holds."""

from collections.abc import Iterator
from pathlib import Path

from bert_elmo_jax.families import Family, all_families
from bert_elmo_jax.families.family import WeightFormat


def list_formats() -> dict[str, tuple[Family, WeightFormat]]:
    """Return every weight format by name, with the first family that has it."""
    formats: dict[str, tuple[Family, WeightFormat]] = {}
    for family in all_families():
        for name, format in family.formats.items():
            formats.setdefault(name, (family, format))
    return formats


def detect(path: str | Path) -> str:
    """Return the name of the only format of a folder's weights, of a checkpoint's prefix, or of a single file."""
    path, formats = Path(path), list_formats()
    if not path.is_dir():
        for name, (_, format) in formats.items():
            if format.is_file(path):
                return name
        if path.is_file():
            raise ValueError(f"{path} is a file: give its folder, which also holds the configuration")
        raise FileNotFoundError(
            f"{path} is neither a folder nor the prefix of a TensorFlow checkpoint ({path.name}.index does not exist)"
        )
    found = _find(path)
    if len(found) > 1:
        listed = " and ".join(f"{formats[name][1].owner} ({', '.join(files)})" for name, files in found.items())
        choices = " or ".join(f'format="{name}"' for name in found)
        raise ValueError(
            f"{path} holds weights in {len(found)} formats: {listed}. Choose one ({choices}), or move the others away."
        )
    if not found:
        raise FileNotFoundError(" ".join(_explain(path)))
    return next(iter(found))


def _find(folder: Path) -> dict[str, list[str]]:
    """Return the files of each format that a folder holds."""
    found = {name: format.files(folder) for name, (_, format) in list_formats().items()}
    return {name: files for name, files in found.items() if files}


def _explain(path: Path) -> Iterator[str]:
    """Yield the sentences of the error about a folder without weights."""
    here = sorted(child.name + "/" * child.is_dir() for child in path.iterdir())
    shown = ", ".join(here[:20]) + (f" and {len(here) - 20} more" if len(here) > 20 else "")
    formats = [format for _, format in list_formats().values()]
    looked = [f"{format.owner} ({format.looks_like})" for format in formats]
    listed = f"{', '.join(looked[:-1])} and {looked[-1]}"
    yield f"{path} holds no weights. Looked for {listed}. Found {shown or 'nothing'}."
    yield from filter(None, (format.advice(path) for format in formats))
    inside = [child.name for child in sorted(path.iterdir()) if child.is_dir() and _find(child)]
    if inside:
        yield f"Subfolders with weights: {', '.join(inside)}; give that path."
