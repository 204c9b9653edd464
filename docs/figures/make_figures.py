"""Draws the figures of the tour and of the handouts.

    python3 docs/figures/make_figures.py             from story.json, which is in the repository
    python3 docs/figures/make_figures.py --measure   asks ./stage for the numbers of models/story first

Each figure is a function of the data that returns a Picture; NAME.svg is in English, NAME.zh.svg in Chinese
(words.zh.json has the texts). A test redraws and compares.
"""
import argparse
import functools
import json
import pathlib
import re
import sys

FOLDER = pathlib.Path(__file__).resolve().parent
sys.dont_write_bytecode = True
sys.path.insert(0, str(FOLDER))
import attention  # noqa: E402
import kernels  # noqa: E402
import measure  # noqa: E402
import model_map  # noqa: E402

VALUE = re.compile(r"“[^”]*”|‘[^’]*’|\d(?:[\d.,]*\d)?")


class Chinese:
    """Looks up a text in words.zh.json, where # stands for a number or a quotation, and {0}, {1} ... for the same."""

    def __init__(self):
        self.words = json.loads((FOLDER / "words.zh.json").read_text(encoding="utf-8"))

    def __call__(self, text):
        found = self.words.get(VALUE.sub("#", text))
        return text if found is None else found.format(*VALUE.findall(text))



def map_of(stage, data, say):
    return model_map.draw(data["sizes"], say, stage)


FIGURES = {
    "map": functools.partial(map_of, None),
    **{f"map-{stage}": functools.partial(map_of, stage) for stage in model_map.MARKED},
    "silu": kernels.silu, "rms-norm": kernels.rms_norm, "matmul": kernels.matmul, "rope": kernels.rope,
    "simd": kernels.simd, "tile": kernels.tile, "warp": kernels.warp, "q8-0-block": kernels.q8_0_block,
    "number-formats": kernels.number_formats,
    "residual-stream": attention.residual_stream, "causal-mask": attention.causal_mask,
    "attention-map": attention.attention_map, "grouped-heads": attention.grouped_heads,
    "kv-cache": attention.kv_cache, "sampling": attention.sampling,
}


def pictures():
    """(file name, picture) of all of them."""
    data = json.loads((FOLDER / "story.json").read_text(encoding="utf-8"))
    chinese = Chinese()
    for name, draw in FIGURES.items():
        yield f"{name}.svg", draw(data, str)
        yield f"{name}.zh.svg", draw(data, chinese)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--measure", action="store_true", help="fill story.json first")
    if parser.parse_args().measure:
        (FOLDER / "story.json").write_text(measure.as_json(measure.story()), encoding="utf-8")
    for name, picture in pictures():
        (FOLDER / name).write_text(picture.svg(), encoding="utf-8")


if __name__ == "__main__":
    main()
