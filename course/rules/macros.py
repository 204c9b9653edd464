"""Replaces the macros that a file defines itself, as a preprocessor does, so that a copy cannot hide behind them.

Tokens are pairs (kind, token), see cpp_text. Nothing is compiled, and no other file is read. The branches of #if and #else
are all read.
"""
import re
import typing

from rules import cpp_text

# How many tokens the macros of a file may add. Without a limit, a few lines could fill the memory. A file that exceeds
# the limit gets the tokens END. Then it is too long to be compared, and the teacher sees that.
MOST = 100_000
END = [("sign", "#")] * MOST
DEFINE = re.compile(rf"{cpp_text.DIRECTIVE}define{cpp_text.BLANK}(\w+)(?:\(([^)]*)\))?")
UNDEFINE = re.compile(rf"{cpp_text.DIRECTIVE}undef{cpp_text.BLANK}(\w+)")
JOIN, QUOTE = ("sign", "##"), ("sign", "#")


class Macro(typing.NamedTuple):
    name: str
    parameters: typing.Optional[list]  # None: it is used without parentheses
    body: list

    def with_arguments(self, arguments):
        """The tokens that replace a use of the macro; arguments: the tokens of each. In its own body a macro is not
        replaced, but in its arguments it is."""
        value = dict(zip(self.parameters or [], arguments))
        if self.parameters and self.parameters[-1].endswith("..."):
            rest = arguments[len(self.parameters) - 1:]
            name = self.parameters[-1][:-3].strip() or "__VA_ARGS__"
            value[name] = [token for one in rest for token in [("sign", ","), *one]][1:]
        found, before = [], None
        for one, after in zip(self.body, [*self.body[1:], None]):
            tokens = value.get(one[1], [one])
            if before == QUOTE:
                tokens = [("text", '""')]
            elif before == JOIN and found and tokens:
                tokens = [(found[-1][0], found.pop()[1] + tokens[0][1]), *tokens[1:]]
            elif one[1] in value and after != JOIN:
                tokens = [("end", self.name), *tokens, ("begin", self.name)]
            if one not in (JOIN, QUOTE):
                found += tokens
            before = one
        return found


class TooMany(Exception):
    pass


class Expander:
    """Reads one file from its first token to its last."""

    def __init__(self, rows):
        self.rows = iter(rows)
        self.waiting = []  # read before `rows`, the next one last
        self.macros, self.left = {}, MOST
        self.active = set()  # macros whose body is being read: after ("begin", name), before ("end", name)

    def next(self):
        """The next token; None at the end of the file."""
        while (one := self.waiting.pop() if self.waiting else next(self.rows, None)) is not None:
            kind, token = one
            if kind == "begin":
                self.active.add(token)
            elif kind == "end":
                self.active.discard(token)
            elif kind == "directive":
                self.define(token)
            else:
                break
        return one

    def define(self, line):
        if found := DEFINE.match(line):
            parameters = None if found[2] is None else [one.strip() for one in found[2].split(",")]
            self.macros[found[1]] = Macro(found[1], parameters, list(cpp_text.words(line[found.end():])))
        elif found := UNDEFINE.match(line):
            self.macros.pop(found[1], None)

    def tokens(self):
        while (one := self.next()) is not None:
            name = one[1]
            macro = self.macros.get(name) if name not in self.active else None
            arguments = [] if macro is None or macro.parameters is None else self.arguments()
            if macro is None or arguments is None:
                yield one
                continue
            body = macro.with_arguments(arguments)
            self.spend(1 + len(body))
            self.waiting += [("end", name), *reversed(body), ("begin", name)]

    def arguments(self):
        """Reads "(...)"; None if no "(" follows, or if its ")" is missing."""
        read, found, depth = [], [[]], 0
        while (one := self.next()) is not None:
            read.append(one)
            self.spend(1)
            depth += (one == ("sign", "(")) - (one == ("sign", ")"))
            if depth <= 0:
                if len(read) > 1:
                    return found
                break
            if depth == 1 and one == ("sign", ","):
                found.append([])
            elif len(read) > 1:
                found[-1].append(one)
        self.waiting += reversed(read)
        return None

    def spend(self, n):
        self.left -= n
        if self.left < 0:
            raise TooMany


def expanded(rows):
    """These tokens with the macros replaced. rows: tokens, and ("directive", line) for each directive."""
    try:
        yield from Expander(rows).tokens()
    except TooMany:
        yield from END
