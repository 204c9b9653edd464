"""A copy of this repository with its own build folder, for tests that write what a student writes.

It is kept between runs, so that only changed files are built again; all starters in it are unchanged.
"""
import os
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.dont_write_bytecode = True
sys.path[:0] = [str(ROOT / "course"), str(ROOT / "tools")]
from shared import course  # noqa: E402


def files():
    """The files of a clone, plus those not committed yet; without git, all files outside of build folders."""
    done = subprocess.run(["git", "-C", str(ROOT), "ls-files", "-zco", "--exclude-standard"],
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    if done.returncode == 0:
        names = done.stdout.decode().split("\0")
    else:
        names = [str(path.relative_to(ROOT)) for path in ROOT.rglob("*")
                 if path.relative_to(ROOT).parts[0] not in ("build", ".git")]
    return {name for name in names  # except a student's own tests, which may be right or wrong
            if name and (ROOT / name).is_file() and not name.endswith("/my_tests.cpp")}


class Copy:
    """A copy of the repository at `folder`."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        wanted = files()
        starters = course.starters()
        for path in [path for path in self.folder.rglob("*") if path.is_file()]:
            name = path.relative_to(self.folder)
            if name.parts[0] not in ("build", ".git") and name.as_posix() not in wanted:
                path.unlink()
        for name in wanted:
            self.write(name, starters.get(name) or (ROOT / name).read_bytes())
            shutil.copymode(ROOT / name, self.folder / name)
        shutil.rmtree(self.folder / "build" / "course", ignore_errors=True)  # so that no verdict is stored

    def write(self, name, text):
        """Writes a file only if it differs, because the build goes by file times."""
        path = self.folder / name
        data = text.encode() if isinstance(text, str) else text
        if not path.exists() or path.read_bytes() != data:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)

    def write_stage(self, stage):
        """Writes our answer into the student's file."""
        for unit in stage.units:
            answer = "\n".join((ROOT / answer).read_text() for answer in unit["answers"])
            self.write(course.unit_name(stage, unit), answer)

    def hand_out(self, stage):
        """Restores the starters of a stage."""
        for unit in stage.units:
            self.write(course.unit_name(stage, unit), stage.starter(unit))

    def run(self, command, language="en"):
        """(exit code, stdout and stderr in order) for a shell line in the copy."""
        environment = dict(os.environ, STAGECRAFT_LANG=language, NO_COLOR="1", CI="true")
        done = subprocess.run(["bash", "-c", command], cwd=self.folder, env=environment,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=600)
        return done.returncode, done.stdout.decode("utf-8", "replace")
