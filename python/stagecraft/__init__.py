"""Stagecraft's engine in Python.

    import stagecraft
    model = stagecraft.Model("models/story")
    for piece in model.generate("Once upon a time", seed=7):
        print(piece, end="", flush=True)

The engine itself needs no Python: this package is for notebooks, where one looks at what a model computes.
"""
from ._engine import Error, Generation, Model, __version__

__all__ = ["Error", "Generation", "Model", "__version__"]
