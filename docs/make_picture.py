"""Draws what a terminal showed as an SVG, for the README.

    python3 docs/make_picture.py < session.txt > docs/run.svg

Lines that begin with "$ " are what a person typed.
"""
import html
import sys

SIZE, LINE, LEFT, TOP, COLUMNS = 14, 20, 18, 48, 100


def wrapped(line):
    """A long line as a terminal of 100 columns shows it, cut between words."""
    while len(line) > COLUMNS:
        cut = line.rfind(" ", 0, COLUMNS) + 1 or COLUMNS
        yield line[:cut]
        line = line[cut:]
    yield line


def main():
    lines = [part for line in sys.stdin.read().rstrip("\n").split("\n") for part in wrapped(line)]
    width = LEFT * 2 + int(COLUMNS * SIZE * 0.602)
    height = TOP + LINE * len(lines) + 12
    print(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
          f'font-family="ui-monospace, Menlo, Consolas, DejaVu Sans Mono, monospace" font-size="{SIZE}">')
    print(f'<rect width="{width}" height="{height}" rx="8" fill="#1d1f21"/>')
    for at, colour in enumerate(("#ff5f56", "#ffbd2e", "#27c93f")):
        print(f'<circle cx="{LEFT + 6 + 20 * at}" cy="20" r="6" fill="{colour}"/>')
    for at, line in enumerate(lines):
        colour = "#8abeb7" if line.startswith("$ ") else "#c5c8c6"
        print(f'<text x="{LEFT}" y="{TOP + LINE * at + SIZE}" fill="{colour}" '
              f'xml:space="preserve">{html.escape(line)}</text>')
    print("</svg>")


if __name__ == "__main__":
    main()
