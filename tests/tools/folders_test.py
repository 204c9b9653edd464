"""A folder of src/ includes only files of folders below it, as docs/architecture.md draws them. A package of course/
imports only packages below it, as course/README.md lists them. A module of the page imports only those above it in the
list in page.js. Standard library only."""
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src"


def levels():
    """The folders of the first drawing of architecture.md, line by line: the level of each, from the top."""
    drawing = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8").split("```")[1]
    lines = [re.findall(r"^ {0,2}(\w+)/|(?<=  )(\w+)/(?= )", line) for line in drawing.splitlines()]
    return {first or second: level for level, names in enumerate(lines) for first, second in names}


def includes(path):
    """The folders of src/ that a file includes files of, with the number of the line."""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        found = re.match(r'#include "(\w+)/', line)
        if found and (SOURCE / found[1]).is_dir():
            yield number, found[1]


class Folders(unittest.TestCase):
    def test_the_drawing_has_every_folder(self):
        self.assertEqual(levels().keys() - {"kernels", "cuda"}, {path.name for path in SOURCE.iterdir() if path.is_dir()})

    def test_a_folder_includes_only_what_is_below_it(self):
        level, n_found = levels(), 0
        for path in sorted(SOURCE.rglob("*")):
            if path.suffix not in (".h", ".cpp", ".cu"):
                continue
            own = path.relative_to(SOURCE).parts[0]
            for number, other in includes(path):
                n_found += 1
                if other != own:
                    self.assertLess(level[own], level[other], f"{path}:{number}: {own}/ includes {other}/")
        self.assertGreater(n_found, 1000)

    def test_no_files_of_the_judge_include_each_other(self):
        needs = {}  # {name of a .h and its .cpp: the names that they include}
        for path in (ROOT / "course" / "judge").iterdir():
            found = re.findall(r'^#include "course/judge/(\w+)\.h"', path.read_text(encoding="utf-8"), re.M)
            needs.setdefault(path.stem, set()).update(set(found) - {path.stem})
        self.assertGreater(sum(map(len, needs.values())), 30)
        while free := [name for name in needs if not needs[name] & needs.keys()]:
            for name in free:
                del needs[name]
        self.assertEqual(needs, {}, "among these, files include each other")

    def test_a_module_of_the_page_imports_only_what_stands_above_it_in_its_list(self):
        page = SOURCE / "serve" / "page"
        listed = re.findall(r"^//   (\w+\.js) ", (page / "page.js").read_text(encoding="utf-8"), re.M) + ["page.js"]
        self.assertEqual(sorted(listed), sorted(path.name for path in page.glob("*.js")))
        for place, name in enumerate(listed):
            imported = re.findall(r'from "\./(.+)"', (page / name).read_text(encoding="utf-8"))
            self.assertLessEqual(set(imported), set(listed[:place]), name)

    def test_a_package_of_the_course_imports_only_what_is_below_it(self):
        course = ROOT / "course"
        listed = re.findall(r"^\| `(\w+)/`", (course / "README.md").read_text(encoding="utf-8"), re.M)
        packages = [name for name in listed if (course / name / "__init__.py").exists()]
        self.assertEqual(sorted(packages), sorted(path.parent.name for path in course.glob("*/__init__.py")))
        n_found = 0
        for path in sorted(course.glob("*/*.py")):
            own = packages.index(path.parent.name)
            for imported in re.findall(r"^ *(?:from|import) (\w+)", path.read_text(encoding="utf-8"), re.M):
                if imported in packages and imported != path.parent.name:
                    n_found += 1
                    self.assertLess(own, packages.index(imported), f"{path} imports {imported}")
        self.assertGreater(n_found, 100)


class Settings(unittest.TestCase):
    def test_of_the_judge_are_all_listed(self):
        listed = re.findall(r"^\| `(STAGE_\w+)`", (ROOT / "course" / "README.md").read_text(encoding="utf-8"), re.M)
        used = set()
        for path in [*(ROOT / "course" / "judge").glob("*.cpp"), *(ROOT / "course" / "testing").glob("*.py")]:
            used.update(re.findall(r'"(STAGE_[A-Z_]+)\b', path.read_text(encoding="utf-8")))
        self.assertEqual(sorted(listed), sorted(used))


if __name__ == "__main__":
    unittest.main()
