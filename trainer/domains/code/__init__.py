"""Programming problems judged by their tests: DeepCoder, LiveCodeBench, HumanEval, codeio, or synthetic ones."""
