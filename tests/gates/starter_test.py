"""A starter compiles unchanged, and its gate finds nothing but "not written yet":

    starter_test.py BUILD STAGE

Exit code 77 if a student has begun the stage. Standard library only; ctest runs it.
"""
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path[:0] = [str(ROOT / name) for name in ("course", "tools", "tests/support")]
from build_targets import build  # noqa: E402
from shared import course  # noqa: E402
from testing import gate  # noqa: E402

SKIPPED = 77


def main():
    course.BUILD = pathlib.Path(sys.argv[1])
    stage = course.find_stage(sys.argv[2], course.stages())
    if stage.is_started:
        print(f"stage {stage.id} has been begun: its starter is not there to be tried")
        return SKIPPED
    worker = f"worker_{stage.number}"
    build(course.BUILD, "gate", worker)
    result = gate.run(stage, course.BUILD / "course" / worker)
    wrong = [group.name for group in result.groups
             if group.status != "unwritten" or group.failures or group.n_passed]
    for name in wrong:
        print(f"{stage.folder.name}: {name}: expected 'not written yet' from the starter")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
