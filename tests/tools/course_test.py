"""The course against itself: registry, folders and handouts agree, in both languages, and every answer
that a handout gives is the one that models/story gives."""
import json
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
STAGES = json.loads((ROOT / "stages" / "stages.json").read_text())["stages"]
LANGUAGES = {"en": "README.md", "zh": "README.zh.md"}
CHECK = re.compile(r"([\d,.]+)(?:\D*?)<!-- check: (.*?) -->")


def folder(stage):
    return ROOT / "stages" / f"{stage['id']:02d}-{stage['slug']}"


def handouts():
    for stage in STAGES:
        for language, name in LANGUAGES.items():
            yield stage, language, folder(stage) / name


def model_sizes():
    config = json.loads((ROOT / "models" / "story" / "config.json").read_text())
    return {
        "dim": config["hidden_size"], "ffn_dim": config["intermediate_size"],
        "n_layers": config["num_hidden_layers"], "n_heads": config["num_attention_heads"],
        "n_kv_heads": config["num_key_value_heads"], "head_dim": config["head_dim"],
        "vocab_size": config["vocab_size"], "round": round, "__builtins__": {},
    }


class Registry(unittest.TestCase):
    def test_names_files_that_exist_and_every_starter_is_named(self):
        for stage in STAGES:
            named = {unit["file"] for unit in stage["units"]}
            found = {path.name for path in folder(stage).glob("*.cpp")} - {"my_tests.cpp"}
            self.assertEqual(named, found, folder(stage))
            for unit in stage["units"]:
                for twin in unit["twins"]:
                    self.assertTrue((ROOT / twin).is_file(), twin)

    def test_ids_rise_and_needs_look_back(self):
        ids = [stage["id"] for stage in STAGES]
        self.assertEqual(ids, sorted(set(ids)))
        for stage in STAGES:
            self.assertTrue(all(need < stage["id"] for need in stage["needs"]), stage["slug"])

    def test_no_folder_is_forgotten(self):
        named = {folder(stage).name for stage in STAGES}
        found = {path.name for path in (ROOT / "stages").iterdir() if path.is_dir()}
        self.assertEqual(named, found)


class Starters(unittest.TestCase):
    def test_say_which_function_is_not_written(self):
        for stage in STAGES:
            text = "".join((folder(stage) / unit["file"]).read_text() for unit in stage["units"])
            for function in stage["functions"]:
                self.assertRegex(text, rf'NOT_IMPLEMENTED\("stage {stage["id"]}(\.\d)?: {function}"\)')


class Handouts(unittest.TestCase):
    def test_both_languages_have_the_same_sections_code_and_links(self):
        for stage in STAGES:
            english, chinese = (
                (folder(stage) / name).read_text() for name in LANGUAGES.values())
            for what, pattern in {"headings": r"^#+ ", "code blocks": r"^```", "links": r"\]\(",
                                  "folds": r"<details>", "tables": r"^\|"}.items():
                self.assertEqual(len(re.findall(pattern, english, re.M)),
                                 len(re.findall(pattern, chinese, re.M)), f"{stage['slug']}: {what}")
            self.assertEqual(re.findall(r"^\./stage .*", english, re.M),
                             re.findall(r"^\./stage .*", chinese, re.M))

    def test_every_answer_is_what_the_story_model_gives(self):
        sizes = model_sizes()
        for stage, _, path in handouts():
            checks = CHECK.findall(path.read_text())
            self.assertEqual(len(checks), 2, f"{path}: two questions with a number each")
            for printed, expression in checks:
                number = float(printed.replace(",", "").rstrip("."))
                self.assertEqual(number, eval(expression, sizes), f"{path}: {expression}")

    def test_every_link_resolves(self):
        for _, _, path in handouts():
            for link in re.findall(r"\]\(([^)#]+)", path.read_text()):
                self.assertTrue((path.parent / link).exists(), f"{path}: {link}")

    def test_three_hints_unfold_one_at_a_time(self):
        for _, language, path in handouts():
            word = {"en": "Hint", "zh": "提示"}[language]
            found = re.findall(rf"<summary>{word} (\d)</summary>", path.read_text())
            self.assertEqual(found, ["1", "2", "3"], path)

    def test_points_and_minutes_stand_in_the_first_lines(self):
        for stage, _, path in handouts():
            head = "".join(path.read_text().splitlines()[:6])
            points = sum(group["points"] for group in stage["groups"])
            self.assertIn(str(points), head, path)


if __name__ == "__main__":
    unittest.main()
