"""A teacher exports the course, a student writes two stages, and the run: lines of the workflows grade them:

    workflow_test.py BUILD

The official tree is in a file:// repository. It is fetched and built as in a workflow. The build is kept in BUILD
between runs. Standard library only; ctest runs it.
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.dont_write_bytecode = True
sys.path[:0] = [str(ROOT / name) for name in ("course", "tools", "tests/support")]
from shared import course  # noqa: E402
from shared import official  # noqa: E402
import repository_copy  # noqa: E402
from git_folder import commit, git  # noqa: E402

RIGHT, WRONG = (course.find_stage(number, course.stages()) for number in "23")
GITHUB, GITEA, GITLAB = ".github/workflows/grade.yml", ".gitea/workflows/grade.yml", ".gitlab-ci.yml"
FETCHED = "hashFiles('build/official/stage') != ''"


def steps(text):
    """[(condition, shell)] for the steps of a GitHub workflow that run something. It reads only our subset of YAML."""
    found = []
    for step in re.split(r"^      - ", text.partition("    steps:\n")[2], flags=re.M)[1:]:
        step = "        " + step
        shell = re.search(r"^        run: (?:\|\n((?:          .*\n)+)|(.*))", step, re.M)
        condition = re.search(r"^        if: (.*)", step, re.M)
        if shell:
            found.append((condition[1] if condition else "", shell[1] or shell[2]))
    return found


def script(text):
    """The shell lines of a GitLab job."""
    block = text.partition("  script:\n")[2]
    return [("", line) for line in re.findall(r"^    - (.*)$", block.partition("  artifacts:")[0], re.M)]


class Workflow(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = BUILD / "workflow_test"  # built files depend on the path
        cls.official, cls.student = cls.folder / "official", cls.folder / "student"
        fetched, kept = cls.student / "build" / "official", cls.folder / "kept"
        if fetched.exists():
            fetched.rename(kept)
        for old in cls.official, cls.student:
            shutil.rmtree(old, ignore_errors=True)
        (cls.folder / "summary.md").unlink(missing_ok=True)
        try:
            repository_copy.Copy(cls.official)
        except course.Problem as problem:
            raise unittest.SkipTest(str(problem)) from None
        git(cls.official, "init", "-q", "-b", "main")
        commit(cls.official)
        # A teacher who took the course: the teacher's answers are not exported.
        cls.write(cls.official, RIGHT, cls.answer(RIGHT))
        done = subprocess.run([str(cls.official / "stage"), "export", str(cls.student), "--language", "zh",
                               "--url", f"file://{cls.official}"], text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT)
        assert done.returncode == 0, done.stdout
        cls.exported = git(cls.student, "rev-parse", "HEAD").strip()
        if kept.exists():
            fetched.parent.mkdir()
            kept.rename(fetched)

    @classmethod
    def tearDownClass(cls):
        """Keeps what makes the next run faster: the fetched tree with its build."""
        fetched = cls.student / "build" / "official"
        if fetched.exists():  # each run fetches a new repository, whose objects git would keep
            git(fetched, "reflog", "expire", "--expire=now", "--all")
            git(fetched, "gc", "-q", "--prune=now")
            fetched.rename(cls.folder / "kept")
        for old in cls.official, cls.student:
            shutil.rmtree(old)

    @staticmethod
    def answer(stage):
        return (ROOT / stage.units[0]["answers"][0]).read_text()

    @staticmethod
    def write(folder, stage, text):
        (folder / course.unit_name(stage, stage.units[0])).write_text(text)

    def run_lines(self, lines, folder, **more):
        """(exit code of the last line that ran, the output)"""
        environment = {name: value for name, value in os.environ.items() if name != "STAGECRAFT_LANG"}
        environment.update(CI="true", LANG="C", GITHUB_STEP_SUMMARY=str(self.folder / "summary.md"),
                           GITHUB_SERVER_URL="https://example.org", GITHUB_REPOSITORY="ann/course", **more)
        said = ""
        for condition, shell in lines:
            self.assertIn(condition, ("", FETCHED))
            if condition and not (folder / "build" / "official" / "stage").exists():
                continue
            done = subprocess.run(["bash", "-e", "-c", shell], cwd=folder, env=environment, text=True,
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            said += done.stdout
            if done.returncode != 0:
                break
        return done.returncode, said

    def grade(self, workflow, **more):
        text = (self.student / workflow).read_text()
        lines = script(text) if workflow == GITLAB else steps(text)
        self.assertEqual(len(lines), 2, lines)
        (self.student / "result.json").unlink(missing_ok=True)
        code, said = self.run_lines(lines, self.student, **more)
        self.assertTrue((self.student / "result.json").exists(), said)
        return code, said, json.loads((self.student / "result.json").read_text(encoding="utf-8"))

    def test_an_export_is_starters_in_one_commit_without_our_own_checks(self):
        first = git(self.student, "rev-list", "--max-parents=0", "--all").strip()
        self.assertEqual(first, self.exported)  # the first commit
        names = git(self.student, "ls-tree", "-r", "--name-only", first).splitlines()
        for name in GITHUB, GITEA, GITLAB, "AGENTS.md", "course.json", RIGHT.units[0]["answers"][0], "stage":
            self.assertIn(name, names)
        self.assertFalse([name for name in names if official.OURS_ALONE.match(name)])
        self.assertEqual([name for name in names if name.startswith(".github/workflows/")], [GITHUB])
        self.assertFalse([name for name in names if name.startswith("build/")])
        for stage in course.stages():
            for unit in stage.units:
                name = course.unit_name(stage, unit)
                self.assertEqual(git(self.student, "rev-parse", f"{first}:{name}").strip(), unit["starter"])
        self.assertEqual(official.read(self.student)["commit"],
                         git(self.official, "rev-parse", "HEAD").strip())

    def test_a_push_is_graded_by_the_official_tree_alone(self):
        self.write(self.student, RIGHT, self.answer(RIGHT))
        self.write(self.student, WRONG, "int x = ;\n")
        registry = self.student / "stages" / "stages.json"
        registry.write_text(registry.read_text().replace('"points": 14', '"points": 1000'))
        commit(self.student)
        code, said, result = self.grade(GITHUB)
        name = course.unit_name(WRONG, WRONG.units[0])
        self.assertEqual((code, result["failed"], result["earned"]), (1, [WRONG.id], RIGHT.points), said)
        self.assertEqual(result["repository"]["sha"], git(self.student, "rev-parse", "HEAD").strip())
        self.assertEqual(result["official"]["commit"], official.read(self.student)["commit"])
        self.assertIn(f"\n::error file={name},line=1,", said)
        summary = (self.folder / "summary.md").read_text(encoding="utf-8")
        self.assertRegex(summary, rf"\| {RIGHT.id} \| .* \| {RIGHT.points} / {RIGHT.points} \| 正确 \|")
        self.assertIn("不能编译", summary)

        self.write(self.student, WRONG, WRONG.starter(WRONG.units[0]).decode())
        for workflow in GITEA, GITLAB:
            code, said, result = self.grade(workflow, CI_PROJECT_URL="https://example.org/ann/course")
            self.assertEqual((code, result["failed"], result["earned"]), (0, [], RIGHT.points), said)

    def test_nothing_runs_in_the_official_repository(self):
        for workflow in GITHUB, GITEA:
            code, said = self.run_lines(steps((self.official / workflow).read_text()), self.official)
            self.assertEqual(code, 0, said)
            self.assertFalse((self.official / "build" / "official").exists())


if __name__ == "__main__":
    BUILD = pathlib.Path(os.path.abspath(sys.argv.pop(1)))
    unittest.main()
