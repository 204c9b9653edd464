"""The whole model in one picture, and the same with the part of one stage marked."""
import svg

# Where the parts stand: name -> (x, y, width, height, text, stages, does it have weights?)
PARTS = {
    "text": (20, 24, 116, 46, "text\n“Once upon a”", (), False),
    "frame": (164, 24, 126, 46, "chat template\nonly in a chat", (8,), False),
    "tokenizer": (318, 24, 100, 46, "tokenizer", (), False),
    "ids": (446, 24, 132, 46, "token ids\n{ids}", (), False),
    "embedding": (606, 24, 188, 46, "embedding: a row of {dim}\nnumbers for each id", (7,), True),
    "norm a": (96, 190, 92, 46, "rms_norm", (2,), True),
    "qkv": (208, 190, 100, 46, "linear\nq, k, v", (3, 9), True),
    "rope": (328, 190, 76, 46, "rope", (6,), False),
    "attention": (424, 190, 128, 46, "attention:\nsoftmax(q·k) · v", (6,), False),
    "o": (572, 190, 84, 46, "linear\no", (3, 9), True),
    "cache": (424, 258, 128, 34, "KV cache", (), False),
    "norm m": (96, 356, 92, 46, "rms_norm", (2,), True),
    "gate up": (208, 356, 128, 46, "linear\ngate, up", (3, 9), True),
    "swiglu": (366, 356, 156, 46, "silu(gate) · up", (1,), False),
    "down": (552, 356, 104, 46, "linear\ndown", (3, 9), True),
    "norm f": (654, 470, 92, 46, "rms_norm", (2, 7), True),
    "head": (498, 470, 128, 46, "linear (the head):\n{vocab_size:,} logits", (3, 9, 7), True),
    "softmax": (360, 470, 110, 46, "softmax:\nprobabilities", (6, 7), False),
    "sample": (252, 470, 80, 46, "sample", (7,), False),
    "next": (112, 470, 112, 46, "next token\n“ time”", (), False),
}
STREAM = 700  # x of the residual stream
ADDS = ((213, "add a"), (379, "add m"))

# What else a stage writes: (x, y, width, height, text, stages)
FRAMES = (
    (82, 150, 588, 152, "attention block: a token reads from earlier tokens", (6,)),
    (82, 316, 588, 100, "feed-forward block: each token alone", (4,)),
)

TITLE = "The whole model in one picture"
TITLE_OF_STAGE = "The whole model, with the part of stage {0} marked"
DESCRIPTION = (
    "Text is cut into tokens; each token has an id; the embedding table gives one row of {dim} numbers for each id. These "
    "rows are the residual stream, a line that runs down the right side. In each of {n_layers} layers, two blocks read "
    "the stream and add to it. The attention block: rms_norm, linear layers q, k and v, rope, attention with the KV "
    "cache, linear layer o. The feed-forward block: rms_norm, linear layers gate and up, silu(gate) times up, linear "
    "layer down. After the last layer: rms_norm, and the head gives {vocab_size} logits; softmax makes probabilities of "
    "them; sampling picks the next token, which is appended to the text, and the loop begins again.")
MARKED = {
    0: "Marked: the two additions to the residual stream.",
    1: "Marked: silu(gate) times up, inside the feed-forward block.",
    2: "Marked: rms_norm, at the beginning of both blocks and before the head.",
    3: "Marked: every linear layer.",
    4: "Marked: the feed-forward block.",
    5: "Marked: the weights in the file, and every part that has weights.",
    6: "Marked: the attention block, with rope, attention and the KV cache.",
    7: "Marked: the loop: embedding, all layers, rms_norm and head, softmax, sample, and back to the text.",
    8: "Marked: the chat template, and the loop that it starts.",
    9: "Marked: every linear layer, computed with SIMD.",
    10: "Marked: the weights of every linear layer, kept in 8 bits.",
    11: "Marked: what stage 11 computes on a GPU: rms_norm, every linear layer, attention.",
}


def badge(picture, x, y, stage, marked):
    picture.circle(x, y, 9.5, "hue1" if marked else "hue0" if marked is None else "pale")
    picture.text(x, y + 4, str(stage), "paper small bold", "middle")


def weight_mark(picture, x, y, css):
    picture.rect(x - 8, y - 8, 16, 16, css, 3)
    picture.text(x, y + 4, "w", "paper small bold", "middle")


def draw(sizes, say, stage=None):
    """stage: the one to mark, or None for the plain map."""
    title = TITLE if stage is None else TITLE_OF_STAGE.format(stage)
    description = say(DESCRIPTION.format(**sizes)) + ("" if stage is None else " " + say(MARKED[stage]))
    picture = svg.Picture(820, 610, title, description, say)

    def is_marked(stages):
        return None if stage is None else stage in stages

    for x, y, width, height, text, stages in FRAMES:
        marked = is_marked(stages)
        picture.rect(x, y, width, height, "tint1 hue1-line thick" if marked else "none grid-line", 8)
        picture.text(x + 10, y + height - 8 if stages == (6,) else y + 18, text, "small ink" if marked else "small pale")
        badge(picture, x + width - 16, y + (height - 14 if stages == (6,) else 15), stages[0], marked)
    picture.rect(66, 112, 694, 318, "none hue1-line thick dash" if is_marked((7,)) else "none pale-line dash", 10)
    picture.text(80, 132, "one layer; {n_layers} of them, one after the other".format(**sizes), "pale")

    draw_lines(picture, sizes, is_marked)
    for name, (x, y, width, height, text, stages, has_weights) in PARTS.items():
        owned = (*stages, 5) if has_weights else stages
        owned = (*owned, 10) if 9 in stages else owned
        owned = (*owned, 11) if 9 in stages or 2 in stages or name == "attention" else owned
        marked = is_marked(owned)
        picture.box(x, y, width, height, text.format(**sizes),
                    "tint1 hue1-line thick" if marked else "box pale-line", "small ink")
        if has_weights:
            weight_mark(picture, x + 3, y + 2, "hue1" if marked and stage in (5, 10) else "hue2")
        if stages:
            of_this = marked and stage != 5  # where there are only weights, the box is another stage's
            badge(picture, x + width - 4, y + 2, stage if of_this else stages[0], None if stage is None else of_this)
    draw_legend(picture, sizes, stage)
    return picture


def draw_lines(picture, sizes, is_marked):
    def link(first, second, css="ink"):
        a, b = PARTS[first], PARTS[second]
        y = a[1] + a[3] / 2
        picture.arrow([(a[0] + a[2], y), (b[0], y)] if a[0] < b[0] else [(a[0], y), (b[0] + b[2], y)], css)

    for chain in (("text", "frame", "tokenizer", "ids", "embedding"), ("norm a", "qkv", "rope", "attention", "o"),
                  ("norm m", "gate up", "swiglu", "down"), ("norm f", "head", "softmax", "sample", "next")):
        for first, second in zip(chain, chain[1:]):
            link(first, second)
    # The residual stream, thick, from the embedding to the last norm.
    picture.line([(STREAM, 70), (STREAM, 464)], "hue0-line thick")
    picture.arrow([(STREAM, 440), (STREAM, 470)], "hue0")
    picture.text(STREAM - 10, 96, "the residual stream x", "small hue0 bold", "end")
    # Into each block, and back by an addition.
    for top, (y, _), name in ((170, ADDS[0], "norm a"), (338, ADDS[1], "norm m")):
        x, box_y, width = PARTS[name][:3]
        picture.arrow([(STREAM, top), (x + width / 2, top), (x + width / 2, box_y)], "ink")
        last = PARTS["o" if name == "norm a" else "down"]
        picture.arrow([(last[0] + last[2], y), (STREAM - 11, y)])
        marked = is_marked((0,))
        picture.circle(STREAM, y, 11, "tint1 hue1-line thick" if marked else "paper ink-line")
        picture.text(STREAM, y + 5, "+", "ink bold", "middle")
        badge(picture, STREAM + 22, y - 8, 0, marked)
    # Keys and values go into the cache and come back.
    rope, cache = PARTS["rope"], PARTS["cache"]
    picture.arrow([(rope[0] + 38, 236), (rope[0] + 38, 275), (cache[0], 275)])
    picture.arrow([(488, 258), (488, 236)])
    # And again.
    marked = is_marked((7, 8))
    css = "hue1" if marked else "ink"
    picture.arrow([(112, 493), (40, 493), (40, 70)], css)
    picture.text(24, 512, "and again", "small hue1 bold" if marked else "small pale")


def draw_legend(picture, sizes, stage):
    marked = stage in (5, 10)
    picture.rect(20, 546, 780, 48, "tint1 hue1-line thick" if marked else "box grid-line", 6)
    weight_mark(picture, 38, 561, "hue1" if marked else "hue2")
    picture.text(54, 566, 
        "weights: {n_parameters:,} numbers in model.safetensors. Stage 5 reads them, stage 10 keeps most in 8 bits."
        .format(**sizes), "small ink")
    badge(picture, 38, 580, "n", None if stage is None else False)
    which = "the stage in which you write it" if stage is None else "the stage in which you write it (orange: this stage)"
    picture.text(54, 584, f"{which}. Stage 9 computes the linear layers faster than stage 3.", "small ink")
    for at, one in enumerate((5, 10)):
        badge(picture, 764 + 22 * at, 550, one, None if stage is None else one == stage)
