"""A copy of this repository with a build folder of its own, for tests that write what a student writes.

It stays between runs, so that only what changed is built again; every starter in it is as handed out.
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
    """What a clone would hold, with what is not committed yet; without git, what is not built."""
    done = subprocess.run(["git", "-C", str(ROOT), "ls-files", "-zco", "--exclude-standard"],
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    if done.returncode == 0:
        names = done.stdout.decode().split("\0")
    else:
        names = [str(path.relative_to(ROOT)) for path in ROOT.rglob("*")
                 if path.relative_to(ROOT).parts[0] not in ("build", ".git")]
    return {name for name in names  # but for tests of a student's own, who may be right or wrong
            if name and (ROOT / name).is_file() and not name.endswith("/my_tests.cpp")}


class Copy:
    """of the repository, at `folder`."""

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
        shutil.rmtree(self.folder / "build" / "course", ignore_errors=True)  # no verdict is remembered

    def write(self, name, text):
        """Only where it differs: what is built goes by the time of a file."""
        path = self.folder / name
        data = text.encode() if isinstance(text, str) else text
        if not path.exists() or path.read_bytes() != data:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)

    def write_stage(self, stage):
        """Our answer, in the student's file."""
        for unit in stage.units:
            answer = "\n".join((ROOT / twin).read_text() for twin in unit["twins"])
            self.write(course.unit_name(stage, unit), answer)

    def hand_out(self, stage):
        """Its starters, in place of what was written."""
        for unit in stage.units:
            self.write(course.unit_name(stage, unit), stage.starter(unit))

    def run(self, command, language="en"):
        """(exit code, stdout and stderr as they come) of a line of shell in the copy."""
        environment = dict(os.environ, STAGECRAFT_LANG=language, NO_COLOR="1", CI="true")
        done = subprocess.run(["bash", "-c", command], cwd=self.folder, env=environment,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=600)
        return done.returncode, done.stdout.decode("utf-8", "replace")
