"""JSON that a stranger wrote, read in linear time. What JSON leaves open, and files use to lie, is refused."""
import json

MOST_DIGITS = 400  # more than any double has; converting a number takes the square of its digits


def without_repetition(pairs):
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key is given twice")
    return found


def whole_number(text):
    if len(text) > MOST_DIGITS:
        raise ValueError("a number of too many digits")
    return int(text)


def parse(text):
    """Raises ValueError, of whatever is wrong."""
    try:
        return json.loads(text, object_pairs_hook=without_repetition, parse_int=whole_number)
    except RecursionError:
        raise ValueError("nested too deep") from None
