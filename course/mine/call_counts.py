"""Makes and reads the file in which a --mine program counts the calls of a student's functions.

course/mine/call_counter.cpp describes the file.
"""
import struct

from rules import links

HEAD = struct.Struct("=3Q")
FUNCTION = struct.Struct("=q2Q")
HOOK = "__cyg_profile_func_enter"


class Calls:
    """The counts of one function, by its name in the registry; overloads are added up."""

    def __init__(self):
        self.count = 0
        self.nanoseconds = 0


class Table:
    def __init__(self, path, build, program, functions):
        """Makes the file for these functions of a program (a path, absolute or relative to build)."""
        self.path = path
        self.functions = functions
        self.slots = []
        found = links.symbols(build, [program])
        hook = next((symbol.address for symbol in found if symbol.mangled == HOOK), None)
        self.counts = hook is not None  # else nm is missing, or the program has no hooks
        entries = []
        for symbol in found:
            name = links.last_name(symbol.name)
            if not self.counts or name not in functions or symbol.kind not in "TW":
                continue
            self.slots.append(name)
            entries.append(FUNCTION.pack(symbol.address - hook, 0, 0))
        path.write_bytes(HEAD.pack(len(entries), 0, 0) + b"".join(entries))

    def read(self):
        """({function: Calls}, the function in which the program ended or None, nanoseconds in all)"""
        content = self.path.read_bytes()
        _, inside, total = HEAD.unpack_from(content)
        calls = {name: Calls() for name in self.functions}
        for at, name in enumerate(self.slots):
            _, count, nanoseconds = FUNCTION.unpack_from(content, HEAD.size + at * FUNCTION.size)
            calls[name].count += count
            calls[name].nanoseconds += nanoseconds
        return calls, self.slots[inside - 1] if 0 < inside <= len(self.slots) else None, total
