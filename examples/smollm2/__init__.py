"""A real pretrained model on real problems: SmolLM2-135M-Instruct on HumanEval, through ``POST /search``."""
