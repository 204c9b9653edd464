"""A student's repository for tests of the tools. Tools, registry, handouts and starters are real, but its ./stage
compiles nothing, and its gate reads the verdict from a word in the student's file.
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.dont_write_bytecode = True
sys.path[:0] = [str(ROOT / name) for name in ("course", "tools", "tests/support")]
from shared import course  # noqa: E402
import git_folder  # noqa: E402

STAGE = r"""#!/usr/bin/env python3
import pathlib, sys
root = pathlib.Path(__file__).parent
(root / "build").mkdir(exist_ok=True)
with (root / "build" / "calls").open("a") as calls:
    print(*sys.argv[1:], file=calls)
for path in root.glob("stages/*/*.cpp"):
    number = path.parent.name[:2]
    if "SYNTAX" in path.read_text() and any(number in target for target in sys.argv[2:]):
        print(f"stages/{path.parent.name}/{path.name}:3:1: error: that is no C++")
        sys.exit(1)
"""
CONFINE = """#!/bin/sh
while [ "$1" != -- ]; do shift; done
shift
exec "$@"
"""
GATE = r"""#!/usr/bin/env python3
import json, os, pathlib, sys
options = dict(word[2:].split("=", 1) for word in sys.argv[1:])
number = os.environ["STAGE_WORKER"][-2:]
text = "".join(path.read_text() for path in pathlib.Path(r"ROOT").glob(f"stages/{number}-*/*.cpp"))
suites = []
for name in options["gtest_filter"].replace(".*", "").split(":"):
    test = {"name": "T"}
    if "OLD" in text:  # a processor without AVX2
        suites.append({"name": name, "testsuite": [dict(test, **{"not-judged": "no AVX2"})]})
        continue
    if "SLOW" in text and name.startswith("Speed"):
        failure = {"failure": "gate.cpp:1\nFailed\nthis band begins at 9 GFLOP/s"}
        suites.append({"name": name, "testsuite": [
            {"name": "First", "measured": "7 GFLOP/s"},
            {"name": "Second", "measured": "7 GFLOP/s", "too-slow": "yes", "failures": [failure]},
            {"name": "Third", "measured": "7 GFLOP/s", "too-slow": "yes", "failures": [failure]}]})
        continue
    if "WRONG" in text or "CRASH" in text:
        test["failures"] = [{"failure": f"gate.cpp:1\nFailed\na case\n  {name} is wrong"}]
        if "STAGE_KEEP" in os.environ:
            kept = pathlib.Path(os.environ["STAGE_KEEP"])
            header = json.dumps({"__metadata__": {"function": "swiglu"}}).encode()
            for n, case in enumerate(("a_case", "another_case")):
                (kept / f"00{n}-{name}.T-{case}").write_bytes(len(header).to_bytes(8, "little") + header)
            with (kept / "failed").open("a") as failed:
                print("crashed" if "CRASH" in text else "wrong", name, f"001-{name}.T-another_case",
                      file=failed)
    elif "RIGHT" not in text and "SLOW" not in text and name not in text:
        test["not-written"] = "x"
    suites.append({"name": name, "testsuite": [test]})
report = {"testsuites": suites}
pathlib.Path(options["gtest_output"].partition(":")[2]).write_text(json.dumps(report))
"""


class Repository(unittest.TestCase):
    """A student's clone with everything committed."""

    @classmethod
    def setUpClass(cls):
        cls.made = pathlib.Path(tempfile.mkdtemp(prefix="stage loop ")).resolve()
        cls.addClassCleanup(shutil.rmtree, cls.made)  # also if this function fails
        for name in ("course", "tools", "stages", "src", "cmake", "docs"):
            shutil.copytree(ROOT / name, cls.made / name, ignore=shutil.ignore_patterns(
                "__pycache__", "my_tests.cpp", "*.cpp.[0-9]*"))
        try:
            starters = course.starters()
        except course.Problem as problem:
            raise unittest.SkipTest(str(problem)) from None
        for name, text in starters.items():  # the original starters
            (cls.made / name).write_bytes(text)
        (cls.made / ".gitignore").write_text((ROOT / ".gitignore").read_text())
        cls.put("stage", STAGE)
        cls.git("init", "-q")
        git_folder.commit(cls.made)

    def setUp(self):
        self.git("reset", "-q", "--hard", "HEAD")
        self.git("clean", "-fdxq", "stages")
        shutil.rmtree(self.made / "build", ignore_errors=True)
        self.put("build/release/course/gate", GATE.replace("ROOT", str(self.made)))
        self.put("build/release/course/confine", CONFINE)
        for name in "lldb", "gdb":
            self.put(f"bin/{name}", '#!/bin/sh\nprintf "[%s]" "$@"\n')

    @classmethod
    def git(cls, *words):
        return git_folder.git(cls.made, *words)

    @classmethod
    def put(cls, name, text):
        path = cls.made / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)

    def environment(self, language="en", **more):
        path = f"{self.made / 'bin'}{os.pathsep}{os.environ['PATH']}"
        return dict(os.environ, **{"STAGECRAFT_LANG": language, "PATH": path, **more})

    def command(self, *words):
        return [sys.executable, str(self.made / "course"), words[0], *words[1:]]

    def run_tool(self, *words, language="en", code=0, **more):
        """The output of a tool, which must end with this exit code."""
        done = subprocess.run(self.command(*words), env=self.environment(language, **more), text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        self.assertNotIn("Traceback", done.stderr)
        self.stderr = done.stderr
        return done.stdout

    def write(self, name, text):
        (self.made / "stages" / name).write_text(f"// {text}\n")

    def calls(self):
        path = self.made / "build" / "calls"
        return path.read_text().splitlines() if path.exists() else []
