"""Feedback: what is shared and sent."""
import http.server
import io
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import unittest
import zipfile
from unittest import mock

from make_class import STAGES
from class_case import DUE, Folder, NAME
from classroom import class_folder
from classroom import helpers
from classroom import pulling
from classroom import repositories
from classroom import sending
from grading import students_git
from git_folder import commit, git


class Sharing(Folder):

    def test_a_repository_gives_both_the_same_versions_at_the_same_times(self):
        self.repository("team")
        roster = self.put("roster.csv", "id,repository\nann,team\nbob,team/\ncat,other\n")
        room = class_folder.Classroom(roster)
        self.assertEqual([[one.id for one in together] for together in class_folder.by_repository(room.students)],
                         [["ann", "bob"], ["cat"]])
        begin = class_folder.now()
        with mock.patch.object(helpers.Helpers, "run", autospec=True, side_effect=helpers.Helpers.run) as run, (
                mock.patch("sys.stdout")):
            pulling.pull(room, room.students[:2])
            self.assertEqual(len(run.call_args[0][1]), 1)
            seen = room.seen()
            self.assertEqual(len(seen["ann"]), 1)
            self.assertTrue(begin <= seen["ann"][0].at <= class_folder.now())
            self.assertEqual(seen["ann"], seen["bob"])
            pulling.pull(room, room.students[:2])
        self.assertEqual(room.seen(), seen)
        self.assertEqual(class_folder.kept(self.folder, "bob", seen["bob"][0].sha).files[NAME], b"committed\n")

    def test_who_joins_later_has_handed_in_what_the_other_had(self):
        self.repository("team")
        room = class_folder.Classroom(self.put("roster.csv", "id,repository\nann,team\nbob,team\n"))
        with mock.patch("sys.stdout"):
            pulling.pull(room, room.students[:1])
            first = room.seen()["ann"]
            time.sleep(1)  # times have a resolution of one second
            pulling.pull(room, room.students)
        self.assertEqual((room.seen()["bob"], room.seen()["ann"]), (first, first))

    def test_an_id_that_was_changed_keeps_its_versions_and_their_times(self):
        places = [self.repository(name).place for name in ("own", "team")]
        first = {}
        for ids, n_told in (("ann", "bob", "cat"), 0), (("anna", "bob", "cat2"), 2), (("anne", "bob", "cat2"), 1), (
                ("anne", "bob", "cat2"), 0):
            lines = [f"{ids[0]},{places[0]}", f"{ids[1]},{places[1]}", f"{ids[2]},{places[1]}"]
            room = class_folder.Classroom(self.put("roster.csv", "\n".join(["id,repository", *lines, ""])))
            with mock.patch("sys.stdout", io.StringIO()) as out:
                pulling.pull(room, room.students)
            self.assertEqual(out.getvalue().count("gets the versions of"), n_told, out.getvalue())
            seen = room.seen()
            first = first or seen
            self.assertEqual([seen[id] for id in ids], [first[id] for id in ("ann", "bob", "cat")])
            self.assertEqual(class_folder.kept(self.folder, ids[0], seen[ids[0]][0].sha).files[NAME], b"committed\n")
            time.sleep(1)  # times have a resolution of one second

    def test_a_new_student_with_a_repository_of_his_own_gets_no_versions_of_others(self):
        places = [self.repository(name).place for name in ("own", "other")]
        git(self.folder / "other", "commit", "-q", "--allow-empty", "-m", "more")
        for id, place in zip(("ann", "bob"), places):
            room = class_folder.Classroom(self.put("roster.csv", f"id,repository\n{id},{place}\n"))
            with mock.patch("sys.stdout"):
                pulling.pull(room, room.students)
        self.assertEqual([len(room.seen()[id]) for id in ("ann", "bob")], [1, 1])
        self.assertNotEqual(room.seen()["ann"][0].sha, room.seen()["bob"][0].sha)

    def test_who_had_another_repository_before_keeps_what_was_seen_there(self):
        places = [self.repository(name).place for name in ("team", "own")]
        git(self.folder / "own", "commit", "-q", "--allow-empty", "-m", "more")
        for bob in reversed(places):
            room = class_folder.Classroom(self.put("roster.csv", f"id,repository\nann,{places[0]}\nbob,{bob}\n"))
            with mock.patch("sys.stdout"):
                pulling.pull(room, room.students)
        ann, bob = (room.seen()[id] for id in ("ann", "bob"))
        self.assertEqual((len(ann), len(bob)), (1, 2))
        self.assertEqual(bob[-1].sha, ann[0].sha)


class Sending(Folder):
    def room(self, heading, *lines):
        room = class_folder.Classroom(self.put("roster.csv", "\n".join([heading, *lines]) + "\n"))
        for one in room.students:
            self.put(f"feedback/{one.id}.md", f"# {one.id}\n")
        return room

    def send(self, room, way, public=True):
        with mock.patch("sys.stdout", new_callable=io.StringIO) as said:
            code = sending.send(room, room.students, way, public)
        return code, said.getvalue()

    def participant(self, name):
        """Reads a name as Moodle's importer does: fields between underscores, the second is the number."""
        fields = name.split("_", 4)
        self.assertEqual(fields[2:4], ["assignfeedback", "file"])
        return int(fields[1]), fields[4]

    def test_no_two_students_are_the_same_participant(self):
        room = self.room("id,repository,Identifier", "ann,a,Participant 5", "bob,b,5")
        self.assertIn("identifier 5 belongs to several students: ann, bob", self.problem(self.send, room, "moodle"))

    def test_a_zip_names_each_file_by_the_participant_as_moodle_reads_it(self):
        room = self.room("id,repository,Identifier", "ann_b,a,Participant 4711", "bob,b,17", "cat,c,", "dan,d,参与者4712",
                         "eve,e,Teilnehmer/in4713")
        code, said = self.send(room, "moodle")
        self.assertEqual(code, 1)
        self.assertIn("cat: ", said)
        with zipfile.ZipFile(self.folder / sending.ZIP) as found:
            self.assertEqual({self.participant(name): found.read(name) for name in found.namelist()},
                             {(4711, "feedback.md"): b"# ann_b\n", (17, "feedback.md"): b"# bob\n",
                              (4712, "feedback.md"): b"# dan\n", (4713, "feedback.md"): b"# eve\n"})
        before = (self.folder / sending.ZIP).read_bytes()
        self.send(room, "moodle")
        self.assertEqual((self.folder / sending.ZIP).read_bytes(), before)
        (self.folder / "feedback" / "bob.md").unlink()  # not graded yet
        self.send(room, "moodle")
        with zipfile.ZipFile(self.folder / sending.ZIP) as found:
            self.assertEqual([self.participant(name)[0] for name in found.namelist()], [4711, 4712, 4713])

    def test_without_feedback_or_participants_says_what_to_do(self):
        room = self.room("id,repository", "ann,a")
        self.assertIn("Identifier", self.problem(self.send, room, "moodle"))
        shutil.rmtree(self.folder / "feedback")
        self.assertIn("class grade", self.problem(self.send, room, "branch"))

    def served(self, *names):
        """Empty repositories served by git's own server: {name: (folder, URL)}"""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        for name in names:
            git(self.folder, "init", "-q", "--bare", "-b", "main", name)
        child = subprocess.Popen(["git", "daemon", f"--port={port}", "--listen=127.0.0.1", "--export-all", "--reuseaddr",
                                  "--enable=receive-pack", f"--base-path={self.folder}", str(self.folder)],
                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        self.addCleanup(child.wait)
        self.addCleanup(os.killpg, child.pid, signal.SIGTERM)
        for _ in range(100):
            with socket.socket() as asked:
                if asked.connect_ex(("127.0.0.1", port)) == 0:
                    return [f"git://127.0.0.1:{port}/{name}" for name in names]
            if child.poll() is not None:
                break
            time.sleep(0.05)
        self.skipTest("git daemon does not run here")

    def shown(self, name, what="feedback"):
        done = subprocess.run(["git", "-C", str(self.folder / name), *what.split(" ")], stdout=subprocess.PIPE, text=True)
        return done.stdout

    def test_a_branch_gets_a_commit_where_feedback_is_new(self):
        team, own = self.served("team.git", "own.git")
        room = self.room("id,repository", f"ann,{team}", f"bob,{team}", f"cat,{own}", "dan,folder",
                         f"eve,{own}-that-is-not-there", f"fay,{own}-empty")
        for id in "ann", "bob", "cat", "dan", "eve":
            room.note_seen(id, "a" * 40, DUE)
        code, said = self.send(room, "branch")
        self.assertEqual(code, 1)
        self.assertIn("3 new, 0 as before, 3 with a problem", said)
        self.assertIn("dan: a folder on this machine", said)
        self.assertIn("eve: ", said)
        self.assertIn("fay: no version of this repository was seen", said)  # nothing was asked or pushed
        self.assertEqual(self.shown("team.git", "ls-tree --name-only feedback").split(), ["ann.md", "bob.md"])
        for id in "ann", "bob":
            self.assertEqual(self.shown("team.git", f"show feedback:{id}.md"), f"# {id}\n")
        self.assertEqual(self.shown("own.git", "show feedback:cat.md"), "# cat\n")
        self.assertEqual(self.shown("own.git", "branch --list main"), "")
        self.assertIn("0 new, 3 as before", self.send(room, "branch")[1])
        self.put("feedback/cat.md", "# cat, again\n")
        self.assertIn("1 new, 2 as before", self.send(room, "branch")[1])
        self.assertEqual(self.shown("own.git", "show feedback:cat.md"), "# cat, again\n")
        self.assertEqual(self.shown("own.git", "rev-list --count feedback").strip(), "2")  # history is not rewritten


    def test_a_repository_that_anyone_can_read_gets_no_marks(self):
        own, = self.served("own.git")
        room = self.room("id,repository", f"ann,{own}")
        room.note_seen("ann", "a" * 40, DUE)
        code, said = self.send(room, "branch", public=False)
        self.assertEqual((code, self.shown("own.git", "branch --list")), (1, ""))
        self.assertIn("ann: anyone can read this repository", said)

    def test_a_repository_that_opens_with_our_credentials_is_not_public(self):
        asked = []

        class Closed(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                asked.append(self.headers.get("Authorization"))
                self.send_response(401)
                self.send_header("WWW-Authenticate", "Basic realm=x")
                self.end_headers()

            def log_message(self, *_):
                pass

        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Closed) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            self.put(".netrc", "machine 127.0.0.1 login teacher password K3n\n")
            with mock.patch.dict(os.environ, HOME=str(self.folder)):
                self.assertFalse(students_git.is_public(f"http://teacher:K3n@127.0.0.1:{server.server_port}/ann.git"))
            server.shutdown()
        self.assertEqual(set(asked), {None})
        self.assertFalse(students_git.is_public("git@example.org:ann.git"))


class Branches(Folder):
    served = Sending.served

    def test_that_are_there_are_named_where_the_one_of_head_is_not(self):
        self.put(f"ann/{NAME}", "mine\n")
        git(self.folder / "ann", "init", "-q", "-b", "master")
        commit(self.folder / "ann")
        urls = self.served("other.git", "empty.git")
        git(self.folder / "ann", "push", "-q", str(self.folder / "other.git"), "master", "master:refs/heads/a-b/ö.2")
        for place, said in ((self.folder / "other.git", "default branch (main) does not exist; existing branches: a-b/ö.2, master"),
                            (urls[0], "default branch does not exist; existing branches: a-b/ö.2, master"),
                            (self.folder / "empty.git", "no commit yet: push your work"),
                            (urls[1], "no commit yet: push your work"),
                            (urls[1].replace("empty", "none"), "is private, or its address is wrong")):
            self.assertIn(said, self.problem(repositories.pull, str(place), STAGES, None))

    def test_whose_names_would_be_obeyed_are_not_shown(self):
        listed = b"a\trefs/heads/\x1b[2J\na\trefs/heads/" + b"x" * 100 + b"\na\trefs/heads/ok\n"
        self.assertIn("x: its default branch does not exist; existing branches: ok.",
                      str(students_git.no_commit("x", listed, b"\x1b[2J\n")))


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    unittest.main()
