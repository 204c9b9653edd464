"""Compiles kernels for the emulator's checked mode, and the emulator: checked_objects.py FOLDER FILE.cu...

Each file becomes FOLDER/NAME.o; the emulator becomes FOLDER/emulator.o.
"""
import pathlib
import shutil
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools"))
import cuda_check  # noqa: E402


def main():
    folder, *sources = map(pathlib.Path, sys.argv[1:])
    folder.mkdir(parents=True, exist_ok=True)
    try:
        for source in sources:
            cuda_check.compile_checked(source, folder / f"{source.stem}.o", [f"-I{ROOT / 'src'}"])
        shutil.copy(cuda_check.emulator_object(), folder / "emulator.o")
    except cuda_check.Problem as problem:
        sys.exit(f"checked_objects: {problem}")


if __name__ == "__main__":
    main()
