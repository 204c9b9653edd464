"""Figures of attention, of the residual stream and of the choice of a token, from what models/story computes."""
import svg


def percent(share, digits=0):
    """A percentage that is 0% or 100% only where the share is 0 or 1."""
    text, least = f"{100 * share:.{digits}f}%", 10 ** -digits
    if share < 1 and text == f"{100:.{digits}f}%":
        return f"> {100 - least:g}%"
    return f"< {least:g}%" if share > 0 and float(text[:-1]) == 0 else text


def heat(picture, x, y, size, values, texts, shown, hue=0):
    """A lower triangle of cells; shown(row, column): is the cell part of it?"""
    for row, line in enumerate(values):
        for column, share in enumerate(line):
            if shown(row, column):
                picture.cell(x + size * column, y + size * row, size, size, hue, share, texts[row][column])
            else:
                picture.rect(x + size * column, y + size * row, size, size, "grid grid-line")


def labels(picture, x, y, size, tokens, above=True):
    for at, token in enumerate(tokens):
        picture.text(x - 8, y + size * (at + 0.5) + 4, token, "ink small", "end")
        if above:
            picture.text(x + size * (at + 0.5), y - 8, token, "ink small", "middle")


def causal_mask(data, say):
    found = data["attention"]
    n = 5
    tokens, scores = found["tokens"][:n], [row[:n] for row in found["scores"][:n]]
    shares = [row[:n] for row in found["probabilities"][:n]]
    picture = svg.Picture(820, 384, "The causal mask",
                          f"Three grids of {n} by {n} for the tokens “{' '.join(tokens)}”; a row is a query, a column a key. "
                          "First all scores q·k / sqrt(head_dim). Then the mask removes every key that comes after the "
                          "query: the upper right triangle. Then softmax makes each row sum to 1.", say)
    picture.text(24, 32, "The causal mask: layer {0}, head {1} of models/story".format(found["layer"], found["head"]),
                 "ink title")
    size, top = 44, 96
    lefts = (88, 338, 588)
    titles = ("1. scores: q·k / √head_dim", "2. mask: no later keys", "3. softmax: rows sum to 1")
    largest = max(max(map(abs, row)) for row in scores)
    for at, (left, title) in enumerate(zip(lefts, titles)):
        picture.text(left, 66, title, "ink small bold")
        for row in range(n):
            for column in range(n):
                x, y = left + (size - 2) * column, top + (size - 2) * row
                if at and column > row:
                    picture.rect(x, y, size - 2, size - 2, "grid grid-line")
                    picture.text(x + size / 2 - 1, y + size / 2 + 3, "−∞" if at == 1 else "0", "pale small", "middle")
                elif at < 2:
                    picture.cell(x, y, size - 2, size - 2, 0 if scores[row][column] > 0 else 1,
                                 abs(scores[row][column]) / largest * 0.5, f"{scores[row][column]:.1f}".replace("-", "−"))
                else:
                    picture.cell(x, y, size - 2, size - 2, 0, shares[row][column], f"{shares[row][column]:.2f}")
        labels(picture, left, top, size - 2, tokens if at == 0 else [""] * n, False)
        for column, token in enumerate(tokens):
            picture.text(left + (size - 2) * (column + 0.5), top - 8, token, "pale small", "middle")
    picture.text(88, 336, "row: the query, the token that reads", "pale small")
    picture.text(88, 354, "column: the key, the token that is read", "pale small")
    picture.text(338, 336, "Row i keeps columns 0 to i.", "pale small")
    picture.text(338, 354, "exp(−∞) = 0, so the weight is 0.", "pale small")
    return picture


def attention_map(data, say):
    found = data["attention"]
    tokens, shares = found["tokens"], found["probabilities"]
    n, size = len(tokens), 56
    picture = svg.Picture(820, 120 + size * n, "An attention map",
                          " ".join([say(f"A triangle of percentages for the text “{found['text']}”. Each row is a token and "
                                        "says how much it reads from itself and from each earlier token; a row sums to "
                                        "100%."),
                                    *(say("“{0}” reads most from “{1}”.".format(tokens[row], tokens[shares[row].index(
                                        max(shares[row]))])) for row in range(1, n))]), say)
    picture.text(24, 32, "Who reads from whom: “{0}”, layer {1}, head {2}".format(
        found["text"], found["layer"], found["head"]), "ink title")
    left, top = 150, 96
    heat(picture, left, top, size, shares, [[f"{100 * value:.0f}%" for value in row] for row in shares],
         lambda row, column: column <= row)
    labels(picture, left, top, size, tokens)
    picture.text(left + size * n / 2, 62, "read from (key)", "pale small", "middle")
    picture.text(24, 88, "reads (query)", "pale small")
    right = left + size * n + 24
    picture.text(right, 116, "Each row sums to 100%.", "ink small")
    picture.text(right, 136, "Grey: later tokens,", "ink small")
    picture.text(right, 154, "hidden by the causal mask.", "ink small")
    best = max(((row, column) for row in range(1, n) for column in range(1, row)), key=lambda at: shares[at[0]][at[1]])
    picture.text(right, 190, "‘{0}’ reads {1:.0f}%".format(tokens[best[0]], 100 * shares[best[0]][best[1]]), "ink small bold")
    picture.text(right, 208, "from ‘{0}’.".format(tokens[best[1]]), "ink small bold")
    return picture


def grouped_heads(data, say):
    picture = svg.Picture(820, 440, "Query heads share key and value heads",
                          "Three rows of four query heads. Multi-head attention: four key and value heads, one for each "
                          "query head. Grouped-query attention, as in models/story: two, each shared by two neighbouring "
                          "query heads. Multi-query attention: one, shared by all four.", say)
    sizes = data["sizes"]
    picture.text(24, 32, "Query heads share key and value heads", "ink title")
    rows = (("multi-head", 4), ("grouped-query:\nmodels/story", 2), ("multi-query", 1))
    for at, (name, n_kv) in enumerate(rows):
        top = 64 + 112 * at
        for line, part in enumerate(picture.say(name).split("\n")):
            picture.text(24, top + 24 + 18 * line, part, "ink bold" if line == 0 else "pale small")
        for head in range(4):
            x = 210 + 96 * head
            group = head * n_kv // 4
            css = f"tint{group if n_kv > 1 else 0} hue{group if n_kv > 1 else 0}-line"
            picture.box(x, top, 80, 32, f"q {head}", css, "ink small")
            target = 210 + 96 * ((group + 0.5) * 4 / n_kv - 0.5) + 40
            picture.line([(x + 40, top + 32), (target, top + 58)], "pale-line")
        for group in range(n_kv):
            x = 210 + 96 * ((group + 0.5) * 4 / n_kv - 0.5)
            css = f"tint{group if n_kv > 1 else 0} hue{group if n_kv > 1 else 0}-line"
            picture.box(x, top + 58, 80, 32, f"k, v {group}", css, "ink small")
        kept = 2 * sizes["n_layers"] * n_kv * sizes["head_dim"]
        picture.text(620, top + 44, "cache: {0:,} numbers".format(kept), "ink small")
        picture.text(620, top + 62, "per token, all layers", "pale small")
    picture.text(24, 418, "kv_head = head / (n_heads / n_kv_heads): neighbours share", "ink mono small")
    return picture


def kv_cache(data, say):
    sizes, tokens = data["sizes"], data["cache"]["tokens"]
    per_token = 2 * sizes["n_layers"] * sizes["n_kv_heads"] * sizes["head_dim"]
    n_prompt = data["cache"]["n_prompt"]
    passes = len(tokens) - n_prompt + 1
    picture = svg.Picture(820, 124 + 62 * passes, "A KV cache that grows",
                          f"The prompt of {n_prompt} tokens is computed in one pass, and its keys and values go into the "
                          "cache. Each later pass computes one token, reads the keys and values of all earlier tokens "
                          "from the cache, and appends its own.", say)
    picture.text(24, 32, "The cache grows by one position per token", "ink title")
    width = 62
    left = 150
    for at in range(passes):
        top, filled = 62 + 62 * at, n_prompt + at
        picture.text(24, top + 20, "pass {0}".format(at + 1), "ink bold")
        new = n_prompt if at == 0 else 1
        picture.text(24, top + 38, "computes {0}".format(new), "pale small")
        for column in range(len(tokens)):
            x = left + width * column
            if column >= filled:
                picture.rect(x, top, width - 4, 44, "none grid-line dash", 4)
                continue
            is_new = column >= filled - new
            picture.rect(x, top, width - 4, 44, "tint1 hue1-line thick" if is_new else "tint0 hue0-line", 4)
            picture.text(x + width / 2 - 2, top + 18, tokens[column], "ink small", "middle")
            picture.text(x + width / 2 - 2, top + 35, f"k{column} v{column}", "pale small", "middle")
        picture.text(left + width * len(tokens) + 12, top + 27, "{0:,} numbers".format(filled * per_token), "ink small")
    y = 62 + 62 * passes + 16
    picture.rect(150, y - 12, 16, 16, "tint1 hue1-line thick")
    picture.text(172, y + 1, "computed in this pass", "ink small")
    picture.rect(330, y - 12, 16, 16, "tint0 hue0-line")
    picture.text(352, y + 1, "read from the cache", "ink small")
    picture.text(24, y + 30, "{0:,} numbers per token: a key and a value of {1} heads of {2} in each of {3} layers".format(
        per_token, sizes["n_kv_heads"], sizes["head_dim"], sizes["n_layers"]), "pale small")
    return picture


def residual_stream(data, say):
    found = data["stream"]
    steps = found["steps"]
    row = 34
    picture = svg.Picture(820, 110 + row * len(steps), "The residual stream",
                          " ".join([say("The row of the last token of “{0}” as it passes through the layers.".format(
                              found["text"])), *(say("After {0}: size {1:.2f}, and the head would guess “{2}” with {3}.".format(
                                  step["name"], step["rms"], step["guess"], percent(step["probability"])))
                                                 for step in steps)]), say)
    picture.text(24, 32, "The residual stream: the last row of “{0}”".format(found["text"]), "ink title")
    picture.text(74, 70, "after", "pale small")
    picture.text(250, 70, "size of x (rms)", "pale small")
    picture.text(536, 70, "guess, if the model stopped here", "pale small")
    largest = max(step["rms"] for step in steps)
    top = 84
    picture.line([(44, top + 10), (44, top + row * len(steps) - 6)], "hue0-line thick")
    for at, step in enumerate(steps):
        y = top + row * at + 18
        if at:
            picture.circle(44, y - 4, 10, "paper ink-line")
            picture.text(44, y + 1, "+", "ink bold", "middle")
        else:
            picture.circle(44, y - 4, 6, "hue0")
        picture.text(74, y, step["name"], "ink small")
        picture.rect(250, y - 14, 200 * step["rms"] / largest, 20, "tint0 hue0-line", 2)
        picture.text(258 + 200 * step["rms"] / largest, y, f"{step['rms']:.2f}", "ink small")
        picture.text(536, y, f"“{step['guess']}”", "ink small bold")
        picture.rect(650, y - 14, 110 * step["probability"], 20, "tint1 hue1-line", 2)
        picture.text(656 + 110 * step["probability"], y, percent(step["probability"]), "ink small")
    return picture


def sampling(data, say):
    found = data["next"]
    picture = svg.Picture(820, 440, "Sampling at three temperatures",
                          " ".join([say(f"The {len(found['tokens'])} likeliest tokens after “{found['text']}”, with their "
                                        "probabilities at three temperatures. A low temperature gives nearly all to the "
                                        "first; a high one spreads it."),
                                    *(say(f"At {one['temperature']}:") + " " + ", ".join(
                                        f"{token} {percent(share)}" for token, share in zip(found["tokens"], one["shares"]))
                                      + "." for one in found["at"])]), say)
    picture.text(24, 32, "After “{0}”: the next token at three temperatures".format(found["text"]), "ink title")
    for at, one in enumerate(found["at"]):
        left = 110 + 236 * at
        picture.text(left, 70, "temperature {0}".format(one["temperature"]), "ink bold")
        for row, share in enumerate(one["shares"]):
            y = 86 + 34 * row
            if at == 0:
                picture.text(98, y + 16, found["tokens"][row], "ink small", "end")
            picture.rect(left, y, max(160 * share, 1), 22, f"tint{at} hue{at}-line", 2)
            picture.text(left + 6 + 160 * share, y + 16, percent(share, 1), "ink small")
        y = 86 + 34 * len(one["shares"])
        rest = 1 - sum(one["shares"])
        if at == 0:
            picture.text(98, y + 16, "all others", "pale small", "end")
        picture.rect(left, y, max(160 * rest, 1), 22, "box grid-line", 2)
        picture.text(left + 6 + 160 * rest, y + 16, percent(rest, 1), "pale small")
    picture.text(24, 418, "p = softmax(logits / temperature). The order never changes; the differences do.", "ink")
    return picture
