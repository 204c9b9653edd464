"""The tables, the page and the ranking of a class."""
import html.parser
import json
import os
import re
import sys
import types
import unittest
from unittest import mock

from make_class import STAGES
from class_case import DUE, EVIL, HOURS, NAME, POINTS, Records, SEED, entry, student
from classroom import class_folder
from classroom import class_page
from classroom import feedback
from classroom import lateness
from classroom import marks
from classroom import overrides
from classroom import ranking
from classroom import repositories
from grading import official_tree
from grading import programs
from grading import report
from grading import submission
from shared import course


class Keys(unittest.TestCase):
    def test_a_repository_is_one_however_its_place_is_written(self):
        for places in (("/a/x", "/a/x/", "/a/x/.git", "/a/b/../x", "file:///a/x", "file:///a/%78", "/a/x.git"),
                       ("https://h/x", "https://h/x.git", "https://h/x/", "https://me:token@h/x")):
            self.assertEqual(len({class_folder.Student("ann", place, {}).repository for place in places}), 1, places)

    def test_a_moment_is_one_to_which_days_can_be_added(self):
        self.assertIsNone(lateness.time_of("9999-12-31T23:59Z"))
        self.assertIsNotNone(lateness.time_of("2999-12-31T23:59Z"))


class Seen(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.tags, self.open, self.links = set(), [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        self.links += [value for name, value in attributes if name in ("href", "src")]
        if tag not in ("meta", "br", "rect"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.add(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, tag


class Tables(Records):
    def test_page_shows_what_students_wrote_as_text_and_loads_nothing(self):
        records = [self.record("ann", {}), self.record("bob", {2: ("wrong", 0, "no_mean"), 3: ("wrong",)}, None, EVIL)]
        for language in course.HANDOUTS:
            os.environ["STAGECRAFT_LANG"] = language
            text = "\n".join(class_page.page(self.run_of(records), [(STAGES[4], EVIL, 0.9, ["ann", "bob"])],
                                             [(STAGES[2], EVIL, 0.9, ["ann"], EVIL)]))
            seen = Seen(text)
            self.assertEqual(seen.open, [])
            self.assertFalse(seen.tags & {"script", "link", "img", "iframe", "object"})
            links = {link for link in seen.links if not link.startswith("#")}
            self.assertEqual(links, {"feedback/ann.md", "feedback/bob.md"})
            self.assertNotIn("\x1b", text)
            self.assertIn(course.mistakes(STAGES[2])["no_mean"][language].replace("'", "&#x27;"), text)
            self.assertIn("prefers-color-scheme: dark", text)
            self.assertIn("@media print", text)

    def test_page_says_what_is_often_wrong_and_who_is_stuck(self):
        one = next(iter(course.mistakes(STAGES[1])))
        no_mean = ("wrong", 0, "no_mean")
        records = [self.record("ann", {}), self.record("bob", {2: no_mean, 3: ("refused",), 4: ("wrong",)}),
                   self.record("cat", {2: no_mean, 4: ("wrong",)}),
                   self.record("dan", {1: ("wrong", 0, one), 4: ("wrong",)})]
        records[1].result["stages"][3]["failed"] = True
        page = "\n".join(class_page.common_mistakes(records, STAGES))
        found = re.findall(r"<li><b>(\d+)</b> · \w+ (\d+) · .*<br>\n?(.*)</li>", page)
        self.assertEqual([(int(n), int(stage), re.findall(r"/(\w+)\.md", who)) for n, stage, who in found],
                         [(2, 2, ["bob", "cat"]), (1, 1, ["dan"]), (3, 4, ["bob", "cat", "dan"])])  # named ones first
        rows = "\n".join(class_page.progress(records, STAGES)).split("<tr>")[2:]
        stuck = {at: re.findall(r"/(\w+)\.md", row) for at, row in enumerate(rows)}
        self.assertEqual({at: who for at, who in stuck.items() if who},
                         {1: ["dan"], 2: ["bob", "cat"], 3: ["bob"], 4: ["bob", "cat", "dan"]})

    def test_page_counts_students_by_points_and_says_who_is_late_and_what_was_not_confined(self):
        records = [self.record(f"{n}", {stage.id: ("unwritten",) for stage in STAGES[n:]}) for n in (0, 4, 4, 6, 12)]
        bins = [min(int(10 * record.mark / POINTS), 9) for record in records]
        bars = re.findall(r'fill="var\(--ink\)">(\d*)</text>', "\n".join(class_page.distribution(records, POINTS)))
        self.assertEqual([int(bar or 0) for bar in bars], [bins.count(at) for at in range(10)])
        self.assertGreater(len(set(bins)), 3)
        n_late = course.say("class_n_late")
        for days, expected in (0, 0), (1, 1):
            records[4].stages[3] = marks.StageMark(STAGES[3], entry(STAGES[3]), lateness.Version("a", DUE, days), 1)
            self.assertIn(f'<b>{expected}</b><a href="#troubles">{n_late}</a>', "\n".join(class_page.tiles(records)))
        self.assertEqual(list(class_page.not_confined(records)), [])
        records[2].result.update(confined=False, not_confined_because="no sandbox here")
        self.assertIn("no sandbox here", "\n".join(class_page.not_confined(records)))
        corrected = marks.StageMark(STAGES[3], entry(STAGES[3], "unwritten"), None, 0, 0, overrides.Override(7, "x"))
        self.assertIn('">7<svg', class_page.stage_cell(corrected))

    def test_gradebooks_get_the_rosters_own_columns_and_no_0_for_what_was_not_graded(self):
        record = self.record("ann", {}, {"Email address": "ann@example.org", "SIS Login ID": "a7"})
        other = self.ungraded("bob")
        other.student = student("bob", **{"Email address": "bob@example.org", "SIS Login ID": "b8"})
        points = [str(stage.points) for stage in STAGES]
        none = [""] * len(STAGES)
        self.assertEqual(list(marks.moodle([record, other], STAGES, DUE)), [
            ["Email address", *(f"Stage {stage.id}" for stage in STAGES), "Total"],
            ["ann@example.org", *points, str(POINTS)], ["bob@example.org", *none, ""]])
        self.assertEqual(list(marks.canvas([record, other], STAGES, DUE))[1:], [
            ["Points Possible", "", "", "", "", *points], ["", "", "", "a7", "", *points], ["", "", "", "b8", "", *none]])

    def test_gradebooks_get_no_0_for_what_can_still_be_handed_in(self):
        last = next(stage for stage in STAGES if stage.is_optional)
        rules = lateness.Rules({"deadlines": {"1,3": "2026-11-02T11:00Z", "2": "2026-11-03T12:00Z"}, "grace_hours": 1},
                               STAGES)
        record = self.record("ann", {at: ("unwritten",) for at in (1, 2, last.id)} | {3: ("wrong",)}, rules=rules)
        for at, empty in (DUE, [1, 2, last.id]), (DUE + HOURS, [2, last.id]), (DUE + 26 * HOURS, [last.id]):
            row = list(marks.canvas([record], STAGES, at))[-1][5:]
            self.assertEqual([at for at, cell in enumerate(row) if cell == ""], empty)
            self.assertEqual(list(marks.moodle([record], STAGES, at))[-1][1:-1], row)
        record.stages[2].override = overrides.Override(0, "copied")
        self.assertEqual(list(marks.canvas([record], STAGES, DUE))[-1][5 + 2], "0")

    def test_an_optional_stage_is_among_the_points_of_those_who_began_it(self):
        last = next(stage for stage in STAGES if stage.is_optional)
        ann, bob = self.record("ann", {last.id: ("unwritten",)}), self.record("bob", {last.id: ("wrong",)})
        fewer = POINTS - last.points
        self.assertEqual((ann.points, bob.points, self.unseen("cat").points), (fewer, POINTS, fewer))
        self.assertIn(f"# ann: {fewer} of {fewer} points", "\n".join(feedback.markdown(ann)))
        self.assertIn(f"# bob: {fewer} of {POINTS} points", "\n".join(feedback.markdown(bob)))
        self.assertEqual([row[2] for row in marks.own([ann, bob], STAGES, DUE)][1:], [fewer, POINTS])
        for records, total in ([ann], f"<b>{fewer}</b>total"), ([ann, bob], f"<b>{fewer}\N{EN DASH}{POINTS}</b>total"):
            self.assertIn(total, "\n".join(class_page.page(self.run_of(records), [])))
        for points, of in (0, fewer), (5, POINTS):  # a correction must refer to possible points
            given = overrides.Override(points, "x")
            ann.stages[last.id] = marks.StageMark(last, ann.stages[last.id].entry, None, 0, 0, given)
            self.assertEqual(ann.points, of)

    def test_feedback_is_what_was_found_and_when_and_why_it_counts_less(self):
        due = {"deadlines": {"all": "2026-10-31T12:00+01:00"}}
        rules = lateness.Rules({**due, "late_percent_a_day": 10, "late_days": 4}, STAGES)
        record = self.record("ann", {2: ("wrong", 0, "no_mean")}, rules=rules)
        late = lateness.Version("a" * 40, DUE, 2)
        record.stages[3] = marks.StageMark(STAGES[3], record.result["stages"][3], late, 24)
        record.stages[4] = marks.StageMark(STAGES[4], record.result["stages"][4], late, STAGES[4].points, 2)
        record.stages[5] = marks.StageMark(STAGES[5], record.result["stages"][5], late, 1, 0,
                                           overrides.Override(7, "a | in a reason"))
        record.late_days_used = 2
        text = "\n".join(feedback.markdown(record))
        lost = STAGES[2].points + 6 + STAGES[5].points - 7
        self.assertIn(f"# ann: {POINTS - lost} of {POINTS} points", text)
        times = "(deadline 2026-10-31 12:00 UTC+01:00, seen 2026-11-02 13:00 UTC+01:00)"
        self.assertIn("| 3 | Matrix product, B transposed | 2026-10-31 12:00 UTC+01:00 | 30 / 30 | 24 | right | "
                      f"2 days late {times} · 2 × 10% lost |", text)
        self.assertIn(f"2 days late {times} · late days cover 2 |", text)
        self.assertIn("corrected by the teacher: a \\| in a reason (graded: 1) |", text)
        self.assertIn("Late days used: 2 of 4.", text)
        self.assertNotIn("\x1b", text)
        self.assertNotIn(str(SEED), text)
        record.problem = "no <img src=x> `here`"
        self.assertIn(r"no \<img src=x\> \`here\`", "\n".join(feedback.markdown(record)))

    def test_days_late_are_all_of_them_and_those_that_late_days_cover_are_named(self):
        record = self.record("ann", {}, rules=lateness.Rules({"deadlines": {"all": "2026-10-31T12:00Z"},
                                                              "late_percent_a_day": 20}, STAGES))
        for at, covered, said in (3, 3, "· late days cover 3 |"), (4, 1, "· late days cover 1 · 2 × 20% lost |"):
            version, one = lateness.Version("a", DUE, 3), record.stages[at]
            record.stages[at] = marks.StageMark(one.stage, one.entry, version, 1, covered)
            heading, row = marks.own([record], STAGES, DUE)
            self.assertEqual(row[heading.index("days_late")], 3)
            self.assertIn(f"3 days late (deadline 2026-10-31 12:00 UTC, seen 2026-11-02 12:00 UTC) {said}",
                          "\n".join(feedback.markdown(record)))
        self.assertIn("<li><a href=\"feedback/ann.md\">ann</a>: 3 days late, of which late days cover 1: stage 4</li>",
                      "\n".join(class_page.troubles([record])))

    def test_feedback_says_what_is_still_to_write(self):
        record = self.record("ann", {6: ("begun", 10)})
        group = record.stages[6].entry["groups"][0]
        record.stages[6].entry["groups"] = [{**group, "status": "passed"},
                                            {**group, "name": "H", "status": "unwritten"}]
        self.assertIn("| right so far, not finished | still to write: H (50 points) |",
                      "\n".join(feedback.markdown(record)))
        self.assertEqual(report.still_to_write(entry(STAGES[6], "unwritten")), "")  # nothing is begun
        self.assertIn("| right so far, not finished; still to write: H (50 points) |",
                      "\n".join(report.markdown({**record.result, "earned": 0, "points": 0})))

    def test_feedback_has_no_points_for_an_optional_stage_that_is_not_begun(self):
        last = next(stage for stage in STAGES if stage.is_optional)
        text = "\n".join(feedback.markdown(self.record("ann", {last.id: ("unwritten",)})))
        self.assertIn(f"| {last.id} | {last.title['en']} | - | - | optional |  |", text)
        self.assertEqual(sum(map(int, re.findall(r"/ (\d+) \|", text))), POINTS - last.points)

    def test_feedback_about_a_correction_of_all_stages_has_one_line_for_the_change(self):
        record = self.record("ann", {})
        copied = {"before": 10, "after": 1.5, "why": [["changed_override", "copied"]]}
        record.changes = {"at": "2026-11-02", "stages": [*({"stage": at, **copied} for at in range(3)), {
            "stage": 4, "before": None, "after": 2, "why": [["changed_graded"]]}]}
        self.assertEqual(list(feedback.changed(record))[1:], [
            "- stages 0, 1, 2 together: 30 \N{RIGHTWARDS ARROW} 4.5, corrected by the teacher: copied",
            "- stage 4: not graded \N{RIGHTWARDS ARROW} 2, graded now"])
        record.stages[3] = marks.StageMark(STAGES[3], None, None, None, 0, overrides.Override(5, "she showed it"))
        self.assertIn("corrected by the teacher: she showed it |", "\n".join(feedback.markdown(record)))

    def test_feedback_about_nothing_begun_names_the_branch_that_is_read(self):
        record = self.record("ann", {stage.id: ("unwritten",) for stage in STAGES})
        self.assertNotIn("default branch", "\n".join(feedback.markdown(record)))
        record.started = dict.fromkeys(record.started)
        self.assertIn("default branch", "\n".join(feedback.markdown(record)))

    def test_not_graded_is_not_0_in_tables_feedback_and_page(self):
        seen = [self.unseen("bob"), self.ungraded("cat"), self.record("dan", {9: ("unjudged", 3)})]
        for record in seen:
            self.assertIsNone(record.mark)
            text = "\n".join(feedback.markdown(record))
            self.assertIn(f"# {record.id}: not graded yet", text)
            self.assertIn("**not graded: ", text)
        for lines in marks.TABLES.values():
            bob, cat, dan = list(lines(seen, STAGES, DUE))[-3:]
            self.assertNotIn("0", bob[:2] + bob[4:5])
            own = lines is marks.own
            cells = [row[9:9 + len(STAGES)] if own else row[-len(STAGES) - (lines is marks.moodle):][:len(STAGES)]
                     for row in (bob, cat, dan)]
            self.assertEqual(cells[:2], [[""] * len(STAGES)] * 2)
            self.assertEqual([at for at, one in enumerate(cells[2]) if one == ""], [9])
        page = "\n".join(class_page.page(self.run_of([self.record("ann", {}), *seen]), []))
        self.assertEqual(page.count("<i>not graded</i>"), 3)
        self.assertNotIn("<b>0</b></td>", page)
        self.assertIn(f"<b>{POINTS:.1f}</b>mean", page)  # of the graded students
        self.assertIn("<small>1 / 1</small>", page)  # stage 9: of those graded in it
        alone = "\n".join(class_page.page(self.run_of([self.unseen("bob")]), []))
        self.assertIn("0 / 0", alone)

    def test_problems_have_an_entry_per_student_and_who_was_not_graded_is_first(self):
        late = self.record("ann", {})
        for at in 1, 2, 3:
            late.stages[at] = marks.StageMark(STAGES[at], late.result["stages"][at],
                                              lateness.Version("a" * 40, DUE, 1 + at // 3), 1)
        unpulled = self.record("bob", {}, problem="no answer")
        better = self.record("cat", {})
        better.stages[3] = marks.StageMark(STAGES[3], better.result["stages"][3], better.stages[3].version, 30, 0,
                                           overrides.Override(7, "x"))
        better.stages[3].corrected = 20
        unread = self.record("fay", {2: ("refused", 0), 3: ("refused", 0), 4: ("wrong",)})
        for at in 2, 3:
            unread.result["stages"][at]["message"] = f"file {at} is missing <&\nmore"
        records = [self.record("zoe", {}), late, unpulled, better, unread, self.ungraded("dan"), self.unseen("eve")]
        listed = "\n".join(class_page.troubles(records))
        self.assertIn("stage 2 was refused (0 points): file 2 is missing &lt;&amp;<br>stage 3 was refused (0 points): file 3", listed)
        self.assertEqual([id for id in ("dan", "eve", "bob", "cat", "fay", "ann")],
                         [part.split('">')[1].split("<")[0] for part in listed.split("<li>")[1:]])
        self.assertIn("2 days late: stage 3<br>1 day late: stages 1, 2", listed)
        self.assertEqual(list(class_page.troubles(records[:1])), [])

    def test_signs_are_drawn_and_need_no_font(self):
        record = self.record("ann", {1: ("wrong",), 2: ("unwritten",), 3: ("uncompiled",), 9: ("unjudged",)})
        record.stages[4] = marks.StageMark(STAGES[4], record.result["stages"][4], lateness.Version("a", DUE, 2), 3)
        record.stages[5] = marks.StageMark(STAGES[5], None, None, None, 0, overrides.Override(0, "x"))
        text = "\n".join(class_page.page(self.run_of([record]), []))
        beyond = {letter for letter in text if ord(letter) > 0xff} - {"\N{EN DASH}"}  # any font has this one
        self.assertEqual(beyond, set())
        for name in class_page.SIGNS:
            self.assertIn(f'<symbol id="{name}"', text)
            self.assertIn(f'href="#{name}"', text)


class Ranking(Records):
    def test_shows_nicknames_as_text_and_ids_to_the_teacher_alone(self):
        run = self.run_of([self.record("ann", {}), self.record("bob", {})])
        places = [ranking.Place(812.4, EVIL, "bob"), ranking.Place(90.0, "slow fox", "ann")]
        for lines, links in ((class_page.ranking_page(run, places), set()),
                             (class_page.page(run, [], (), places), {"feedback/ann.md", "feedback/bob.md"})):
            text = "\n".join(lines)
            seen = Seen(text)
            self.assertEqual((seen.open, seen.tags & {"script"}), ([], set()))
            self.assertEqual({link for link in seen.links if not link.startswith("#")}, links)
            self.assertLess(text.index("812 tokens per second"), text.index("slow fox"))
        self.assertNotIn("ranking", "\n".join(class_page.page(run, [])))

    def test_takes_part_who_has_every_stage_right_and_a_nickname(self):
        run = self.run_of([self.record("ann", {11: ("unwritten",)}), self.record("bob", {3: ("wrong",)}),
                           self.record("cat", {9: ("slow", 3)}), self.record("dan", {}), self.unseen("eve"),
                           self.record("fay", {})])
        names = {"ann": "fox", "bob": "owl", "cat": "cat", "dan": None, "fay": "fox"}
        run.versions = {id: types.SimpleNamespace(handed_in={"a" * 40: types.SimpleNamespace(nickname=name)}.get)
                        for id, name in names.items()}
        run.graded_as = {(id, "a" * 40): "ann" if id == "fay" else id for id in names}  # two share a repository
        self.assertEqual([id for id, _ in ranking.competitors(run)], ["ann", "cat"])

    def test_measures_each_program_once_and_has_no_place_for_another_text(self):
        names = {"ann": b"1", "bob": b"2", "cat": b"3", "dan": b"4"}
        handed_in = {id: types.SimpleNamespace(nickname=id, files=dict.fromkeys(submission.names(STAGES), text))
                     for id, text in names.items()}
        speeds = {"ann": 5.0, "bob": 0.0, "cat": 7.0, "dan": programs.NotMade("no")}

        def score(one, stages, texts):
            measured.append(one.nickname)
            if isinstance(speeds[one.nickname], Exception):
                raise speeds[one.nickname]
            return speeds[one.nickname]

        run, tree = types.SimpleNamespace(stages=STAGES, classroom=class_folder.Classroom(
            self.put("roster.csv", "id,repository\nann,x\n"))), "tree"
        with mock.patch.multiple(ranking.score, Texts=mock.DEFAULT, score=score), mock.patch.multiple(
                official_tree, fingerprint=lambda: tree, compiler=lambda: "c++"), (
                mock.patch.object(ranking, "competitors", lambda run: handed_in.items())):
            for tree, expected in ("tree", list(names)), ("tree", ["dan"]), ("mended tree", list(names)):
                measured = []
                places, problems = ranking.places(run)
                self.assertEqual(measured, expected)
                self.assertEqual([place.id for place in places], ["cat", "ann"])
                self.assertEqual(problems, {"bob": course.say("score_other_text"), "dan": "no"})
            measured, handed_in["ann"].files[NAME] = [], b"5"
            ranking.places(run)
            self.assertEqual(measured, ["ann", "dan"])

    def test_is_a_choice_of_the_teacher(self):
        self.assertFalse(ranking.is_wanted({}))
        self.assertTrue(ranking.is_wanted({"ranking": True}))
        self.assertIn('course.json: ranking: expected true or false, found "yes"',
                      self.problem(ranking.is_wanted, {"ranking": "yes"}))

    def test_a_nickname_is_pulled_with_the_files_and_is_short(self):
        handed_in = submission.Submission("x", "a" * 40)
        handed_in.refused = {name: "grade_missing" for name in submission.names(STAGES)}
        handed_in.take_settings(json.dumps({"nickname": " fast\n fox " + "x" * 50}))
        class_folder.keep(self.folder, "ann", handed_in)
        self.assertEqual(class_folder.kept(self.folder, "ann", "a" * 40).nickname, "fast fox " + "x" * 15)
        handed_in.take_settings('{"nickname": 3}')
        self.assertEqual(handed_in.nickname, "fast fox " + "x" * 15)  # a setting that is not text is ignored
        handed_in.take_settings('{"nickname": "half \\ud83e"}')
        self.assertEqual(handed_in.nickname, "half ?")
        for language, taken in ("zh", "zh"), ("fr", None):
            handed_in.take_settings(json.dumps({"language": language}))
            self.assertEqual(handed_in.language, taken)
        self.assertTrue(repositories.name_of(handed_in).startswith("files-"))


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    unittest.main()
