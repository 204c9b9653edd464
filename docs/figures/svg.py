"""What every figure shares: colours in light and dark, text, and a few shapes.

The hues are those of Okabe and Ito, which colour-blind readers can tell apart; a figure never says anything by hue
alone. Hue 0 is blue, 1 orange, 2 green, 3 purple, 4 yellow.
"""
import html

#        in light    in dark
INK = {
    "paper": ("#ffffff", "#161b22"), "ink": ("#1f2328", "#e6edf3"), "pale": ("#59636e", "#9198a1"),
    "grid": ("#d1d9e0", "#3d444d"), "box": ("#f6f8fa", "#21262d"),
}
HUES = (("#0072b2", "#56b4e9"), ("#b34a00", "#f0883e"), ("#00785a", "#2fc795"), ("#a8477e", "#e39ac4"),
        ("#8a6d00", "#f0c850"))
TINTS = (("#d6e9f5", "#12384f"), ("#fbe3d3", "#4d2c12"), ("#d2eee5", "#0f4335"), ("#f5dfeb", "#4a2a3d"),
         ("#f8edc4", "#453a10"))

SIZE, SMALL, TITLE = 14, 12, 16


def style():
    def rules(mode):
        colours = {name: pair[mode] for name, pair in INK.items()}
        found = [f".{name}{{fill:{colour}}}.{name}-line{{stroke:{colour}}}" for name, colour in colours.items()]
        found += [f".hue{i}{{fill:{hue[mode]}}}.hue{i}-line{{stroke:{hue[mode]}}}.tint{i}{{fill:{tint[mode]}}}"
                  for i, (hue, tint) in enumerate(zip(HUES, TINTS))]
        return "".join(found)
    return ("<style>text{font:14px system-ui,-apple-system,'Segoe UI','DejaVu Sans','Noto Sans CJK SC',sans-serif}"
            ".small{font-size:12px}.title{font-size:16px;font-weight:600}.bold{font-weight:600}"
            ".mono{font-family:ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace}"
            ".none{fill:none}.thick{stroke-width:2.5}.dash{stroke-dasharray:5 4}"
            f"{rules(0)}@media(prefers-color-scheme:dark){{{rules(1)}}}</style>")


def text_width(text, css=""):
    """An upper estimate, in pixels, whatever sans-serif font the reader has."""
    size = SMALL if "small" in css else TITLE if "title" in css else SIZE
    each = 0.61 if "mono" in css else 0.57
    return sum(size * (1.0 if letter > "\u2e7f" else each) for letter in text)


def number(value):
    return f"{value:.1f}".rstrip("0").rstrip(".")


class Picture:
    """One figure. `say` gives the reader's language for a text that stands in it."""

    def __init__(self, width, height, title, description, say=str):
        self.width, self.height, self.say = width, height, say
        self.title, self.description = say(title), say(description)
        self.parts, self.texts = [], []

    def add(self, part):
        self.parts.append(part)

    def text(self, x, y, text, css="ink", anchor="start"):
        """anchor: which end of the text is at x: start, middle or end."""
        text = self.say(text)
        width = text_width(text, css)
        left = x - {"start": 0, "middle": width / 2, "end": width}[anchor]
        self.texts.append((left, y, width, text))
        placed = "" if anchor == "start" else f' text-anchor="{anchor}"'
        self.add(f'<text x="{number(x)}" y="{number(y)}" class="{css}"{placed} '
                 f'xml:space="preserve">{html.escape(text, quote=False)}</text>')

    def rect(self, x, y, width, height, css="box grid-line", round_by=0, more=""):
        corner = f' rx="{round_by}"' if round_by else ""
        self.add(f'<rect x="{number(x)}" y="{number(y)}" width="{number(width)}" height="{number(height)}"'
                 f'{corner} class="{css}"{more}/>')

    def cell(self, x, y, width, height, hue, share, text="", css="small"):
        """A cell of a heat map: `share`, from 0 to 1, is how much of the hue covers it."""
        self.rect(x, y, width, height, "paper grid-line")
        if share > 0:
            self.rect(x, y, width, height, f"hue{hue}", more=f' fill-opacity="{share:.2f}"')
        if text:
            ink = "paper" if share > 0.55 else "ink"
            self.text(x + width / 2, y + height / 2 + 4, text, f"{ink} {css}", "middle")

    def box(self, x, y, width, height, text, css="box grid-line", text_css="ink", round_by=6):
        """A box with a text in its middle; a line break begins another line."""
        self.rect(x, y, width, height, css, round_by)
        lines = self.say(text).split("\n")
        step = 17
        top = y + height / 2 + 5 - step * (len(lines) - 1) / 2
        say, self.say = self.say, str  # it is said already
        for at, line in enumerate(lines):
            self.text(x + width / 2, top + step * at, line, text_css, "middle")
        self.say = say

    def line(self, points, css="ink-line"):
        path = "L".join(f"{number(x)},{number(y)}" for x, y in points)
        self.add(f'<path d="M{path}" class="none {css}"/>')

    def arrow(self, points, css="ink"):
        """A line through the points, with a head at the last; the last leg is level or upright."""
        (x0, y0), (x, y) = points[-2:]
        along = ((x > x0) - (x < x0), (y > y0) - (y < y0))
        self.line([*points[:-1], (x - 6 * along[0], y - 6 * along[1])], f"{css}-line")
        back = (x - 8 * along[0], y - 8 * along[1])
        across = (4 * along[1], 4 * along[0])
        corners = [(x, y), (back[0] + across[0], back[1] + across[1]), (back[0] - across[0], back[1] - across[1])]
        self.add(f'<polygon points="{" ".join(f"{number(a)},{number(b)}" for a, b in corners)}" class="{css}"/>')

    def circle(self, x, y, radius, css):
        self.add(f'<circle cx="{number(x)}" cy="{number(y)}" r="{number(radius)}" class="{css}"/>')

    def svg(self):
        body = "\n".join(self.parts)
        return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {self.height}" role="img" '
                f'aria-labelledby="title description">\n<title id="title">{html.escape(self.title)}</title>\n'
                f'<desc id="description">{html.escape(self.description)}</desc>\n{style()}\n'
                f'<rect class="paper" width="{self.width}" height="{self.height}" rx="8"/>\n{body}\n</svg>\n')
