"""C++ as rows of tokens, whoever wrote it. One pass separates code from comments and texts, in time proportional to the
length. A comment, text or raw text without an end reaches to the end of its line or of the file.
"""
import re

COMMENT = r"//(?:\\.|[^\\\n])*|/\*(?:.*?\*/|.*)"
RAW = r'(?:u8|[uUL])?R"(?P<end>[^()\\\s"]{0,16})\((?:.*?\)(?P=end)"|.*)'
TEXT = r'"(?:\\.|[^"\\\n])*"?' + r"|'(?:\\.|[^'\\\n])*'?"
LETTER = r"[A-Za-z_$\x80-\U0010ffff]"  # with which a name may begin
WORD = rf"{LETTER}(?:\d|{LETTER})*|\.?\d(?:[eEpP][+-]|[\w.]|'\w)*"  # a name or a number
HEADER = r"\b__has_include(?:_next)?\s*\(\s*<[^>\n]{1,200}>"  # "/*" in its name begins no comment
# Other spellings of signs. ("<::" is "<" and "::", unless ":" or ">" follows.)
SPELLED = {"<:": "[", ":>": "]", "<%": "{", "%>": "}", "%:": "#", "%:%:": "##", "and": "&&", "or": "||", "not": "!",
           "xor": "^", "bitand": "&", "bitor": "|", "compl": "~", "not_eq": "!=", "and_eq": "&=", "or_eq": "|=",
           "xor_eq": "^="}
SIGN = r"<:(?!:(?![:>]))|:>|<%|%>|%:(?:%:)?|<<=|>>=|<=>|->|::|[-+*/%&|^<>=!]=|&&|\|\||\+\+|--|##|\S"
TOKEN = re.compile(f"(?P<comment>{COMMENT})|(?P<raw>{RAW})|(?P<text>{TEXT})|(?P<header>{HEADER})|(?P<word>{WORD})|"
                   f"(?P<sign>{SIGN})", re.S)
# Code up to the next comment or text, or to what may be a raw text: one match instead of one per token.
CODE = rf"""[^\w$.\x80-\U0010ffff/"']+|/(?![/*])|{HEADER}|(?!(?:u8|[uUL])?R")(?:{WORD})|\."""
PARTS = re.compile(f"(?P<code>(?:{CODE}){{1,1000}})|{TOKEN.pattern}", re.S)
BLANK = r"[ \t\v\f\r]*"
DIRECTIVE = rf"{BLANK}(?:#|%:){BLANK}"
NEVER = re.compile(rf"{DIRECTIVE}if\b{BLANK}0{BLANK}$")  # but not "#if 0 < 1", and "false" may be a macro
CONDITION = re.compile(rf"{DIRECTIVE}(if|else|elif|endif)")


def blanks(text):
    """As many blanks as the text has letters; its line ends stay."""
    return re.sub(r"[^\n]", " ", text)


def without_comments(text, texts=True):
    """The text with blanks in place of comments and raw texts; texts: blanks in place of other texts, too."""
    def kept(found):
        is_kept = found.lastgroup in ("code", "word", "sign") or texts and found.lastgroup == "text"
        return found[0] if is_kept else blanks(found[0])
    return PARTS.sub(kept, text)


def compiled_lines(text):
    """The lines of a text, with an empty line in place of each one between "#if 0" and its end."""
    depth = 0  # of conditions inside a part that is left out
    for line in text.split("\n"):  # like a compiler, not at other line ends of Unicode
        condition = CONDITION.match(line)
        if depth == 0:
            depth = 1 if NEVER.match(line) else 0
            yield "" if depth else line
            continue
        yield ""
        if condition and condition[1] == "if":
            depth += 1
        elif condition and (condition[1] == "endif" or depth == 1):
            depth -= 1


def words(line):
    """(kind: "text", "header", "word" or "sign", token) for each token of a text without comments."""
    for found in TOKEN.finditer(line):
        yield ("sign", SPELLED[found[0]]) if found[0] in SPELLED else (found.lastgroup, found[0])


def rows(text):
    """The tokens of the compiled lines, and ("directive", line) for each directive."""
    code = without_comments(text).replace("\\\n", "")  # in this order: a raw text may hold "\\\n"
    for line in compiled_lines(code):
        if re.match(DIRECTIVE, line):
            yield "directive", line
        else:
            yield from words(line)
