"""Likeness, tested with programs of the catalogue: it finds a copy with other names and formatting, and does not take
right programs that were written independently for copies.

    likeness_test.py
"""
import re
import sys
import time
import unittest
from unittest import mock

from make_class import ROOT, STAGES, programs, renamed, text_of
from classroom import likeness
from grading import submission
from rules import cpp_text
from shared import course

OWN = """#include "model/mlp.h"
namespace stagecraft {
void mlp(const MlpWeights& w, MatrixView<const float> in, MatrixView<float> out) {
  for (std::size_t r = 0; r != in.rows(); r += 1) {
    std::vector<double> t(w.gate.rows());
    double biggest = -1e30;
    for (std::size_t k = 0; k != t.size(); ++k) {
      double a = 0, b = 0;
      for (std::size_t c = 0; c != in.cols(); ++c) { a += w.gate(k, c) * in(r, c); b += w.up(k, c) * in(r, c); }
      t[k] = a / (1.0 + std::exp(-a)) * b;
      if (t[k] > biggest) biggest = t[k];
    }
    if (!(biggest < 1e30)) throw Error("mlp: row {} is not finite, its largest is {}", r, biggest);
    for (std::size_t c = 0; c != out.cols(); ++c) {
      double sum = in(r, c);
      for (std::size_t k = 0; k != t.size(); ++k) sum += w.down(c, k) * t[k];
      out(r, c) = static_cast<float>(sum);
    }
  }
}
}
"""
OTHER = """namespace stagecraft {
static float dot(const float* p, const float* q, int n) { return n ? *p * *q + dot(p + 1, q + 1, n - 1) : 0; }
void mlp(const MlpWeights& w, MatrixView<const float> in, MatrixView<float> out) {
  auto each = [&](auto&& self, int r) -> void {
    if (r < 0) return;
    std::map<int, float> hidden;
    while (hidden.size() < w.gate.rows()) {
      const int at = hidden.size();
      const float g = dot(&w.gate(at, 0), &in(r, 0), in.cols());
      hidden.emplace(at, g * 0.5f * (1 + std::tanh(g / 2)) * dot(&w.up(at, 0), &in(r, 0), in.cols()));
    }
    for (auto [at, value] : hidden) for (int c = 0; c < out.cols(); c++) out(r, c) += w.down(c, at) * value;
    self(self, r - 1);
  };
  each(each, in.rows() - 1);
}
}
"""


def lines(text):
    return {line.strip() for line in text.splitlines() if len(line.strip()) > 5}


class Likeness(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        try:
            course.starters()
        except course.Problem as problem:  # a clone without history
            raise unittest.SkipTest(str(problem)) from None

    def names(self, text):
        return list(likeness.tokens(text))

    def test_sees_neither_names_nor_numbers_nor_comments_nor_formatting_nor_includes(self):
        one = "#include <cmath>\nfloat f(float x) {\n  return x * 2.0f;  // twice\n}\n"
        other = "float  g ( float yes )\n{ /* 3 */ return yes*0x1p+3 ; }"
        self.assertEqual(self.names(one), self.names(other))
        self.assertNotEqual(self.names(one), self.names(one.replace("*", "/")))

    def test_reads_what_does_not_end_in_linear_time(self):
        for endless in ("__has_include(<", "/* ", '\\"', "\\'", 'R"(', 'R"x(" ', "#if 0\n", "// \\\n", "1'"):
            start = time.process_time()
            found = list(likeness.tokens("int x; " + endless * (240_000 // len(endless))))
            self.assertEqual(found[:2], ["int", "N"])
            self.assertLess(time.process_time() - start, 5, endless)

    def test_sees_no_code_in_texts_and_no_text_in_code(self):
        one = self.names("int f(int x) { return x / 2; }")
        for hidden in ('R"(" /*)"', 'u8R"a(" )" /*)a"', '"/*"', "'\"'", "1'000", "/* \" */ 1", "// \" \\\n /*\n1"):
            self.assertEqual(self.names(f"auto n = {hidden};\nint f(int x) {{ return x / 2; }}")[-len(one):], one, hidden)
        never = "#if 0\n#ifdef X\nint g();\n#else\nint h();\n#endif\n#endif\n"
        self.assertEqual(self.names(never + "int f(int x) { return x / 2; }"), one)
        self.assertEqual(self.names("#if 0\nint g();\n#else\nint h;\n#endif"), self.names("int h;\n#endif"))
        for text in ('a "b\\"c" // d\n/* e\nf */ g', 'R"(x\ny)" z'):
            bare = cpp_text.without_comments(text, texts=False)
            self.assertEqual((len(bare), bare.count("\n")), (len(text), text.count("\n")))

    def test_finds_a_copy_in_other_names_and_another_dress(self):
        for stage in STAGES[likeness.FIRST_STAGE:]:
            right = [program["file"] for program in programs(stage) if program["is"] == "right"]
            for file in right:
                text = text_of(stage, file) + OWN
                files = {"ann": text, "bob": renamed(text), "cat": OTHER}
                found = likeness.clusters(files, likeness.handed_out(stage))
                self.assertEqual([ids for _, ids in found], [["ann", "bob"]], f"{stage.id}: {file}")
                self.assertGreater(found[0][0], 0.8)

    def test_finds_a_copy_that_only_seems_to_be_left_out(self):
        """A compiler compiles all of these."""
        head, body = OWN.split("\n", 1)
        for begin, end in (("#if 0 < 1", "#endif"), ("#if false || true", "#endif"), ("#if 0 \\\n || 1", "#endif"),
                           ("#if 0'0 == 0", "#endif"), ("#if 0\n%:else", "#endif"), ("#if 0\n\f#else", "#endif"),
                           ("#if 0\n%:endif", ""), ("#if !__has_include(<x/*y>)", "#endif // */")):
            found = likeness.clusters({"ann": OWN, "bob": f"{head}\n{begin}\n{body}{end}\n", "cat": OTHER},
                                      likeness.handed_out(STAGES[4]))
            self.assertEqual([ids for _, ids in found], [["ann", "bob"]], begin)

    def test_knows_the_other_spellings_of_signs(self):
        one = "int f(int* a) { if (a[0] && !a[1] || a[2] != 3) a[0] |= ~a[1]; std::vector<::T> v; return a[1] ^ a[2] & 3; }"
        other = ("int f(int* a) <% if (a<:0:> and not a<:1:> or a<:2:> not_eq 3) a<:0:> or_eq compl a<:1:>; "
                 "std::vector<::T> v; return a<:1:> xor a<:2:> bitand 3; %>")
        for names in (False, True):
            self.assertEqual(list(likeness.tokens(one, names)), list(likeness.tokens(other, names)))

    def test_finds_a_copy_in_another_file_of_its_stage(self):
        handed_in, stage = {}, STAGES[6]
        first, second = (course.unit_name(stage, unit) for unit in stage.units[:2])
        for id, name, text in ("ann", first, OWN), ("bob", second, renamed(OWN)), ("cat", first, OTHER):
            handed_in[id] = [submission.Submission(id)]
            handed_in[id][0].files = {**course.starters(), name: text.encode()}
        found = likeness.look_at_these(STAGES, likeness.Handed(handed_in))
        self.assertEqual([(name, share, ids) for _, name, share, ids in found],
                         [(" / ".join(sorted([first, second])), 1.0, ["ann", "bob"])])

    def test_finds_a_copy_in_another_dress_in_the_first_stages(self):
        for stage in STAGES[1:likeness.FIRST_STAGE]:
            for file in [program["file"] for program in programs(stage) if program["is"] == "right"]:
                text = text_of(stage, file)
                seen = likeness.runs(text) - likeness.handed_out(stage)
                copy = re.sub(r"//[^\n]*", "", text).replace("  ", "\t") + "static int unused = 3;\n"
                found = likeness.clusters({"ann": text, "bob": copy, "cat": OTHER}, likeness.handed_out(stage), likeness.NAMED)
                expected = [["ann", "bob"]] if len(seen) >= likeness.LEAST_WITH_NAMES else []
                self.assertEqual([ids for _, ids in found], expected, f"{stage.id}: {file}, {len(seen)} runs of its own")

    def test_leaves_programs_that_were_written_apart_alone(self):
        """Some programs of the catalogue are edits of each other: those share most of their lines."""
        for stage in STAGES:
            look = likeness.look_of(stage)
            right = [program["file"] for program in programs(stage) if program["is"] == "right"]
            files = {file: text_of(stage, file) for file in right}
            for share, one, other in likeness.pairs(files, likeness.handed_out(stage), look):
                mine, theirs = lines(files[one]), lines(files[other])
                if len(mine & theirs) < min(len(mine), len(theirs)) / 2:
                    self.assertLess(share, look.shared, f"{one}, {other}")
        self.assertEqual(likeness.clusters({"ann": OWN, "bob": OTHER}, likeness.handed_out(STAGES[4])), [])

    def test_counts_nothing_that_was_handed_out_or_that_a_whole_class_has(self):
        stage = STAGES[likeness.FIRST_STAGE]
        ours = "\n".join((ROOT / answer).read_text() for unit in stage.units for answer in unit["answers"])
        self.assertEqual(likeness.clusters({id: ours for id in "abc"}, likeness.handed_out(stage)), [])
        files = {f"{at}": OWN for at in range(40)}  # as shown in a lecture
        self.assertEqual(likeness.clusters(files, set()), [])
        self.assertEqual(likeness.clusters(dict(list(files.items())[:3]), set()), [(1.0, ["0", "1", "2"])])

    def test_finds_a_copy_beside_as_much_of_ones_own(self):
        own = OTHER.replace("mlp", "mine") + OTHER.replace("+", "-").replace("*", "%") + OTHER.replace("(", "((")
        found = likeness.clusters({"ann": OWN, "bob": OWN + own}, set())
        self.assertEqual([ids for _, ids in found], [["ann", "bob"]])

    def test_says_nothing_about_a_few_lines(self):
        few = "int f(int a, int b) { for (int i = 0; i < a; ++i) { b += a * i; } return b % a; }"
        self.assertTrue(0 < len(likeness.fingerprints(few)) < likeness.LEAST)
        self.assertEqual(likeness.clusters({"ann": few, "bob": few, "cat": OTHER}, set()), [])

    def test_takes_for_usual_what_more_than_a_tenth_of_a_class_has(self):
        for n, found in (likeness.FEW, [[f"{at}" for at in range(likeness.FEW)]]), (likeness.FEW + 1, []):
            files = {f"{at}": OWN if at < n else OTHER for at in range(40)}
            self.assertEqual([ids for _, ids in likeness.clusters(files, set())], found)

    def test_asks_for_more_where_many_pairs_are_alike(self):
        """In a class of 24, each table of four shares most of its code. Two of one table share all of it."""
        def words(name, n):
            return " + ".join(f"{name}_{at}" for at in range(n))
        files = {f"{at}": f"{words(f'table{at // 4}', 91)} + {words(f'own{at}', 9)};" for at in range(24)}
        files["1"] = files["0"]
        shares = [share for share, *_ in likeness.pairs(files, set(), likeness.NAMED)]
        self.assertGreater(sorted(shares)[-2], likeness.NAMED.shared)
        found = likeness.clusters(files, set(), likeness.NAMED)
        self.assertEqual([ids for _, ids in found], [["0", "1"]])

    def test_lists_a_pair_once_and_nobody_beside_themselves(self):
        stage = STAGES[6]
        first, second = (course.unit_name(stage, unit) for unit in stage.units[:2])
        handed_in = {id: [submission.Submission(id)] for id in ("ann", "bob", "cat")}
        handed_in["ann"][0].files = {first: OWN.encode(), second: renamed(OWN).encode()}  # their own code twice
        handed_in["bob"][0].files = {first: OTHER.encode()}
        self.assertEqual(likeness.look_at_these([stage], likeness.Handed(handed_in)), [])
        handed_in["cat"][0].files = {first: (OTHER + "// mine").encode()}
        found = likeness.look_at_these([stage], likeness.Handed(handed_in))
        self.assertEqual([(name, ids) for _, name, _, ids in found], [(first, ["bob", "cat"])])

    def test_looks_at_names_before_stage_4_and_at_no_starter(self):
        handed_in, third = {}, course.unit_name(STAGES[3], STAGES[3].units[0])
        for id, text in ("ann", OWN), ("bob", renamed(OWN)):
            handed_in[id] = [submission.Submission(id), submission.Submission(id)]
            for one in handed_in[id]:
                one.files = course.starters()
                one.files[third] = text.encode()
        self.assertEqual(likeness.look_at_these(STAGES, likeness.Handed(handed_in)), [])
        handed_in["bob"][1].files[third] = OWN.encode()
        found = likeness.look_at_these(STAGES, likeness.Handed(handed_in))
        self.assertEqual([(name, share, ids) for _, name, share, ids in found], [(third, 1.0, ["ann", "bob"])])
        handed_in["bob"][1].files[third] = handed_in["bob"][0].files[third]
        handed_in["ann"][1].files["stages/04-mlp/mlp.cpp"] = OWN.encode()
        handed_in["bob"][0].files["stages/04-mlp/mlp.cpp"] = renamed(OWN).encode()
        handed_in["bob"][1].files["stages/04-mlp/mlp.cpp"] = OTHER.encode()  # rewritten later
        found = likeness.look_at_these(STAGES, likeness.Handed(handed_in))
        self.assertEqual([(name, ids) for _, name, _, ids in found], [("stages/04-mlp/mlp.cpp", ["ann", "bob"])])

    def test_takes_limited_time_and_memory_for_files_that_nobody_would_write(self):
        stage, versions = STAGES[6], []
        name = course.unit_name(stage, stage.units[0])
        for at in range(60):
            versions.append(submission.Submission("ann"))
            versions[-1].files = {name: f"int f{at};\n{'- + * . ' * 30_000}".encode()}
        (_, _, files, unread), *_ = likeness.written([stage], likeness.Handed({"ann": versions}))
        self.assertEqual((files, unread), ({}, ["ann"]))
        start = time.process_time()
        self.assertEqual(likeness.look_at_these([stage], likeness.Handed({"ann": versions})), [])
        self.assertEqual([(ids, share) for _, _, share, ids, _ in likeness.look_at_ours([stage], likeness.Handed({"ann": versions}))],
                         [(["ann"], 1.0)])  # hides nothing behind its length
        self.assertLess(time.process_time() - start, 20)

    def test_compares_the_first_and_the_last_of_many_versions_and_those_that_were_graded(self):
        stage, texts = STAGES[4], {"ann": [f"int f{at};\n" for at in range(600)], "bob": [OWN]}
        texts["ann"][301] = OWN
        name = course.unit_name(stage, stage.units[0])
        versions = {}
        for id, every in texts.items():
            versions[id] = [submission.Submission(id) for _ in every]
            for one, text in zip(versions[id], every):
                one.files = {name: text.encode()}
        for graded, found in ([], []), ([versions["ann"][301]], [["ann", "bob"]]):
            handed = likeness.Handed(versions, {("ann", stage.id): graded})
            (_, _, files, _), *_ = likeness.written([stage], handed)
            self.assertEqual([files["ann"][at] for at in (0, likeness.MOST_VERSIONS - 1)], [texts["ann"][0], texts["ann"][-1]])
            self.assertEqual([ids for *_, ids in likeness.look_at_these([stage], handed)], found)

    def test_lists_a_text_over_which_reading_ends_and_goes_on(self):
        stage = STAGES[4]
        name, real = course.unit_name(stage, stage.units[0]), likeness.tokens
        versions = {id: [submission.Submission(id)] for id in ("ann", "bob", "cat", "eve")}
        for id, (one,) in versions.items():
            one.files = {name: f"{OWN}// {id}".encode()}

        def tokens(text, names=False):
            if "eve" in text or "cat" in text:
                raise MemoryError if "eve" in text else RecursionError
            return real(text, names)
        likeness.row_of.cache_clear()
        with mock.patch.object(likeness, "tokens", tokens), mock.patch("traceback.print_exc"):
            handed = likeness.Handed(versions)
            self.assertEqual([ids for *_, ids in likeness.look_at_these([stage], handed)], [["ann", "bob"]])
            self.assertEqual([(ids, why[:6]) for _, _, _, ids, why in likeness.look_at_ours([stage], handed)],
                             [(["cat"], "cannot"), (["eve"], "cannot")])
        likeness.row_of.cache_clear()

    def test_reads_equal_texts_once(self):
        with mock.patch.object(likeness, "tokens", side_effect=likeness.tokens) as tokens:
            text = OWN + "// of its own"
            for _ in range(3):
                likeness.clusters({"ann": text, "bob": text}, set())
                likeness.copies({"ann": [text], "bob": [text]}, set())
        self.assertEqual(tokens.call_count, 1)

    # ---- ours -------------------------------------------------------------------------------

    def like_ours(self, stage, text):
        return likeness.like_ours(stage, {"ann": [text]})

    def test_finds_what_was_pasted_from_an_answer_of_ours_in_every_stage(self):
        for stage in STAGES:
            for path in likeness.paths_of_ours(stage):
                text = likeness.text_of_ours(path)
                bare = " ".join(re.sub(r"//.*", "", line) for line in text.splitlines() if line[:1] != "#")
                more = text.replace("stagecraft", "mine", 1) + "\nstatic int unused = 3;\n"
                found = likeness.like_ours(stage, {"ann": [text], "bob": [bare], "cat": [more]})
                self.assertEqual({id for _, id, _, _ in found}, {"ann", "bob", "cat"}, path)
                self.assertGreater(found[-1][0], 0.8)

    def test_finds_an_answer_of_ours_beside_as_much_of_ones_own(self):
        stage = STAGES[6]
        for path in likeness.paths_of_ours(stage)[:3]:
            text = likeness.text_of_ours(path)
            more = "\n".join(renamed(OWN).replace("own", f"own{at}") for at in range(1 + 2 * len(text) // len(OWN)))
            hidden = 'const char* const note = R"(" /*)";\n'
            found = likeness.like_ours(stage, {"ann": [text + more], "bob": [hidden + text], "cat": [more]})
            self.assertEqual({id for _, id, _, _ in found}, {"ann", "bob"}, path)

    def test_says_nothing_about_an_answer_of_ours_of_a_few_words(self):
        few = "int a = b + c * d - e / f;"
        ours = likeness.Ours(STAGES[4], likeness.runs, [("src/few.cpp", few)])
        self.assertGreater(len(ours.seen["src/few.cpp"]), 0)
        self.assertLess(ours.best(OWN + few, likeness.LEAST_WITH_NAMES)[0], likeness.LIKE_OURS)

    def test_finds_our_answers_in_other_names(self):
        for stage in STAGES[1:]:
            for unit in stage.units:
                text = "\n".join((ROOT / answer).read_text() for answer in unit["answers"])
                self.assertTrue(self.like_ours(stage, renamed(text)), unit["file"])

    def test_takes_no_other_right_program_of_a_first_stage_for_a_copy_in_other_names(self):
        for stage in STAGES[1:likeness.FIRST_STAGE]:
            for program in programs(stage):
                if program["is"] == "right" and "of" not in program:
                    self.assertEqual(self.like_ours(stage, renamed(text_of(stage, program["file"]))), [], program["file"])

    def test_finds_copies_behind_directives(self):
        stage = STAGES[6]
        text = (ROOT / stage.units[0]["answers"][0]).read_text()
        for noise in ("#", "#undef z", "# /* */", "%:", "#line 3"):
            hidden = re.sub(r"(?m)^((?!#|//).*)$", lambda line: line[1].replace(" ", f"\n{noise}\n"), text)
            self.assertTrue(self.like_ours(stage, hidden), noise)

    def test_lists_files_that_are_equal_however_many_have_them(self):
        stage = STAGES[likeness.FIRST_STAGE]
        name = course.unit_name(stage, stage.units[0])
        handed_in = {id: [submission.Submission(id)] for id in [f"same{at}" for at in range(6)] + ["apart"]}
        for id, (one,) in handed_in.items():
            one.files = {name: (OTHER if id == "apart" else OWN + f"// {id}").encode()}
        found = likeness.look_at_these([stage], likeness.Handed(handed_in))
        self.assertEqual([(share, ids) for _, _, share, ids in found], [(1.0, [f"same{at}" for at in range(6)])])

    def test_lists_only_copies_one_by_one_if_most_of_a_class_is_like_ours(self):
        stage = STAGES[likeness.FIRST_STAGE]
        unit = stage.units[0]
        name, copy = course.unit_name(stage, unit), (ROOT / unit["answers"][0]).read_text()
        texts = {"copy": copy, "apart": OWN, **{f"like{at}": renamed(copy) for at in range(5)}}
        handed_in = {id: [submission.Submission(id)] for id in texts}
        for id, text in texts.items():
            handed_in[id][0].files = {name: text.encode()}
        found = [ids for _, _, _, ids, _ in likeness.look_at_ours([stage], likeness.Handed(handed_in))]
        self.assertEqual(found, [["copy"], ["like0", "like1", "like2", "like3", "like4"]])
        for at in range(6):  # then they are no more than half
            handed_in[f"apart{at}"] = handed_in["apart"]
        found = [ids for _, _, _, ids, _ in likeness.look_at_ours([stage], likeness.Handed(handed_in))]
        self.assertEqual(sorted(found), [["copy"], *([f"like{at}"] for at in range(5))])
        few = {id: handed_in[id] for id in ("copy", "apart", "like0", "like1")}
        found = [ids for _, _, _, ids, _ in likeness.look_at_ours([stage], likeness.Handed(few))]
        self.assertEqual(sorted(found), [["copy"], ["like0"], ["like1"]])

    def test_finds_an_answer_that_only_history_has(self):
        stage = STAGES[2]
        older = [(path, text) for path, text in likeness.answers_of_ours(stage) if "@" in path]
        if not older:
            self.skipTest("no history")
        found = self.like_ours(stage, older[0][1])
        self.assertEqual((found[0][0], found[0][1]), (1.0, "ann"))

    def test_takes_nothing_for_ours_that_was_written_apart(self):
        for text in (OWN, OTHER):
            self.assertEqual(self.like_ours(STAGES[4], text), [])
        for stage in STAGES:
            for unit in stage.units:
                self.assertEqual(self.like_ours(stage, stage.starter(unit).decode()), [])


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    unittest.main()
