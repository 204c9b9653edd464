"""The parts of the repository's files that docs/adding-*.md quote."""
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
ADDING = tuple(f"docs/adding-{what}.md" for what in ("an-architecture", "an-operator", "a-step", "a-format"))
PART = re.compile(r"^In `([^`\n]+)`:\n```(\w+)\n(.*?)^```$", re.M | re.S)
EVERY = re.compile(r"every\s+file\s+in\s+`src/`\s+and\s+`tests/`\s+that\s+names\s+`(\w+)`\s+is\s+on\s+this\s+page")
NEW = re.compile(r"^New files?\b[^:\n]*: ((?:`[^`]+`(?:,\s+)?)+)", re.M)


def hunks(diff):
    """[(text before, text after)] of a diff; a line "@@" begins the next place in the file."""
    places = [[]]
    for line in diff.splitlines():
        if line == "@@":
            places.append([])
        else:
            places[-1].append(line)
    return [tuple("".join(line[1:] + "\n" for line in lines if line[:1] not in without) for without in "+-")
            for lines in places]


def parts(page):
    """[(file, text that it must contain)]"""
    for file, language, text in PART.findall(page):
        if language == "diff":
            yield from ((file, after) for _, after in hunks(text))
        else:
            yield file, text


def additions(page):
    """[(file, text before, text after)]"""
    for file, language, text in PART.findall(page):
        if language == "diff":
            yield from ((file, before, after) for before, after in hunks(text))


def new_files(page):
    return [file for names in NEW.findall(page) for file in re.findall("`([^`]+)`", names)]
