"""A page of docs/ or stages/ as lines for a terminal: paragraphs and tables fit its width, and a figure is shown as its
description."""
import html
import re

from shared import course
from shared import screen

FENCE = re.compile(r"^```\w*\n(.*?)\n```$", re.M | re.S)
FIGURE = re.compile(r"!\[(.*?)\]\((.*?)\)")
LINK = re.compile(r"\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\(([^)\s]+)\)")
ITEM = re.compile(r"(?:-|\d+\.) ")
DETAILS = re.compile(r"<details><summary>(.*?)</summary>(.*?)</details>", re.S)  # what is folded, and its title
HINT = re.compile(r"(?:Hint|提示) \d")  # such a title


def shown_link(match):
    """A link to another site or to code needs its address; other pages are read with ./stage read."""
    text, target = match.groups()
    if re.match(r"[a-z]+:", target):
        return f"{text} <{target}>"
    address = re.sub(r"^(\.\./)+", "", target)
    if target.startswith("#") or ".md" in target:
        return text
    return address if address.endswith(text) else f"{text} ({address})"


def plain(text, with_addresses=False):
    """A paragraph without the marks that only a browser needs."""
    text = re.sub(r"<!--.*?-->|</?details>|</?summary>", "", FIGURE.sub("", text), flags=re.S)
    text = re.sub(r"</?code>", "`", text)
    text = LINK.sub(shown_link if with_addresses else r"\1", text)
    text = re.sub(r"\*\*(.+?)\*\*", r"\1", text, flags=re.S)
    text = re.sub(r"(?<![a-zA-Z0-9])\*(\w[^*]*)\*", r"\1", text)
    # Chinese has no blank between two lines, nor after its punctuation.
    text = re.sub(r"(?<=[\u2e80-\uffef])\n *(?=[\u2e80-\uffef])|(?<=[\u3000-\u303f\uff00-\uffef])\n *", "", text)
    return html.unescape(re.sub(r"\s+", " ", text)).strip()


# ---- tables -------------------------------------------------------------------------------------


def widths(rows, room):
    """The widths of the columns: as wide as their texts, or the widest ones narrower until all fit. None if a word is
    too long."""
    columns = list(zip(*rows))
    found = [max(map(course.width, column)) for column in columns]
    least = [max((course.width(word) for cell in column for word in screen.WORDS.findall(cell)), default=0)
             for column in columns]
    while sum(found) + 2 * len(found) - 2 > room:
        over = [at for at, width in enumerate(found) if width > least[at]]
        if not over:
            return None
        found[max(over, key=found.__getitem__)] -= 1
    return found


def table(text, room):
    rows = [[plain(cell.replace(r"\|", "|"), True) for cell in re.split(r"(?<!\\)\|", line.strip().strip("|"))]
            for line in text.split("\n")]
    head, rows = rows[0], rows[2:]  # the second row is the line below the head
    rows = [(row + [""] * len(head))[:len(head)] for row in [head, *rows] if any(row)]
    columns = widths(rows, room)
    for row in rows:
        yield from side_by_side(row, columns) if columns else one_below_the_other(row, room)


def side_by_side(row, columns):
    cells = [list(course.wrapped(cell, width)) for cell, width in zip(row, columns)]
    for at in range(max(map(len, cells))):
        parts = [course.padded(cell[at] if at < len(cell) else "", width) for cell, width in zip(cells, columns)]
        yield "  ".join(parts).rstrip()


def one_below_the_other(row, room):
    yield from course.wrapped(row[0], room)
    yield from course.wrapped(" · ".join(filter(None, row[1:])), room, "    ", "    ")


# ---- a page -------------------------------------------------------------------------------------


def pieces(text):
    """Splits text without code into headings, figures, tables, list items and paragraphs."""
    found = []
    for line in text.split("\n"):
        begins = (not line.strip() or not found or found[-1].startswith(("#", "![")) or line.startswith(("#", "!["))
                  or ITEM.match(line) or line.startswith("|") != found[-1].startswith("|"))
        if begins:
            found.append(line)
        else:
            found[-1] += "\n" + line
    return found


def figure(match, folder, room):
    """The figure's own description, if it has one. The map is described by the tour."""
    path = (folder / match[2]).resolve()
    text = path.read_text(encoding="utf-8") if path.suffix == ".svg" and path.exists() else ""
    described = None if path.name.startswith("map") else re.search(r"<desc[^>]*>(.*?)</desc>", text, re.S)
    says = html.unescape(described[1]) if described else match[1]
    yield from course.wrapped(f"[{path.name}] {says}", room, "  | ", "  | ")


def piece_lines(piece, room, folder):
    heading, figures = re.match(r"#+ (.*)", piece), FIGURE.search(piece)
    if heading:
        yield course.paint(plain(heading[1]), "1")
    elif figures and folder:
        yield from figure(figures, folder, room)
    elif piece.startswith("|"):
        yield from table(piece, room)
    elif plain(piece):
        item, margin = ITEM.match(piece), re.match(r"\n*( *)", piece)[1]
        inside = margin + " " * (item.end() if item else 0)
        yield from course.wrapped(plain(piece, bool(folder)), room, margin, inside)


def rendered(markdown, room, folder=None):
    """The page as lines. Code stays as it is, or breaks between words if it is wider than the room. folder: the page's,
    if descriptions of figures and addresses of links are to be shown."""
    for at, part in enumerate(FENCE.split(markdown)):
        if at % 2:
            for line in part.split("\n"):
                yield from screen.fitted(f"  {line}".rstrip(), room if folder else None)
            yield ""
            continue
        parts = pieces(part)
        for piece, then in zip(parts, [*parts[1:], ""]):
            lines = list(piece_lines(piece, room, folder))
            yield from lines
            if lines and not (ITEM.match(then) or piece.startswith("#")):
                yield ""
