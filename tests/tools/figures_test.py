"""The figures in docs/figures are those that make_figures.py draws from story.json, they can be read, and story.json
contains what the program computes: figures_test.py BUILD. Standard library only.
"""
import json
import pathlib
import re
import sys
import unittest
import xml.etree.ElementTree

FIGURES = pathlib.Path(__file__).resolve().parents[2] / "docs" / "figures"
sys.dont_write_bytecode = True
sys.path.insert(0, str(FIGURES))
import make_figures  # noqa: E402
import measure  # noqa: E402

SVG = "{http://www.w3.org/2000/svg}"


def contrast(first, second):
    """The contrast of two colours, as #rrggbb: WCAG's ratio, from 1 to 21."""
    def luminance(colour):
        parts = [int(colour[i:i + 2], 16) / 255 for i in (1, 3, 5)]
        return sum(factor * (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4)
                   for factor, part in zip((0.2126, 0.7152, 0.0722), parts))
    low, high = sorted((luminance(first), luminance(second)))
    return (high + 0.05) / (low + 0.05)


def differences(kept, found, where=""):
    """The places where two JSON trees differ; numbers may differ by the effect of another order of summation."""
    if isinstance(kept, dict) and isinstance(found, dict) and kept.keys() == found.keys():
        return [place for key in kept for place in differences(kept[key], found[key], f"{where}.{key}")]
    if isinstance(kept, list) and isinstance(found, list) and len(kept) == len(found):
        return [place for i, pair in enumerate(zip(kept, found)) for place in differences(*pair, f"{where}[{i}]")]
    if isinstance(kept, float) and isinstance(found, (int, float)):
        return [] if abs(kept - found) <= 1e-4 + 1e-3 * abs(kept) else [f"{where}: {kept}, and now {found}"]
    return [] if kept == found else [f"{where}: {kept}, and now {found}"]


class Data(unittest.TestCase):
    def test_is_what_the_program_computes(self):
        measure.PROGRAM = pathlib.Path(BUILD) / "src" / "stagecraft"
        kept = json.loads((FIGURES / "story.json").read_text(encoding="utf-8"))
        found = json.loads(measure.as_json(measure.story()))
        self.assertEqual(differences(kept, found), [], "python3 docs/figures/make_figures.py --measure")


class Figures(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.pictures = dict(make_figures.pictures())

    def test_are_those_of_the_script_and_there_are_no_others(self):
        for name, picture in self.pictures.items():
            with self.subTest(name):
                self.assertTrue((FIGURES / name).read_text(encoding="utf-8") == picture.svg(),
                                f"docs/figures/{name}: not what the script draws; run "
                                "python3 docs/figures/make_figures.py")
        self.assertEqual({path.name for path in FIGURES.glob("*.svg")}, set(self.pictures))

    def test_have_a_title_and_a_description_for_whoever_cannot_see_them(self):
        for name in self.pictures:
            root = xml.etree.ElementTree.parse(FIGURES / name).getroot()
            title, description = root.find(f"{SVG}title").text, root.find(f"{SVG}desc").text
            self.assertGreaterEqual(len(title), 3, name)
            self.assertGreater(len(description), len(title), name)

    def test_no_text_leaves_the_picture_or_covers_another(self):
        for name, picture in self.pictures.items():
            for left, y, width, text in picture.texts:
                self.assertGreaterEqual(left, 0, f"{name}: {text}")
                self.assertLessEqual(left + width, picture.width, f"{name}: {text}")
                self.assertTrue(10 <= y <= picture.height - 4, f"{name}: {text}")
            for at, (left, y, width, text) in enumerate(picture.texts):
                for other_left, other_y, other_width, other in picture.texts[at + 1:]:
                    # The widths are overestimates, so a tenth of each may overlap.
                    apart = abs(y - other_y) >= 11 or min(left + 0.9 * width, other_left + 0.9 * other_width) <= max(
                        left, other_left)
                    self.assertTrue(apart, f"{name}: '{text}' and '{other}'")

    def test_every_colour_can_be_read_on_its_ground_in_light_and_dark(self):
        svg = make_figures.model_map.svg
        for mode in (0, 1):
            paper, box = svg.INK["paper"][mode], svg.INK["box"][mode]
            for colour in (svg.INK["ink"], svg.INK["pale"], *svg.HUES):
                for ground in (paper, box):
                    self.assertGreaterEqual(contrast(colour[mode], ground), 4.5, (colour, ground))
            for tint in svg.TINTS:
                self.assertGreaterEqual(contrast(svg.INK["ink"][mode], tint[mode]), 4.5, tint)

    def test_in_chinese_say_everything_in_chinese(self):
        untranslated = re.compile(r"[A-Za-z]{2,} [a-z]{2,}")
        for name, picture in self.pictures.items():
            if name.endswith(".zh.svg"):
                for text in (picture.title, picture.description, *(text for *_, text in picture.texts)):
                    self.assertIsNone(untranslated.search(re.sub("“.*?”", "", text)),
                                      f"{name}: '{text}' is not in words.zh.json")

    def test_use_only_classes_that_the_style_names(self):
        svg = make_figures.model_map.svg
        known = set(re.findall(r"\.([a-z][\w-]*)", svg.style()))
        for name in self.pictures:
            used = set(" ".join(re.findall(r'class="([^"]*)"', (FIGURES / name).read_text(encoding="utf-8"))).split())
            self.assertLessEqual(used, known, name)


if __name__ == "__main__":
    BUILD = sys.argv.pop(1)
    unittest.main()
