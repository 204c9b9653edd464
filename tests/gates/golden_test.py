"""Compares what a student reads when a gate fails with the expected text, in both languages:

    golden_test.py BUILD [--update]

Programs of course/mistakes are judged with numbers from a fixed seed; tests/gates/golden contains the output of ./stage
test. The last digits of numbers may differ between libm versions. Standard library only; ctest runs it once the
programs are built.
"""
import contextlib
import io
import os
import pathlib
import platform
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "course"), str(ROOT / "tools")]
from commands import test as stage_test  # noqa: E402
from shared import course  # noqa: E402
from testing import gate  # noqa: E402

GOLDEN = ROOT / "tests" / "gates" / "golden"
SEED = 7
CASES = {  # each shows a different part of a diagnosis
    "00": ("into_x", "stride_ignored"),
    "01": ("overflow_below", "up_overwritten", "tail_left_out"),
    "02": ("no_mean", "left_in_a_static", "in_double"),
    "03": ("b_not_transposed", "c_read_at_beta_zero", "one_index"),
    "04": ("gate_and_up_swapped",),  # the first wrong step is named
    "05": ("k_and_v_swapped", "kv_heads_ignored", "f16_hidden_one"),
    "06": ("softmax_zeros_where_all_is_hidden",),  # NaN is right
    "07": ("std_exceptions",),
    "08": ("end_forgotten",),  # texts are shown as texts
}
if platform.machine() == "x86_64":  # on other processors the emulator's unset numbers are finite
    CASES["11"] = ("sums_unset", "blocks_of_kv_heads")  # the source of a NaN is named, and what no thread writes
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?")


def read_by_a_student(stage, program, language):
    os.environ["STAGECRAFT_LANG"] = language
    folder = course.mistakes_folder(stage)
    result = gate.run(stage, folder / program, SEED, folder)
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        stage_test.tell(result)
    return out.getvalue()


def close(one, other):
    if one == other:
        return True
    if "." not in one + other and "e" not in one + other:
        return False  # counts and places must be equal
    return abs(float(one) - float(other)) <= 1e-3 * abs(float(one))


def alike(expected, found):
    if NUMBER.sub("#", expected) != NUMBER.sub("#", found):
        return False
    return all(map(close, NUMBER.findall(expected), NUMBER.findall(found)))


def main():
    course.BUILD = pathlib.Path(sys.argv[1]).resolve()
    update = "--update" in sys.argv
    known = course.stages()
    wanted = set()
    failed = 0
    for number, programs in CASES.items():
        for program in programs:
            for language in ("en", "zh"):
                path = GOLDEN / f"{number}-{program}.{language}.txt"
                wanted.add(path)
                found = read_by_a_student(course.find_stage(number, known), program, language)
                if update:
                    path.parent.mkdir(exist_ok=True)
                    path.write_text(found, encoding="utf-8")
                expected = path.read_text(encoding="utf-8") if path.exists() else ""
                if not alike(expected, found):
                    failed += 1
                    print(f"{path.relative_to(ROOT)}: expected\n{expected}\nfound\n{found}")
    for path in sorted(set(GOLDEN.glob("*.txt")) - wanted):
        failed += 1
        print(f"{path.relative_to(ROOT)}: no case makes it")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
