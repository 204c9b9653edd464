"""python3 course NAME [WORD...]: runs course/commands/NAME.py as a program, or a module: classroom.pull_process."""
import pathlib
import runpy
import sys

HERE = pathlib.Path(__file__).resolve().parent


def main():
    if sys.version_info < (3, 9):
        sys.exit(f"stage: expected Python 3.9 or newer, found {sys.version.split()[0]}")
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    name = sys.argv.pop(1)
    # First in the path, because a package of the same name may be installed on this machine.
    sys.path[:1] = [str(HERE), str(HERE.parent / "tools")]
    runpy.run_module(name if "." in name else f"commands.{name}", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
