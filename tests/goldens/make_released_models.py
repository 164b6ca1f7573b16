"""Small replicas of the models of docs/models.json, and what transformers computes with them. Needs the extra `peers`.

A replica has the settings of a released model's config.json, small sizes, and weights drawn from the names of the
parameters. tests/families/test_released_models.py loads the same replicas.

python tests/goldens/make_released_models.py
"""

import json
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))
from tests.families.replicas import draw_batch, draw_weight, read_models, shrink


def compute(config: dict) -> dict[str, np.ndarray]:
    """Return the parameters' shapes, and the last states or the head's scores for the batch, of a replica."""
    import torch
    import transformers

    settings = shrink(config)
    model_type, (architecture,) = settings.pop("model_type"), settings.pop("architectures")
    built = transformers.AutoConfig.for_model(model_type, **settings)
    built._attn_implementation = "eager"
    model = getattr(transformers, architecture)(built).eval()
    shapes = {}
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.requires_grad:  # sinusoids do not
                parameter.copy_(torch.tensor(draw_weight(name, tuple(parameter.shape))))
                shapes[name] = tuple(parameter.shape)
    tokens, mask = draw_batch(settings)
    inputs = {"input_ids": torch.tensor(tokens), "attention_mask": torch.tensor(mask)}
    if settings.get("is_encoder_decoder"):
        inputs["decoder_input_ids"] = torch.tensor(tokens[:, :4])
    with torch.no_grad():
        output = model(**inputs)
    named = {
        name: getattr(output, name).numpy()
        for name in ("logits", "last_hidden_state", "start_logits", "end_logits")
        if getattr(output, name, None) is not None
    }
    return {**named, "shapes": shapes}


def main() -> None:
    """Write released_models.npz next to this file."""
    arrays, shapes = {}, {}
    for model in read_models():
        outputs = compute(model["config"])
        shapes[model["name"]] = outputs.pop("shapes")
        for name, values in outputs.items():
            arrays[f"{model['name']}|{name}"] = values.astype(np.float32)
        print(model["name"], {name: values.shape for name, values in outputs.items()})
    arrays["shapes"] = np.frombuffer(json.dumps(shapes).encode(), np.uint8)
    np.savez_compressed(Path(__file__).parent / "released_models.npz", **arrays)


if __name__ == "__main__":
    main()
