"""Refuses an object file in which a linker could find more than the code and data that nm and the grader see."""
import re
import struct
import sys

from rules import links


class NotPlain(Exception):
    """An object file that no compiler makes from plain C++; the message says what was found."""


class OtherLetters(Exception):
    """A name in an object file with other letters than those of ASCII; the message is the name."""


# Link-time optimisation, bitcode, and sections that a linker takes as commands or prints.
NOT_LINKED = re.compile(rb"\.gnu\.(lto|debuglto|warning|offload)|\.llvm(?!_addrsig$)|__LLVM|\.deplibs|\.linker|"
                        rb"\.interp$")


# The types of sections that compilers write: code and data, tables, relocations, notes, constructors, groups, tables for
# exceptions, those of LLVM and of ARM.
TYPES = {0, 1, 2, 3, 4, 7, 8, 14, 15, 16, 17, 18, 0x6fff4c03, 0x70000001, 0x70000003}
TABLE, TEXTS = 2, 3
NAMELESS = (3, 4)  # the types of symbols for sections and files; nm does not print such a symbol, whatever it is
OF_CODE = (0, 2, 10)  # the types of symbols in code: none, function, indirect function
FAR = 0xffff  # a symbol's section whose number does not fit into 16 bits
UNIQUE = 10  # a binding that only data has; nm prints "u" for it, wherever it is


def check_symbols(data, at, code):
    """Throws NotPlain if nm does not print all names of a table of symbols that a linker sees, or prints code as data; at:
    the place of its section header; code: the numbers of the sections with code. nm leaves out the first symbol, and
    those of sections and files. It goes by the symbol's type and binding when it prints "V" or "u", for data."""
    start, length, _, n_local = struct.unpack_from("<QQII", data, at + 24)
    if any(data[start:start + 24]) or n_local < 1:
        raise NotPlain("a table of symbols that does not begin with an empty one")
    first = start + 24 * n_local
    kinds = data[first + 4:start + length:24]
    if any(kind >> 4 == 0 or kind & 15 in NAMELESS for kind in kinds):
        raise NotPlain("a global symbol that has no name")
    for kind, (section,) in zip(kinds, struct.iter_unpack("<6xH16x", data[first:first + 24 * len(kinds)])):
        if (section in code or section == FAR) and (kind & 15 not in OF_CODE or kind >> 4 == UNIQUE):
            raise NotPlain("a symbol that is called data, but is code")


def sections(data):
    """(name, True if it is code, its bytes if it is a table of names) for each section of a relocatable ELF file, 64
    bits, little-endian. A linker and nm must see the same symbols in it."""
    if data[:4] != b"\x7fELF":
        raise NotPlain(f"a file that begins with {data[:4]!r}")
    if data[4:6] != b"\2\1" or struct.unpack_from("<H", data, 16)[0] != 1:
        raise NotPlain("an ELF file of another kind")
    at, = struct.unpack_from("<Q", data, 40)
    size, n, names = struct.unpack_from("<3H", data, 58)
    if size != 64:
        raise NotPlain(f"section headers of {size} bytes")
    if n == 0:  # the number does not fit into 16 bits
        n, = struct.unpack_from("<Q", data, at + 32)
    if names == 0xffff:
        names, = struct.unpack_from("<I", data, at + 40)
    text, = struct.unpack_from("<Q", data, at + 64 * names + 24)
    n_tables = 0
    n = min(n, len(data) // 64)
    code = {index for index in range(n) if struct.unpack_from("<Q", data, at + 64 * index + 8)[0] & 4}
    for index in range(n):
        name, kind, _, _, start, length = struct.unpack_from("<IIQQQQ", data, at + 64 * index)
        called = data[text + name:text + name + links.MOST_LETTERS].partition(b"\0")[0]
        if called == b".linker-options" and length == 0:  # Clang writes it for every file, without options
            continue
        if kind not in TYPES:
            raise NotPlain(f"a section of type {kind:#x}, {called.decode('ascii', 'replace')}")
        if kind == TABLE:  # the linker takes the first, which a student's assembler may have written
            n_tables += 1
            check_symbols(data, at + 64 * index, code)
        yield called, index in code, data[start:start + length] if kind == TEXTS else b""
    if n_tables != 1:
        raise NotPlain(f"{n_tables} tables of symbols")


# nm prints names as they are, so a name with a line end could forge the next line. A linker takes "name@@X" for "name".
OTHER_LETTERS = re.compile(rb"[\x01-\x20@\x7f-\xff]")
MOST_SHOWN = 80


def in_source(symbol):
    """The part of a mangled name that has other letters, as the source writes it; the whole name, if it is not mangled."""
    for length in re.finditer(rb"\d+", symbol if symbol.startswith(b"_Z") else b""):
        name = symbol[length.end():length.end() + int(length[0][:4])]
        if OTHER_LETTERS.search(name):
            return name
    return symbol


def check(path):
    """Throws NotPlain if a linker would find anything but code and data in this object, OtherLetters if it has a name that
    is not plain. (On Linux; on other systems only its author's own machine links it.)"""
    if not sys.platform.startswith("linux"):
        return
    try:
        for name, is_code, names in sections(path.read_bytes()):
            if NOT_LINKED.match(name):
                raise NotPlain(f"a section {name.decode('ascii', 'replace')}")
            if is_code and not name.startswith(b".text"):  # nm calls code in .data.x "data"
                raise NotPlain(f"code in a section {name.decode('ascii', 'replace')}")
            if other := OTHER_LETTERS.search(names):
                start = names.rfind(b"\0", 0, other.start()) + 1
                symbol = names[start:start + links.MOST_LETTERS].partition(b"\0")[0]
                raise OtherLetters(repr(in_source(symbol).decode("utf-8", "backslashreplace")[:MOST_SHOWN]))
    except (struct.error, ValueError):
        raise NotPlain("an ELF file that ends too early") from None
