"""./stage class pull: reading the repositories of a class."""
import contextlib
import http.server
import importlib
import io
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import threading
import time
import unittest
from unittest import mock

from make_class import ROOT, STAGES
from class_case import DUE, Folder, HOURS, NAME, new_stage
from classroom import class_folder
from classroom import pulling
from classroom import repositories
from classroom import sending
from grading import students_git
from grading import submission
from shared import course
from shared import official
from git_folder import commit, git


class Fetching(Folder):
    def command(self, **environment):
        environment = {"GIT_CONFIG_NOSYSTEM": "1", **environment}
        with mock.patch.dict(os.environ, environment):
            for name in {"GIT_SSH", "GIT_SSH_COMMAND"} - set(environment):
                os.environ.pop(name, None)
            return official.without_questions(30)["GIT_SSH_COMMAND"]

    def test_uses_ssh_as_the_users_git_does(self):
        """A deploy key is often named in core.sshCommand."""
        settings = self.folder / "gitconfig"
        settings.write_text("[core]\nsshCommand = ssh -i ~/.ssh/course\n")
        quiet = " -o BatchMode=yes -o ConnectTimeout=30"
        self.assertEqual(self.command(GIT_CONFIG_GLOBAL=str(settings)), "ssh -i ~/.ssh/course" + quiet)
        self.assertEqual(self.command(GIT_CONFIG_GLOBAL=str(settings), GIT_SSH_COMMAND="ssh -v"), "ssh -v" + quiet)
        self.assertEqual(self.command(GIT_CONFIG_GLOBAL=os.devnull), "ssh" + quiet)
        self.assertEqual(self.command(GIT_CONFIG_GLOBAL=os.devnull, GIT_SSH="/a b/ssh"), "'/a b/ssh'" + quiet)


class Pulling(Folder):
    def test_takes_what_was_committed_once_and_a_folder_as_it_is(self):
        ann = self.repository()
        self.put(f"ann/{NAME}", "not committed\n")
        handed_in = repositories.pull(ann.place, STAGES, None)
        self.assertEqual(handed_in.files[NAME], b"committed\n")
        self.assertIsNone(repositories.pull(ann.place, STAGES, handed_in.sha))
        self.assertEqual(repositories.pull(f"file://{ann.place}".replace(" ", "%20"), STAGES, None).files, handed_in.files)
        self.put(f"bob/{NAME}", "as it is\n")
        bob = class_folder.Student("bob", str(self.folder / "bob"), {})
        first = repositories.pull(bob.place, STAGES, None)
        self.assertEqual(first.files[NAME], b"as it is\n")
        self.put("bob/README", "no matter\n")
        self.assertIsNone(repositories.pull(bob.place, STAGES, first.sha))
        shas = {first.sha}
        for name, text in ((NAME, "else\n"), ("course.json", '{"language": "zh"}'),
                           ("course.json", '{"language": "zh", "nickname": "fox"}'),
                           ("course.json", '{"language": }'), ("course.json", "{")):  # the last two cannot be read
            self.put(f"bob/{name}", text)
            shas.add(repositories.pull(bob.place, STAGES, first.sha).sha)
        self.assertEqual(len(shas), 6)

    def test_reads_the_commit_that_it_names_and_no_replacement_of_it(self):
        ann = self.repository()
        self.put(f"ann/{NAME}", "newer\n")
        git(ann.place, "commit", "-qam", "more")
        git(ann.place, "replace", "HEAD", "HEAD~1")
        self.assertEqual(repositories.pull(ann.place, STAGES, None).files[NAME], b"newer\n")

    def test_reads_a_repository_of_another_format(self):
        self.put(f"new/{NAME}", "committed\n")
        try:
            git(self.folder / "new", "init", "-q", "-b", "main", "--object-format=sha256")
        except subprocess.CalledProcessError:
            self.skipTest("an older git")
        commit(self.folder / "new")
        handed_in = repositories.pull(str(self.folder / "new"), STAGES, None)
        self.assertEqual((handed_in.files[NAME], len(handed_in.sha)), (b"committed\n", 64))

    def test_that_works_again_is_no_problem_any_more(self):
        room = class_folder.Classroom(self.put("roster.csv", "id,repository\nann,ann\nbob,bob\n"))
        for expected in {"ann", "bob"}, {"bob"}:
            with mock.patch("sys.stdout"):
                self.assertEqual(pulling.pull(room, room.students), 1)
            self.assertEqual(set(room.problems()), expected)
            if "ann" in expected:
                self.repository()

    def test_reads_a_repository_of_another_user(self):
        if os.geteuid() != 0:
            self.skipTest("only root can make one")
        ann = self.repository()
        for path in [self.folder / "ann", *(self.folder / "ann").rglob("*")]:
            os.chown(path, 65534, 65534)
        self.assertEqual(repositories.pull(ann.place, STAGES, None).files[NAME], b"committed\n")

    def test_follows_nothing_that_leads_out_of_a_repository(self):
        other = pathlib.Path(self.repository("other").place, ".git")
        for name, lead in {
            ".git": lambda path: (shutil.rmtree(path), path.symlink_to(other)),
            ".git/": lambda path: (shutil.rmtree(path), path.write_text(f"gitdir: {other}\n")),
            ".git/objects": lambda path: (shutil.rmtree(path), path.symlink_to(other / "objects")),
            ".git/objects/info/alternates": lambda path: path.write_text(f"{other / 'objects'}\n"),
            ".git/objects/info/http-alternates": lambda path: path.write_text("http://127.0.0.1/x\n"),
            ".git/commondir": lambda path: path.write_text(f"{other}\n"),
        }.items():
            ann = self.repository()
            path = pathlib.Path(ann.place) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            lead(path)
            self.assertIn("points to another place", self.problem(repositories.pull, ann.place, STAGES, None), name)
            shutil.rmtree(ann.place)

    def test_ends_what_takes_too_long_with_all_it_started(self):
        mark = self.folder / "alive"
        words = ["sh", "-c", f"(sleep 2; touch '{mark}') & sleep 60"]
        self.assertIsNone(students_git.run_for(words, 0.3))
        time.sleep(2.2)
        self.assertFalse(mark.exists())

    def test_takes_no_more_than_there_is_room_for(self):
        for more, is_taken in (0, True), (1, False):
            said = students_git.run_for(["head", "-c", f"{students_git.MAX_SAID + more}", "/dev/zero"], 60)
            self.assertEqual(said is not None, is_taken)  # no part of an output is taken for all of it
        words = students_git.limited(["sh", "-c", f"head -c {students_git.MAX_FETCHED + 1} /dev/zero >'{self.folder}/x'"])
        self.assertIsNone(students_git.run_for(words, 60))
        self.assertLessEqual((self.folder / "x").stat().st_size, students_git.MAX_FETCHED)

    def test_takes_no_more_files_and_bytes_of_a_local_repository_than_there_is_room_for(self):
        ann = self.repository()
        with mock.patch.object(repositories, "MOST_ENTRIES", 10):
            self.assertIn("more than 10 files", self.problem(repositories.pull, ann.place, STAGES, None))
        growing = self.put("growing", "x" * 11)  # it has grown since its size was read
        copy = repositories.Copy()
        copy.bytes = 10
        with repositories.opened(self.folder) as folder:
            self.assertIn("MB", self.problem(copy.file, folder, growing.name, self.folder / "copy", growing.name))

    def test_takes_no_more_memory_than_there_is_room_for(self):
        ann = self.repository()
        git = ["git", "-C", ann.place]
        text = subprocess.run([*git, "cat-file", "commit", "HEAD"], check=True, stdout=subprocess.PIPE).stdout
        large = self.folder / "large"
        large.write_bytes(text + b"a" * (200 << 20))
        made = subprocess.run([*git, "hash-object", "-t", "commit", "-w", str(large)], check=True,
                              stdout=subprocess.PIPE, text=True).stdout
        pathlib.Path(ann.place, ".git", "HEAD").write_text(made)
        with mock.patch.object(students_git, "MAX_TO_READ", 96 << 20):
            self.problem(repositories.pull, ann.place, STAGES, None)

    def test_without_any_file_of_the_course_is_a_problem_and_not_0_points(self):
        (self.folder / "elsewhere" / "nested").mkdir(parents=True)
        place = str(self.folder / "elsewhere")
        self.assertIn("none of the course's files is there", self.problem(repositories.pull, place, STAGES, None))

    def test_is_noted_with_its_time_and_kept_as_it_was(self):
        room = class_folder.Classroom(self.put("roster.csv", "id,repository\nann,ann\n"))
        handed_in = repositories.pull(self.repository().place, STAGES, None)
        for _ in range(2):  # a branch may be moved back
            class_folder.keep(room.folder, "ann", handed_in)
        room.note_seen("ann", handed_in.sha, DUE)
        self.assertEqual(room.seen()["ann"], [class_folder.Seen(handed_in.sha, DUE)])
        whole = room.log.read_text()
        for sha, hours in ("d" * 40, 1), (handed_in.sha, 2):  # the branch was moved back: it is no new version
            room.note_seen("ann", sha, DUE + hours * HOURS)
        self.assertEqual([(one.sha, one.at) for one in room.seen()["ann"]],
                         [(handed_in.sha, DUE), ("d" * 40, DUE + HOURS), (handed_in.sha, DUE)])
        room.log.write_text(whole)
        kept = class_folder.kept(room.folder, "ann", handed_in.sha)
        self.assertEqual((kept.files, kept.refused), (handed_in.files, handed_in.refused))
        newest = {"id": 98, "slug": "new", "units": [{"file": "new.cpp"}]}  # a stage that the course did not have then
        with mock.patch.object(class_folder.course, "stages", lambda: [*STAGES, new_stage(newest)]):
            self.assertEqual(class_folder.kept(room.folder, "ann", handed_in.sha).refused["stages/98-new/new.cpp"],
                             "grade_missing")
        whole, line = room.log.read_text(), f"ann,{'b' * 40},{DUE.isoformat()}"
        for at in range(len(line) - len(":00")):  # the line may be incomplete
            room.log.write_text(whole + line[:at])
            with contextlib.redirect_stdout(io.StringIO()) as said:
                self.assertEqual(len(room.seen()["ann"]), 1, line[:at])
            self.assertEqual(said.getvalue(), "")  # another process may be writing it
        room.log.write_text(whole + line[:9])
        room.note_seen("ann", "c" * 40, DUE)
        with contextlib.redirect_stdout(io.StringIO()) as said:
            self.assertEqual([one.sha for one in room.seen()["ann"]], [handed_in.sha, "c" * 40])
        self.assertIn("left out: lines 3.", said.getvalue())
        room.log.write_text(whole + line)
        self.assertEqual([one.at for one in room.seen()["ann"]], [DUE, DUE])
        # An editor may add a byte order mark. A spreadsheet writes what later lines would not fit to.
        room.log.write_text("\ufeff" + whole, encoding="utf-8")
        self.assertEqual(len(room.seen()["ann"]), 1)
        room.log.write_text(whole.replace(",", ";"))
        with self.assertRaisesRegex(class_folder.course.Problem, "expected a first line id,sha,seen_at: a spreadsheet"):
            room.seen()

    def test_goes_on_while_a_grading_does_and_never_twice(self):
        self.repository()
        roster = self.put("roster.csv", "id,repository\nann,ann\n")
        pull = [sys.executable, "-B", str(ROOT / "course"), "class", "pull", "--roster", str(roster)]

        def codes(*names):
            """The exit codes of pulls while commands of these names run."""
            rooms = [class_folder.Classroom(roster) for _ in names]
            for room, name in zip(rooms, names):
                room.lock(name)
            done = subprocess.run(pull, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            for room in rooms:
                room.locked.close()
            return done.returncode, "another ./stage class" in done.stderr

        self.assertEqual(codes("grade"), (0, False))
        self.assertEqual(len(class_folder.Classroom(roster).seen()["ann"]), 1)
        self.assertEqual(codes("grade", "pull"), (2, True))
        grading, other = class_folder.Classroom(roster), class_folder.Classroom(roster)
        grading.lock("grade")
        self.assertIn("another ./stage class", self.problem(other.lock, "send"))
        grading.locked.close()


class Redirects(unittest.TestCase):
    def test_leads_nowhere(self):
        """A student's server must not choose another repository, which our credentials may open."""
        asked = []

        class Elsewhere(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                asked.append(self.path)
                self.send_response(302)
                self.send_header("Location", self.path.replace("/ann.git", "/bob.git"))
                self.end_headers()

            def log_message(self, *_):
                pass

        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Elsewhere) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            url = f"http://127.0.0.1:{server.server_port}/ann.git"
            for ask in (lambda: repositories.pull(url, STAGES, None), lambda: sending.push(url, {"ann.md": b"20"})):
                with self.assertRaises(course.Problem):
                    ask()
            server.shutdown()
        self.assertTrue(asked)
        self.assertFalse([path for path in asked if "bob" in path])


class Tokens(Folder):
    """A roster may name https://teacher:TOKEN@host/x.git."""

    def test_are_in_no_message(self):
        with socket.create_server(("127.0.0.1", 0)) as closed:
            port = closed.getsockname()[1]
        url = f"http://teacher:t@K3n@127.0.0.1:{port}/ann.git"
        for ask in (lambda: repositories.pull(url, STAGES, None), lambda: sending.push(url, {"ann.md": b"20"}),
                    lambda: repositories.collect(url, STAGES), lambda: (_ for _ in ()).throw(
                        students_git.no_commit(url, None))):
            said = self.problem(ask)
            self.assertIn(f"http://127.0.0.1:{port}/ann.git", said)
            self.assertNotIn("K3n", said)
        self.assertNotIn("K3n", submission.Submission(url).source)
        puller = importlib.import_module("classroom.pull_process")
        self.assertEqual(puller.in_a_line(f"'{url}': no"), f"'http://127.0.0.1:{port}/ann.git': no")

    def test_are_in_no_message_of_git(self):
        long = "http://teacher:" + "K3n" * 100 + "@host/x.git"
        def complain(*_, complaints, **__):
            complaints.write(f"fatal: unable to access '{long}': no".encode())
        with mock.patch.object(students_git, "run", complain):
            self.assertNotIn("K3n", self.problem(students_git.ask, "http://host/x.git", "fetch"))


class Causes(Folder):
    def test_of_a_repository_that_cannot_be_read_are_said_as_a_student_understands_them(self):
        for said, expected in (
                ("fatal: could not read Username for 'https://x.y': terminal prompts disabled", "is private, or"),
                ("git@x.y: Permission denied (publickey).\nfatal: Could not read from remote", "is private, or"),
                ("remote: Repository not found.\nfatal: repository 'https://x.y/z/' not found", "is private, or"),
                ("fatal: unable to access 'https://x.y/': Could not resolve host: x.y", "no server answers"),
                ("fatal: unable to access 'https://x.y/': Failed to connect to x.y port 1", "no server answers"),
                ("fatal: fetch-pack: invalid index-pack output", "more than 256 MB"),
                ("fatal: unable to access 'https://x.y/': Operation too slow. Less than", "answers too slowly"),
                ("\x1b[2J\nfatal: early EOF", "fatal: early EOF")):
            self.assertIn(expected, students_git.reason(said.splitlines()))

    def test_of_a_server_that_accepts_and_never_answers(self):
        with socket.create_server(("127.0.0.1", 0)) as silent, mock.patch.object(students_git, "ASK_SECONDS", 1):
            for scheme in "http", "git":
                url = f"{scheme}://127.0.0.1:{silent.getsockname()[1]}/ann"
                self.assertIn("answers too slowly, or not at all", self.problem(students_git.head_of, url))


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    unittest.main()
