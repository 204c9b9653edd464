"""The plots and tables of measured figures in docs/ are those that docs/make_plots.py makes from docs/measurements.

Standard library only; ctest runs it. Nothing is measured.
"""
import pathlib
import sys
import unittest
import xml.etree.ElementTree

DOCS = pathlib.Path(__file__).resolve().parents[2] / "docs"
sys.dont_write_bytecode = True
sys.path.insert(0, str(DOCS))
import make_plots  # noqa: E402


class Plots(unittest.TestCase):
    def test_are_those_of_the_measurements(self):
        for name, text in make_plots.made().items():
            with self.subTest(name):
                # assertTrue, so that a failure does not print two pictures
                self.assertTrue((DOCS / name).read_text(encoding="utf-8") == text,
                                f"docs/{name}: not what the measurements say; run python3 docs/make_plots.py")

    def test_are_well_formed_and_stand_in_their_pages(self):
        for name, page in (("roofline.svg", "kernels.md"), ("tokens.svg", "performance.md")):
            xml.etree.ElementTree.parse(DOCS / name)
            self.assertIn(f"({name})", (DOCS / page).read_text(encoding="utf-8"))


if __name__ == "__main__":
    unittest.main()
