"""Checks that a mistake is named only if the program makes it:

    names_test.py BUILD [--mutants N] [--pairs N] [--rounds N] [--stages 1,3] [--seed N]

It judges, like a student's code, mutants of right programs of the catalogue, each with one small change, and pairs of
its mistakes in one program. A name is right if the named program and this one give the same answers to fresh cases: N
rounds with numbers that neither was asked before. If the name explains only some of the failing cases, only cases that
it explains are compared. For a pair, or a mutant that is the mistake itself, the names of the mistakes are also right:
two programs that read outside of an argument need not read the same. Prints how many names were given; fails if one was
wrong. Standard library only; the catalogues are already built.
"""
import argparse
import concurrent.futures
import os
import pathlib
import random
import re
import secrets
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "course"), str(ROOT / "tools")]
from grading import recipe  # noqa: E402
from mistakes import catalogue  # noqa: E402
from shared import course  # noqa: E402
from testing import gate  # noqa: E402

# Typical slips: (pattern, replacement).
CHANGES = [(r" \+ ", " - "), (r" - ", " + "), (r" \* ", " / "), (r" / ", " * "), (r" < ", " <= "), (r" <= ", " < "),
           (r" \+= ", " = "), (r" \+= ", " -= "), (r"\b1\.0f", "2.0f"), (r"\b0\.0f", "1.0f"), (r" = 0;", " = 1;"),
           (r"\.cols\(\)", ".rows()"), (r"\.rows\(\)", ".cols()"), (r"std::max\b", "std::min"), (r"std::exp\(", "std::exp2("),
           (r"\bfabs\b", "floor"), (r" \+ 1\b", ""), (r" - 1\b", ""), (r"\b127\b", "128"), (r"\b([a-z])\((\w), (\w)\)", r"\1(\3, \2)"),
           (r" != ", " == "), (r" > ", " >= "), (r"!([a-z])", r"\1"), (r"\+\+(\w)\)", r"\1 += 2)"),
           (r"\bfloat (\w+)( =|;)", r"double \1\2"), (r"static_cast<float>", "static_cast<double>")]
STATEMENT = re.compile(r"^ +[a-z][\w.:]*(\([^{}]*\)|\[[^{}]*| [+*-]?= [^{}]*);$", re.M)
COUNTED = re.compile(r"\d+")
TITLE = re.compile(r"[^:\n]*")  # of a failure: the case's name; a description may follow
FRESH = 1 << 61  # seeds that no gate has used


def code(text):
    """All lines except the first, which says what the program is."""
    return text.split("\n", 1)[1]


def line_at(text, at):
    return text[text.rfind("\n", 0, at) + 1:].split("\n", 1)[0].strip()


def mutants(text):
    """(the line before and after, the program) for each program that differs from this one by one change."""
    begin = text.index("namespace stagecraft")
    for pattern, new in CHANGES:
        for found in re.finditer(pattern, text[begin:]):
            at = begin + found.start()
            changed = text[:at] + found.expand(new) + text[begin + found.end():]
            yield f"{line_at(text, at)} became {line_at(changed, at)}", changed
    for found in STATEMENT.finditer(text, begin):
        yield f"{line_at(text, found.end() - 1)} was left out", text[:found.start()] + text[found.end():]


def pairs(folder, programs):
    """(two names, the program with both mistakes)"""
    wrong = [one for one in programs if "en" in one and "of" in one]
    for n, one in enumerate(wrong):
        for other in wrong[n + 1:]:
            if one["of"] == other["of"]:
                both = dict(one, edit=one["edit"] + other["edit"])
                try:
                    yield (catalogue.name_of(one), catalogue.name_of(other)), catalogue.source(folder, both)
                except catalogue.Wrong:
                    pass  # both change the same line


class Workshop:
    """Builds workers of a stage and runs its gate."""

    def __init__(self, stage, model, folder, rounds, seed):
        self.stage, self.folder, self.rounds, self.seed = stage, folder, rounds, seed
        self.mistakes = course.mistakes_folder(stage)
        name = model["file"]
        link = recipe.ninja_runs(str((self.mistakes / catalogue.name_of(model)).relative_to(course.BUILD)))
        self.link = link[link.index("&&") + 1:]  # "cd FOLDER && c++ ..."; all paths are absolute
        self.object = next(word for word in self.link if word.endswith(f"/{name}.o"))
        words = recipe.without_outputs(recipe.ninja_runs(catalogue.object_of(catalogue.folder_of(stage), model)))
        self.compile = [word for word in words if not word.endswith(f"/{name}")]

    def make(self, name, text):
        """The worker, or None if the compiler refuses the text."""
        source, made, worker = (self.folder / f"{name}{end}" for end in (".cpp", ".o", ""))
        source.write_text(text)
        link = [str(made) if word == self.object else word for word in self.link]
        link[link.index("-o") + 1] = str(worker)
        for words in ([*self.compile, "-w", "-o", str(made), "-c", str(source)], link):
            if subprocess.run(words, cwd=course.BUILD, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode:
                return None
        return worker

    def agrees(self, worker, group, seed):
        """True if it answers like the mistake whose name it got: in all cases, or in those that the name explains."""
        answers = tempfile.mkdtemp(dir=self.folder)
        score = pathlib.Path(answers) / "score"
        environment = dict(os.environ, STAGE_REFEREE=str(worker), STAGE_REFEREE_B=str(self.mistakes / group.mistake),
                           STAGE_WORKER=str(worker), STAGE_SCORE=str(score), STAGE_SEED=str(seed), STAGE_ANSWERS=answers,
                           STAGE_MOST_CASES="1000000")
        subprocess.run([str(course.BUILD / "course" / "gate"), f"--gtest_filter={group.name}.*", f"--gtest_repeat={self.rounds}"],
                       env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        cases = [line.split(" ", 1)[::-1] for line in score.read_text().splitlines()[1:]]
        shown, *others = (TITLE.match(failure)[0] for failure in group.failures)  # the others may differ
        in_part = [same for name, same in cases if name not in others and COUNTED.sub("#", name) == COUNTED.sub("#", shown)]
        wanted = in_part if group.mistake_in_part else [same for _, same in cases]
        return bool(wanted) and all(same == "1" for same in wanted)

    def judge(self, name, about, text, made_of=()):
        """(the result, the number of names it got, those that are wrong)"""
        worker = self.make(name, text)
        if worker is None:
            return "refused by the compiler", 0, []
        dice = random.Random(f"{self.seed} {name}")
        result = gate.run(self.stage, worker, dice.getrandbits(60), self.mistakes)
        named = [group for group in result.groups if group.mistake]
        wrong = [f"{name}: {group.name}: {group.mistake}" for group in named
                 if group.mistake not in made_of and not self.agrees(worker, group, FRESH + dice.getrandbits(50))]
        for group in named:
            print(f"  {name} {group.name}: {group.mistake}{' (in part)' if group.mistake_in_part else ''}", flush=True)
        if result.status != "wrong":  # right as well, or a gap in the gate: a person must check
            print(f"  {name}: not noticed: {about}", flush=True)
        return ("named" if named else "without a name") if result.status == "wrong" else "not noticed", len(named), wrong


def spread(things, n, dice):
    things = list(things)
    return dice.sample(things, min(n, len(things)))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--mutants", type=int, default=200)
    parser.add_argument("--pairs", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--stages", default="1,2,3,4,6,10")
    parser.add_argument("--seed", type=int, default=secrets.randbits(32))
    options = parser.parse_args()
    course.BUILD = options.build
    os.environ.update(STAGE_TRIES="1", STAGE_SECONDS="4")
    dice = random.Random(options.seed)
    print(f"seed {options.seed}")
    stages = course.parse_selection(options.stages, course.stages())
    became, n_names, wrong = {}, 0, []
    with tempfile.TemporaryDirectory() as scratch, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        os.environ["STAGE_ANSWERS"] = str(pathlib.Path(scratch) / "answers")
        pathlib.Path(os.environ["STAGE_ANSWERS"]).mkdir()
        jobs = []
        for at, stage in enumerate(stages):
            folder = catalogue.folder_of(stage)
            programs = catalogue.entries(folder)
            place = pathlib.Path(scratch) / stage.number
            place.mkdir()
            shop = Workshop(stage, next(one for one in programs if "of" in one), place, options.rounds, options.seed)
            bases = sorted({one["of"] for one in programs if "of" in one})
            texts = {text: f"{base}: {line}" for base in bases for line, text in mutants((folder / base).read_text())}
            share = [total // len(stages) + (at < total % len(stages)) for total in (options.mutants, options.pairs)]
            known = {code(catalogue.source(folder, one)): catalogue.name_of(one)
                     for one in programs if "en" in one and "of" in one}
            for n, text in enumerate(spread(sorted(texts), share[0], dice)):
                itself = [known[code(text)]] if code(text) in known else []
                jobs.append((shop, f"mutant_{stage.number}_{n}", texts[text], text, itself))
            for names, text in spread(pairs(folder, programs), share[1], dice):
                jobs.append((shop, f"pair_{stage.number}_{'_and_'.join(names)}", "two mistakes", text, names))
        for end, names, mistaken in pool.map(lambda job: job[0].judge(*job[1:]), jobs):
            became[end] = became.get(end, 0) + 1
            n_names += names
            wrong += mistaken
    print(f"{len(jobs)} programs: " + ", ".join(f"{n} {end}" for end, n in sorted(became.items())))
    print(f"{n_names} names given, {len(wrong)} of them wrong")
    for line in wrong:
        print(f"  {line}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
