"""./stage update, and the line of ./stage that says an update exists: a student's repository and an official one, with
the real tools and stages and few other files.

Standard library only; ctest runs it. Nothing is built.
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.dont_write_bytecode = True
sys.path[:0] = [str(ROOT / name) for name in ("course", "tools", "tests/support")]
from shared import course  # noqa: E402
from shared import official  # noqa: E402
from git_folder import commit, git  # noqa: E402

MINE = "stages/02-rms-norm/rms_norm.cpp"
OTHER = "stages/03-matmul-transb/matmul_transb.cpp"
CHANGELOG = "# What changed\n\n## 2026-09-01\n\n- tests: all of them\n"


class Update(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="stage update ")).resolve()
        self.addCleanup(shutil.rmtree, self.folder)
        self.theirs, self.mine = self.folder / "official", self.folder / "student"
        for name in "course", "tools", "stages":
            shutil.copytree(ROOT / name, self.theirs / name, ignore=shutil.ignore_patterns(
                "__pycache__", "my_tests.cpp", "*.cpp.[0-9]*"))
        try:
            for stage in course.stages():
                for unit in stage.units:
                    (self.theirs / course.unit_name(stage, unit)).write_bytes(stage.starter(unit))
        except course.Problem as problem:
            self.skipTest(str(problem))
        for name, text in {"CHANGELOG.md": CHANGELOG, "src/engine.cpp": "one\n", "src/old.cpp": "old\n",
                           ".ci/run": "ours\n", ".gitignore": "/build/\n__pycache__/\n"}.items():
            self.put(self.theirs, name, text)
        git(self.theirs, "init", "-q", "-b", "main")
        self.first = commit(self.theirs)
        # As made by ./stage export: no history, and none of our own checks.
        shutil.copytree(self.theirs, self.mine, ignore=shutil.ignore_patterns(".git", ".ci"))
        official.write({**official.DEFAULTS, "url": f"file://{self.theirs}", "commit": self.first}, self.mine)
        self.put(self.mine, MINE, "my answer\n")
        self.put(self.mine, "src/notes.md", "my notes\n")
        git(self.mine, "init", "-q", "-b", "main")
        commit(self.mine)

    def put(self, folder, name, text):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def run_tool(self, name, code=0, language="en"):
        done = subprocess.run([sys.executable, str(self.mine / "course"), name], text=True, timeout=60,
                              env=dict(os.environ, STAGECRAFT_LANG=language), stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT)
        self.assertEqual(done.returncode, code, done.stdout)
        self.assertNotIn("Traceback", done.stdout)
        return done.stdout

    def change_the_course(self):
        """Changes a starter, the engine and the tests; deletes a file and adds one."""
        self.put(self.theirs, "src/engine.cpp", "two\n")
        self.put(self.theirs, "src/new.cpp", "new\n")
        (self.theirs / "src" / "old.cpp").unlink()
        self.change_starters("another starter: NOT_IMPLEMENTED(\n", MINE, OTHER)
        self.put(self.theirs, ".ci/run", "ours, changed\n")
        self.put(self.theirs, ".github/workflows/wheels.yml", "ours\n")
        self.put(self.theirs, "CHANGELOG.md", CHANGELOG.replace(
            "\n## 2026-09-01", "\n## 2026-10-01\n\n- engine: faster\n- tests: stage 3 asked too much\n"
            "- engine: smaller\n- code: `watch` waits\n"
            "Only lines of that form.\n\n## 2026-09-01"))
        return commit(self.theirs)

    def change_starters(self, text, *names):
        registry = (self.theirs / "stages" / "stages.json").read_text(encoding="utf-8")
        for name in names:
            old = course.blob_hash((self.theirs / name).read_bytes())
            self.assertIn(old, registry)
            registry = registry.replace(old, course.blob_hash(text.encode()))
            self.put(self.theirs, name, text)
        (self.theirs / "stages" / "stages.json").write_text(registry, encoding="utf-8")

    def read(self, name):
        return (self.mine / name).read_text()

    def test_brings_all_but_the_students_files_and_says_what_changed(self):
        self.put(self.mine, "stages/02-rms-norm/my_tests.cpp", "mine\n")
        new = self.change_the_course()
        said = self.run_tool("update")
        self.assertEqual(self.read("src/engine.cpp"), "two\n")
        self.assertEqual(self.read("src/new.cpp"), "new\n")
        self.assertFalse((self.mine / "src" / "old.cpp").exists())
        self.assertFalse((self.mine / ".ci").exists())
        self.assertFalse((self.mine / ".github").exists())
        self.assertIn("another starter", self.read(OTHER))  # not begun, so it is updated
        self.assertEqual(self.read(MINE), "my answer\n")
        self.assertEqual(self.read("src/notes.md"), "my notes\n")
        self.assertEqual(self.read("stages/02-rms-norm/my_tests.cpp"), "mine\n")
        settings = official.read(self.mine)
        self.assertEqual((settings["commit"], settings["url"]), (new, f"file://{self.theirs}"))
        self.assertEqual(said.splitlines()[1:-1], ["  tests: stage 3 asked too much", "  code: `watch` waits",
                                                   "  engine: 2 new in CHANGELOG.md"])
        self.assertNotIn("all of them", said)
        self.assertNotIn("Only lines", said)
        commit(self.mine)
        self.assertIn("up to date", self.run_tool("update"))

    def test_brings_no_solution_but_the_newest_starter(self):
        starter = self.read(OTHER)
        self.put(self.theirs, OTHER, "the teacher's solution\n")
        self.put(self.theirs, "src/engine.cpp", "two\n")
        commit(self.theirs)
        self.run_tool("update")
        self.assertEqual((self.read("src/engine.cpp"), self.read(OTHER)), ("two\n", starter))
        commit(self.mine)
        newer = "another starter: NOT_IMPLEMENTED(\n"
        self.put(self.theirs, OTHER, starter)
        self.change_starters(newer, OTHER)
        commit(self.theirs)
        self.put(self.theirs, OTHER, "the solution again\n")
        commit(self.theirs)
        self.run_tool("update")
        self.assertEqual(self.read(OTHER), newer)
        self.assertEqual(git(self.mine, "diff", "--name-only"), "")  # the update is staged

    def test_restores_official_files_although_there_is_no_newer_version(self):
        self.assertIn("up to date", self.run_tool("update"))
        self.put(self.mine, "src/engine.cpp", "my change\n")
        (self.mine / "src" / "old.cpp").unlink()
        commit(self.mine)
        self.assertIn("files: 2", self.run_tool("update"))
        self.assertEqual((self.read("src/engine.cpp"), self.read("src/old.cpp")), ("one\n", "old\n"))
        self.assertEqual(self.read(MINE), "my answer\n")
        commit(self.mine)
        self.assertIn("up to date", self.run_tool("update"))

    def test_overwrites_nothing_that_git_has_not(self):
        self.change_the_course()
        for name in "src/engine.cpp", "src/new.cpp":
            self.put(self.mine, name, "my change\n")
            self.assertIn(name, self.run_tool("update", code=2))
            self.assertEqual(self.read(name), "my change\n")
            git(self.mine, "stash", "-u", "-q")
        self.run_tool("update")

    def test_of_a_clone_needs_no_commit_in_course_json(self):
        clone = self.folder / "clone"
        git(self.folder, "clone", "-q", str(self.theirs), str(clone))
        official.write({**official.DEFAULTS, "url": f"file://{self.theirs}"}, clone)
        commit(clone)
        self.mine = clone
        self.change_the_course()
        self.run_tool("update")
        self.assertEqual(self.read(".ci/run"), "ours, changed\n")
        self.assertFalse((clone / "src" / "old.cpp").exists())

    def test_without_a_repository_to_ask_is_a_problem_in_a_line(self):
        for url in "", "file:///nowhere":
            official.write({**official.DEFAULTS, "url": url}, self.mine)
            self.assertEqual(len(self.run_tool("update", code=2).splitlines()), 1)
        self.put(self.mine, "course.json", "[]")
        self.assertIn("course.json", self.run_tool("update", code=2))

    def fetch(self):
        """Fetches as the workflows do; returns the output."""
        done = subprocess.run([sys.executable, str(self.mine / "course"), "shared.official", "build/official"], text=True,
                              cwd=self.mine, env=dict(os.environ, STAGECRAFT_LANG="en"), stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT)
        return done.returncode, done.stdout

    def test_in_a_workflow_nothing_of_a_students_repository_takes_the_place_of_the_official_tree(self):
        official.write({**official.DEFAULTS, "url": f"file://{self.theirs}"}, self.mine)
        tree = self.mine / "build" / "official"
        self.put(self.mine, "build/official/course/json.py", "")
        self.assertEqual(self.fetch()[0], 0)
        self.assertEqual(((tree / "src").exists(), (tree / "course" / "json.py").exists()), (True, False))
        shutil.rmtree(tree)
        tree.symlink_to("..")
        self.assertEqual(self.fetch()[0], 0)
        self.assertFalse(tree.is_symlink())

    def test_and_workflows_tell_a_ref_that_is_not_there_from_an_address_that_does_not_answer(self):
        here = f"file://{self.theirs}"
        for url, ref, said in ((here, "fall-2026", "has no branch or tag fall-2026"),
                               ("file:///nowhere", "main", "does not answer")):
            official.write({**official.DEFAULTS, "url": url, "ref": ref}, self.mine)
            self.assertIn(said, self.run_tool("update", code=2))
            code, told = self.fetch()
            self.assertEqual((code, said in told), (2, True), told)
        git(self.theirs, "branch", "x/fall-2026")  # another branch
        official.write({**official.DEFAULTS, "url": here, "ref": "fall-2026"}, self.mine)
        self.assertIn("has no branch", self.run_tool("update", code=2))
        git(self.theirs, "tag", "-a", "fall-2026", "-m", "x")
        self.assertEqual(self.fetch()[0], 0)

    def test_an_export_warns_of_an_address_or_a_ref_that_is_not_there(self):
        self.mine, here = self.theirs, f"file://{self.theirs}"
        for url, ref, said in ((here, "main", None), (here, self.first, None),
                               (here, "fall-2026", f"git push {here} fall-2026"),
                               ("file:///nowhere", "main", "asks for a password or does not answer")):
            words = ["export", str(self.folder / "template"), "--url", url, "--ref", ref]
            done = subprocess.run([sys.executable, str(self.theirs / "course"), *words], text=True, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, env=dict(os.environ, STAGECRAFT_LANG="en"))
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual((said or "") in done.stderr and bool(done.stderr), bool(said), done.stderr)
            shutil.rmtree(self.folder / "template")

    def test_an_export_does_not_depend_on_the_users_settings_of_git(self):
        ignored = self.folder / "ignored"
        ignored.write_text("src/\n")
        settings = self.folder / "gitconfig"
        settings.write_text(f"[core]\nexcludesFile = {ignored}\n[commit]\ngpgSign = true\n")
        subprocess.run([sys.executable, str(self.theirs / "course"), "export", str(self.folder / "template"), "--url",
                        f"file://{self.theirs}"], check=True, stdout=subprocess.DEVNULL,
                       env=dict(os.environ, GIT_CONFIG_GLOBAL=str(settings)))
        self.assertIn("src/engine.cpp", git(self.folder / "template", "ls-files"))

    def hand_out(self):
        """./stage without arguments builds begun stages; here no stage is begun."""
        self.put(self.mine, MINE, (self.theirs / MINE).read_text())

    def test_is_advised_once_a_day(self):
        self.hand_out()
        advice = course.messages()["update_behind"]
        other = git(self.theirs, "commit-tree", "-m", "x", "HEAD^{tree}").strip()
        git(self.theirs, "branch", "teacher/main", other)
        shutil.rmtree(self.mine / "build", ignore_errors=True)
        self.assertNotIn(advice["en"], self.run_tool("where"))  # only the branch itself counts
        asked = self.mine / "build" / "course" / "asked"
        self.change_the_course()
        self.assertNotIn(advice["en"], self.run_tool("where"))
        yesterday = time.time() - 25 * 60 * 60
        os.utime(asked, (yesterday, yesterday))
        self.assertIn(advice["zh"], self.run_tool("where", language="zh"))
        self.assertNotIn(advice["en"], self.run_tool("where"))

    def test_is_not_advised_where_nobody_answers(self):
        self.hand_out()
        quiet = self.run_tool("where")
        for url in "", "file:///nowhere", "https://localhost:9/x.git", "--upload-pack=touch x":
            shutil.rmtree(self.mine / "build", ignore_errors=True)
            official.write({**official.DEFAULTS, "url": url}, self.mine)
            if url.startswith("-"):
                self.assertIn("course.json: url", self.run_tool("where", code=2))
            else:
                self.assertEqual(self.run_tool("where"), quiet)


if __name__ == "__main__":
    unittest.main()
