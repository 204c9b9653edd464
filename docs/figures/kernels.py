"""Figures of functions, numbers and kernels: how one value, one row, one product is computed and stored."""
import math
import struct

import svg


class Plane:
    """A pair of axes: x and y in the figure's own units to pixels."""

    def __init__(self, picture, left, top, width, height, x_range, y_range):
        self.picture, self.left, self.top, self.width, self.height = picture, left, top, width, height
        self.x_range, self.y_range = x_range, y_range

    def x(self, value):
        low, high = self.x_range
        return self.left + self.width * (value - low) / (high - low)

    def y(self, value):
        low, high = self.y_range
        return self.top + self.height * (high - value) / (high - low)

    def grid(self, xs, ys):
        for value in xs:
            self.picture.line([(self.x(value), self.top), (self.x(value), self.top + self.height)], "grid-line")
            self.picture.text(self.x(value), self.top + self.height + 18, f"{value:g}", "pale small", "middle")
        for value in ys:
            self.picture.line([(self.left, self.y(value)), (self.left + self.width, self.y(value))], "grid-line")
            self.picture.text(self.left - 8, self.y(value) + 4, f"{value:g}", "pale small", "end")

    def curve(self, function, css):
        low, high = self.x_range
        points = [low + (high - low) * i / 160 for i in range(161)]
        self.picture.line([(self.x(x), self.y(function(x))) for x in points], f"{css} thick")


def silu_of(x):
    return x / (1 + math.exp(-x))


def silu(data, say):
    picture = svg.Picture(760, 400, "SiLU beside ReLU",
                          "Two curves from x = -4 to 4. ReLU is 0 for negative x and x for positive x, with a corner at "
                          "0. SiLU is close to ReLU far from 0, but smooth: it falls to -0.278 at x = -1.278, is 0 at "
                          "0 and 0.731 at 1.", say)
    plane = Plane(picture, 60, 56, 480, 296, (-4, 4), (-1, 4))
    picture.text(60, 32, "SiLU beside ReLU", "ink title")
    plane.grid(range(-4, 5), range(-1, 5))
    plane.curve(lambda x: max(x, 0), "hue1-line dash")
    plane.curve(silu_of, "hue0-line")
    for x in (-2, -1, 0, 1, 2):
        picture.circle(plane.x(x), plane.y(silu_of(x)), 4, "hue0")
    lowest = -1.27846
    picture.line([(plane.x(lowest), plane.y(silu_of(lowest)) + 8), (plane.x(lowest), plane.y(-0.62))], "pale-line")
    picture.text(plane.x(lowest), plane.y(-0.62) + 13, f"{silu_of(lowest):.3f}", "pale small", "middle")
    picture.line([(580, 76), (612, 76)], "hue0-line thick")
    picture.text(620, 81, "silu(x)", "ink")
    picture.line([(580, 102), (612, 102)], "hue1-line thick dash")
    picture.text(620, 107, "relu(x)", "ink")
    picture.text(620, 150, "x", "pale mono small", "end")
    picture.text(708, 150, "silu(x)", "pale mono small", "end")
    for at, x in enumerate((-2, -1, 0, 1, 2)):
        picture.text(620, 172 + 20 * at, str(x), "ink mono small", "end")
        picture.text(708, 172 + 20 * at, f"{silu_of(x):.4f}", "ink mono small", "end")
    return picture


def bars(picture, left, bottom, values, scale, css, step=20):
    """Upright bars from a base line; scale: pixels for 1."""
    picture.line([(left - 4, bottom), (left + step * len(values), bottom)], "pale-line")
    for i, value in enumerate(values):
        height = abs(value) * scale
        picture.rect(left + step * i, bottom - height if value > 0 else bottom, step - 6, max(height, 0.5), css)


def rms_norm(data, say):
    row = data["rms_norm"]
    n, rms = len(row["x"]), row["rms"]
    picture = svg.Picture(820, 470, "What RMSNorm does to a row",
                          f"Three rows of {n} bars, the first {n} of {data['sizes']['dim']} numbers of a real row. First x, "
                          f"whose root mean square is {rms:.3f}. Then x divided by that: the same picture, at a root "
                          "mean square of 1. Then times the weight, one learned factor for each column: columns change "
                          "by different amounts.", say)
    picture.text(24, 32, "What RMSNorm does to a row: ‘{0}’, layer {1}, first {2} of {3} numbers".format(
        row["token"], row["layer"], n, data["sizes"]["dim"]), "ink title")
    rows = (("x", f"rms = {rms:.3f}", row["x"], 1 / rms, "hue0", rms),
            ("x / rms", "rms = 1", [x / rms for x in row["x"]], 1, "hue2", 1),
            ("y = weight · x / rms", "weight: {0:.2f} to {1:.2f}".format(min(row["weight"]), max(row["weight"])),
             row["y"], 1, "hue1", 1))
    for at, (name, note, values, to_unit, css, line) in enumerate(rows):
        base = 120 + 138 * at
        picture.text(24, base - 8, name, "ink mono small")
        picture.text(24, base + 12, note, "pale small")
        for sign in (1, -1):
            y = base - sign * 22
            picture.line([(208, y), (800, y)], "grid-line dash")
        picture.text(204, base - 18, f"+{line:.3g}", "pale small", "end")
        picture.text(204, base + 26, f"-{line:.3g}", "pale small", "end")
        bars(picture, 212, base, [value * to_unit for value in values], 22, css, 588 / n)
    return picture


def grid_of(picture, x, y, rows, columns, size, css="paper grid-line", marked=None, marked_css="tint0 hue0-line"):
    """marked(row, column): which cells are marked."""
    cells = [(row, column) for row in range(rows) for column in range(columns)]
    for row, column in sorted(cells, key=lambda at: bool(marked and marked(*at))):  # marked ones on top
        chosen = marked and marked(row, column)
        picture.rect(x + size * column, y + size * row, size, size, marked_css if chosen else css)


def matmul(data, say):
    picture = svg.Picture(820, 460, "Rows and panels of a matrix product",
                          "Left: C = A · Bᵀ. Element (m, n) of C is the product of row m of A and row n of B; both rows "
                          "are read in the order in which they lie in memory. Right: B in panels of 16 rows. In a panel, "
                          "the 16 numbers of column k lie side by side, so that one or two registers load them.", say)
    picture.text(24, 32, "Each element of C: a row of A times a row of B", "ink title")
    size = 24
    picture.text(24, 76, "A  [m, k]: tokens", "ink small")
    grid_of(picture, 24, 84, 4, 6, size, marked=lambda row, column: row == 1)
    picture.text(24, 214, "B  [n, k]: a weight", "ink small")
    grid_of(picture, 24, 222, 8, 6, size, marked=lambda row, column: row == 5, marked_css="tint1 hue1-line")
    picture.text(236, 76, "C  [m, n]", "ink small")
    grid_of(picture, 236, 84, 4, 8, size, marked=lambda row, column: (row, column) == (1, 5), marked_css="tint2 hue2-line thick")
    picture.arrow([(172, 120), (230, 120)], "hue0")
    picture.arrow([(172, 354), (368, 354), (368, 186)], "hue1")
    picture.text(180, 376, "c[1][5] = row 1 of A · row 5 of B", "ink small")
    picture.line([(462, 60), (462, 436)], "grid-line")
    picture.text(486, 76, "B in panels (stage 9): 16 rows side by side", "ink small")
    small = 17
    for panel in range(2):
        top = 104 + 150 * panel
        picture.text(486, top - 6, "panel {0}: rows {1} to {2} of B".format(panel, 16 * panel, 16 * panel + 15),
                     "pale small")
        for k in range(6):
            picture.text(526, top + small * k + 13, "k = {0}".format(k), "pale small", "end")
        grid_of(picture, 534, top, 6, 16, small, marked=lambda row, lane, panel=panel: (panel, lane) == (0, 5),
                marked_css="tint1 hue1-line")
        if panel == 0:
            picture.rect(534, top + 2 * small, 16 * small, small, "none hue0-line thick")
    for at, (css, text) in enumerate((("tint1 hue1-line", "row 5 of B: lane 5 of panel 0"),
                                      ("none hue0-line thick", "16 numbers side by side in memory,"))):
        picture.rect(486, 385 + 22 * at, 14, 14, css)
        picture.text(508, 397 + 22 * at, text, "ink small")
    picture.text(508, 437, "loaded at once: k = 2 of 16 rows", "ink small")
    return picture


def warp(data, say):
    picture = svg.Picture(820, 300, "What one request of a warp touches",
                          "Memory as a row of sectors of 8 floats. Above, lanes 0 to 31 read 32 neighbouring floats: 4 "
                          "sectors are touched, and all of their bytes are used. Below, each lane reads the first float "
                          "of a row of its own: 32 sectors are touched, and one float of 8 is used in each.", say)
    picture.text(24, 32, "What one request of a warp touches", "ink title")
    size, left = 12, 24
    for top, title, note, used in ((76, "32 neighbouring floats", "4 sectors, 128 bytes: all of them used", 32),
                                   (186, "32 floats, each in a row of its own", "32 sectors, 1024 bytes: 128 of them used", 8)):
        picture.text(left, top - 10, title, "ink")
        for sector in range(7):
            x = left + sector * (8 * size + 12)
            lone = used == 8
            for at in range(8):
                is_used = at == 0 if lone else 8 * sector + at < used
                picture.rect(x + size * at, top, size, size, "hue0" if is_used else "paper grid-line")
            if lone or sector < 4:
                picture.rect(x, top, 8 * size, size, "none hue1-line thick")
                label = "lane {0}".format(sector) if lone else "lanes {0} to {1}".format(8 * sector, 8 * sector + 7)
                picture.text(x, top + 32, label, "pale small")
        picture.text(left, top + 58, note, "ink small")
    picture.text(left, 286, "Only 7 sectors of each are drawn.", "pale small")
    return picture


def rope(data, say):
    head_dim, theta = data["sizes"]["head_dim"], data["sizes"]["rope_theta"]
    half = head_dim // 2
    picture = svg.Picture(820, 500, "RoPE: a pair of numbers is rotated by its position",
                          "Left: the pair (1, 0) on a circle at positions 0 to 5 with inv_freq = 1; each position turns it "
                          f"by one more radian. Right: dials for pairs 0, 4, 8, 12 and 23 of a head of {head_dim} numbers, at "
                          "positions 0, 1, 2, 4 and 8. Pair 0 turns fast, pair 23 hardly moves, because inv_freq[i] = "
                          f"{theta:g} to the power of minus 2i / {head_dim}.", say)
    picture.text(24, 32, "RoPE: a pair of numbers is rotated by its position", "ink title")
    x, y, radius = 160, 214, 104
    picture.circle(x, y, radius, "none grid-line")
    picture.line([(x - radius - 14, y), (x + radius + 14, y)], "grid-line")
    picture.line([(x, y - radius - 14), (x, y + radius + 14)], "grid-line")
    for position in range(6):
        px, py = x + radius * math.cos(position), y - radius * math.sin(position)
        picture.line([(x, y), (px, py)], "hue0-line thick" if position else "pale-line thick")
        picture.circle(px, py, 4, "hue0" if position else "pale")
        picture.text(x + (radius + 16) * math.cos(position), y - (radius + 16) * math.sin(position) + 5,
                     str(position), "ink small bold", "middle")
    picture.text(24, 366, "Pair 0, inv_freq[0] = 1:", "ink")
    picture.text(24, 386, "one radian (57.3°) per position.", "ink")
    picture.text(24, 414, "x[i]      = x[i]·cos − x[i+half]·sin", "ink mono small")
    picture.text(24, 432, "x[i+half] = x[i+half]·cos + x[i]·sin", "ink mono small")
    picture.text(24, 458, f"half = head_dim / 2 = {half};", "pale small")
    picture.text(24, 476, "both lines use the old values", "pale small")
    positions, pairs = (0, 1, 2, 4, 8), (0, 4, 8, 12, half - 1)
    picture.text(330, 76, "pair i", "pale small")
    picture.text(384, 76, "inv_freq[i]", "pale small")
    for column, position in enumerate(positions):
        picture.text(522 + 62 * column, 76, "position {0}".format(position) if column == 0 else str(position),
                     "pale small", "middle")
    for row, pair in enumerate(pairs):
        centre = 120 + 72 * row
        frequency = theta ** (-2 * pair / head_dim)
        picture.text(344, centre + 5, str(pair), "ink", "middle")
        picture.text(384, centre + 5, f"{frequency:.5f}".rstrip("0").rstrip("."), "ink mono small")
        for column, position in enumerate(positions):
            cx, angle = 522 + 62 * column, position * frequency
            picture.circle(cx, centre, 25, "box grid-line")
            picture.line([(cx, centre), (cx + 22 * math.cos(angle), centre - 22 * math.sin(angle))], "hue0-line thick")
            picture.circle(cx + 22 * math.cos(angle), centre - 22 * math.sin(angle), 3.5, "hue0")
    picture.text(330, 460, "angle       = position · inv_freq[i]", "ink mono small")
    picture.text(330, 480, f"inv_freq[i] = {theta:g}^(−2i / head_dim)", "ink mono small")
    return picture


def simd(data, say):
    picture = svg.Picture(820, 500, "SIMD: lanes and accumulators",
                          "Top: one instruction multiplies and adds eight pairs of numbers, one pair per lane of a "
                          "register. Bottom: a time line. A multiply-add takes four cycles, and two may start in each cycle. "
                          "With one accumulator each multiply-add waits for the one before: 1 of 8 possible instructions. "
                          "With eight accumulators the unit always has work.", say)
    picture.text(24, 32, "One instruction, eight lanes", "ink title")
    names = (("a", "tint0 hue0-line"), ("b", "tint1 hue1-line"), ("sum", "tint2 hue2-line"))
    for row, (name, css) in enumerate(names):
        y = 52 + 44 * row
        picture.text(66, y + 21, name, "ink mono small", "end")
        for lane in range(8):
            picture.rect(78 + 58 * lane, y, 54, 32, css, 3)
            text = f"{name}[{lane}]" if row < 2 else "+= a·b"
            picture.text(105 + 58 * lane, y + 21, text, "ink mono small", "middle")
    picture.text(566, 74, "a register of 256 bits:", "ink small")
    picture.text(566, 92, "8 lanes of 32 bits", "ink small")
    picture.text(566, 132, "fma: sum[i] += a[i] · b[i]", "ink mono small")
    picture.text(566, 150, "in all 8 lanes at once", "ink small")
    picture.text(24, 222, "Accumulators: why one sum is slow", "ink title")
    left, cycle = 190, 37
    for at in range(17):
        picture.line([(left + cycle * at, 252), (left + cycle * at, 446)], "grid-line")
        if at < 16:
            picture.text(left + cycle * (at + 0.5), 248, str(at), "pale small", "middle")
    picture.text(left - 10, 248, "cycle", "pale small", "end")
    picture.text(24, 276, "1 accumulator", "ink bold")
    picture.text(24, 294, "4 fma in 16 cycles", "pale small")
    for at in range(4):
        picture.box(left + 4 * cycle * at + 1, 258, 4 * cycle - 2, 24, "sum 0", "tint0 hue0-line", "ink small", 3)
    picture.text(24, 332, "8 accumulators", "ink bold")
    picture.text(24, 350, "2 fma start per cycle", "pale small")
    for which in range(8):
        y, start = 306 + 17 * which, which // 2
        for at in range(4):
            begin = start + 4 * at
            width = min(4, 16 - begin) * cycle
            if width > 0:
                picture.rect(left + cycle * begin + 1, y, width - 2, 15, f"tint{which % 2 + 1} hue{which % 2 + 1}-line", 2)
                if width > 50:
                    picture.text(left + cycle * begin + 6, y + 12, "sum {0}".format(which), "ink small")
    picture.text(24, 480, "An fma takes 4 cycles and 2 may start per cycle: 4 · 2 = 8 sums must be under way.", "ink")
    return picture


def tile(data, say):
    picture = svg.Picture(820, 440, "A tile: 6 rows of A, one panel of 16 rows of B",
                          "A tile of C with 6 rows and 16 columns is kept in 12 registers of 8 lanes. For each k: two "
                          "loads fetch 16 numbers of the panel, six broadcasts fetch one number of each row of A, and 12 "
                          "multiply-adds use them. Every loaded number of B is used 6 times, every number of A 16 times.",
                          say)
    picture.text(24, 32, "A tile of C stays in registers while k runs", "ink title")
    size = 22
    grid_of(picture, 24, 200, 6, 8, size, marked=lambda row, column: column == 3)
    picture.text(24, 192, "6 rows of A", "ink small")
    x = 330
    picture.text(x, 76, "panel of B: 16 rows, packed as [k][16]", "ink small")
    grid_of(picture, x, 84, 4, 16, size, marked=lambda row, column: row == 3, marked_css="tint1 hue1-line")
    picture.text(x, 192, "tile of C: 6 x 16 = 12 registers of 8 lanes", "ink small")
    for row in range(6):
        for half in range(2):
            picture.rect(x + 8 * size * half, 200 + size * row, 8 * size, size, "tint2 hue2-line")
            for lane in range(1, 8):
                at = x + 8 * size * half + size * lane
                picture.line([(at, 200 + size * row), (at, 200 + size * (row + 1))], "grid-line")
    picture.arrow([(206, 266), (324, 266)], "hue0")
    picture.arrow([(x + 16 * size + 8, 161), (x + 16 * size + 24, 161), (x + 16 * size + 24, 266), (x + 16 * size + 6, 266)],
                  "hue1")
    picture.text(x + 16 * size + 32, 218, "load b[k]", "ink small")
    picture.text(214, 258, "broadcast a[i][k]", "ink small")
    picture.text(24, 372, "For each k:  2 loads of B,  6 broadcasts of A,  12 fma.", "ink")
    picture.text(24, 394, "Each number of B is used 6 times, each number of A 16 times, before it leaves its register.", "ink")
    picture.text(24, 416, "12 sums + 2 of B + 1 of A = 15 of the 16 registers that AVX2 has.", "ink")
    return picture


def quantised(values):
    """Q8_0 of 32 numbers: (the f16 scale, the 32 whole numbers)."""
    largest = max(map(abs, values)) / 127
    scale = struct.unpack("<e", struct.pack("<e", largest))[0]
    away = lambda x: math.floor(abs(x) + 0.5) * (1 if x > 0 else -1)  # noqa: E731
    return scale, [away(value * (1 / largest)) for value in values]


def q8_0_block(data, say):
    block = data["q8_0"]
    values = block["x"]
    scale, whole = quantised(values)
    bits = struct.unpack("<H", struct.pack("<e", scale))[0]
    worst = max(abs(value - scale * q) for value, q in zip(values, whole))
    picture = svg.Picture(820, 540, "A Q8_0 block in bits",
                          f"A block keeps 32 weights in 34 bytes: a scale of 16 bits, here {scale:.6f}, then 32 whole "
                          "numbers of 8 bits from -127 to 127. Weight = scale times whole number. The bars are 32 real "
                          "weights; the points, which nearly cover their ends, are what comes back.", say)
    picture.text(24, 32, "A Q8_0 block: 32 weights in 34 bytes", "ink title")
    picture.text(24, 56, "{0}, row 0, first 32 of {1} weights".format(block["tensor"], block["columns"]), "pale small")
    base, unit, step = 150, 70 / max(map(abs, values)), 24
    bars(picture, 24, base, values, unit, "tint0 hue0-line", step)
    for i, q in enumerate(whole):
        picture.circle(24 + step * i + 9, base - q * scale * unit, 3, "hue1")
    picture.text(24, 246, "bar: the weight", "hue0 small bold")
    picture.text(140, 246, "point: scale · q", "hue1 small bold")
    picture.text(796, 246, "largest error {0:.6f}, half a step is {1:.6f}".format(worst, scale / 2), "pale small", "end")
    picture.text(24, 284, "in the file:", "ink small")
    picture.box(24, 294, 92, 40, f"{scale:.6f}", "tint1 hue1-line", "ink small", 3)
    picture.text(70, 350, "2 bytes", "pale small", "middle")
    for i in range(16):
        x = 124 + 42 * i
        picture.box(x, 294, 40, 40, "..." if i == 15 else str(whole[i]).replace("-", "−"), "tint0 hue0-line", "ink small", 3)
    picture.text(144, 350, "1 byte", "pale small", "middle")
    picture.text(796, 350, "32 of them", "pale small", "end")
    rows = (("scale", f"{bits:016b}", (1, 5, 10), f"0x{bits:04x}, f16"),
            ("q[0]", f"{whole[0] & 255:08b}", (1, 7), f"{whole[0]}, int8"))
    for at, (name, digits, fields, note) in enumerate(rows):
        y = 384 + 52 * at
        picture.text(24, y + 20, name, "ink mono small")
        draw_bits(picture, 84, y, digits, fields, 26)
        picture.text(84 + 26 * len(digits) + 14, y + 20, note, "pale small")
    picture.text(24, 512, "weight = scale · q", "ink mono")
    picture.text(200, 512, "{0:.6f} · {1} = {2:.6f}; before: {3:.6f}".format(scale, whole[0], scale * whole[0], values[0]),
                 "ink")
    return picture


FIELD_CSS = ("tint3 hue3-line", "tint1 hue1-line", "tint0 hue0-line")


def draw_bits(picture, x, y, digits, fields, size):
    """The bits of a number, each in its cell; fields: how many belong to sign, exponent, fraction (or sign, value)."""
    colours = FIELD_CSS if len(fields) == 3 else (FIELD_CSS[0], FIELD_CSS[2])
    at = 0
    for count, css in zip(fields, colours):
        for _ in range(count):
            picture.rect(x + size * at, y, size, 28, css)
            picture.text(x + size * (at + 0.5), y + 19, digits[at], "ink mono small", "middle")
            at += 1


def number_formats(data, say):
    value = 0.15625
    f32 = struct.unpack("<I", struct.pack("<f", value))[0]
    f16 = struct.unpack("<H", struct.pack("<e", value))[0]
    picture = svg.Picture(820, 400, "f32, f16 and bf16 in bits",
                          f"The number {value} in three formats. f32: 1 sign bit, 8 exponent bits, 23 fraction bits, "
                          f"0x{f32:08x}. f16: 1, 5 and 10, 0x{f16:04x}. bf16: 1, 8 and 7, the upper half of f32, "
                          f"0x{f32 >> 16:04x}.", say)
    picture.text(24, 32, "The number {0} in three formats".format(value), "ink title")
    rows = (("f32", f"{f32:032b}", (1, 8, 23), f"0x{f32:08x}", "up to 3.4e38, 7 decimal digits"),
            ("bf16", f"{f32 >> 16:016b}", (1, 8, 7), f"0x{f32 >> 16:04x}", "the upper half of f32: up to 3.4e38, 2 digits"),
            ("f16", f"{f16:016b}", (1, 5, 10), f"0x{f16:04x}", "up to 65504, 3 digits"))
    for at, (name, digits, fields, pattern, note) in enumerate(rows):
        y = 64 + 78 * at
        picture.text(24, y + 20, name, "ink bold")
        draw_bits(picture, 76, y, digits, fields, 22)
        picture.text(76, y + 48, pattern, "ink mono small")
        picture.text(180, y + 48, note, "pale small")
    for at, name in enumerate(("sign", "exponent", "fraction")):
        x = 76 + 130 * at
        picture.rect(x, 304, 22, 22, FIELD_CSS[at])
        picture.text(x + 30, 320, name, "ink small")
    exponent = (f32 >> 23) & 255
    fraction = 1 + (f32 & 0x7FFFFF) / 2 ** 23
    picture.text(24, 356, "value = (−1)^sign · 2^(exponent − bias) · 1.fraction;  bias: 127 for f32 and bf16, 15 for f16", "ink small")
    picture.text(24, 378, f"{value} = 2^({exponent} − 127) · {fraction:g}", "ink mono small")
    return picture
