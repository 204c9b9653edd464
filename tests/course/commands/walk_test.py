"""Walks through the whole course like a student, in a copy of the repository: walk_test.py BUILD

For each k, with our answers in the stages up to k and starters in the later ones, exactly the later stages are not
written yet. On the way it runs the commands of each handout, the first one before its stage is written and the others
after. They must print what the handout says ("..." stands for anything). --update writes the present output into the
handouts, except where it has "...".
"""
import pathlib
import re
import sys

from repository_copy import Copy, ROOT, course

INLINE = re.compile(r"`(\./stage [^`]+)`")


class Step:
    def __init__(self, command, expected):
        self.command, self.expected = command, expected


class Handout:
    """A file's code blocks with commands: each command, and the output that the handout shows."""

    def __init__(self, path):
        self.path = path
        self.text = path.read_text()
        self.blocks = [(found.span(1), self.read_block(found[1]))
                       for found in re.finditer(r"^```\n(\$ \./stage .*?)^```$", self.text, re.M | re.S)]
        self.steps = [step for _, steps in self.blocks for step in steps]

    @staticmethod
    def read_block(block):
        _, *parts = re.split(r"^\$ (\./stage .*)\n", block, flags=re.M)
        return [Step(command, said.strip()) for command, said in zip(parts[::2], parts[1::2])]

    def updated(self):
        text = self.text
        for (start, end), steps in reversed(self.blocks):
            text = text[:start] + "\n".join(f"$ {step.command}\n{step.expected}\n" for step in steps) + text[end:]
        return text


def says(expected, printed):
    """True if the output fits. "..." stands for anything, on a line of its own for any number of lines."""
    pattern = re.escape(expected.strip()).replace(re.escape("..."), ".*")
    return re.fullmatch(pattern, printed.strip(), re.S) is not None


class Walk:
    def __init__(self, copy, update):
        self.copy = copy
        self.update = update
        self.problems = []

    def try_step(self, handout, step, language, exit_code):
        """Runs one command of a handout; with --update, stores its output in the handout."""
        code, printed = self.copy.run(step.command.split("  #")[0], language)
        printed = re.sub(r"^stage: building\n", "", printed, flags=re.M).strip()
        if code == exit_code and self.update and "..." not in step.expected:
            step.expected = printed
        elif code != exit_code or not says(step.expected, printed):
            self.problems.append(f"{handout.path}: {step.command}: expected exit {exit_code} and\n"
                                 f"{step.expected}\nfound exit {code} and\n{printed}\n")

    @staticmethod
    def further_pages(stage):
        """The pages of a stage with parts, one per part and language; they show output after the stage is written."""
        for page in sorted(stage.folder.glob("[1-9]-*.md")):
            yield "zh" if page.name.endswith(".zh.md") else "en", Handout(page)

    def walk_handouts(self, stage):
        """Runs all commands of a stage's handouts: the first of each with a starter, the others after the stage is
        written."""
        handouts = {language: Handout(stage.folder / name) for language, name in course.HANDOUTS.items()}
        self.copy.hand_out(stage)
        for language, handout in handouts.items():
            for step in handout.steps[:1]:
                self.try_step(handout, step, language, 1)
        self.copy.write_stage(stage)
        for language, handout in self.further_pages(stage):
            for step in handout.steps:
                self.try_step(handout, step, language, 0)
            if self.update:
                handout.path.write_text(handout.updated())
        for language, handout in handouts.items():
            for step in handout.steps[1:]:
                self.try_step(handout, step, language, 0)
            if not handout.steps:
                self.problems.append(f"{handout.path}: expected commands ('$ ./stage ...') and what they print")
            if self.update:
                handout.path.write_text(handout.updated())
        for command in INLINE.findall(handouts["en"].text):  # inline commands are the same in all languages
            words = command.split()
            if words[1] in ("serve", "watch", "debug", "selftest"):
                words.append("--help")  # two would not end, one needs a wrong answer, one tests the whole project
            self.try_step(handouts["en"], Step(" ".join(words), "..."), "en", 0)

    def check_table(self, written, known):
        """./stage without arguments: exactly the stages after the last written one are not written yet."""
        _, table = self.copy.run("./stage 2>/dev/null")
        for stage in known:
            row = next((line for line in table.splitlines()
                        if re.match(rf" +{stage.id}  {re.escape(stage.title['en'])} ", line)), "")
            state = "right" if stage in written else "optional" if stage.is_optional else "not written yet"
            if not row.endswith(state):
                self.problems.append(f"with the stages up to {written[-1].id if written else None} "
                                     f"written: expected '{state}' of stage {stage.id}, found '{row}'")

    def check_chat_by_hand(self):
        """The ids and counts in stage 8's handout are those of models/chat."""
        tokenize = "./stage tokenize --plain --model models/chat"
        _, message = self.copy.run(f"printf 'user\\nHello!' | {tokenize}")
        _, opening = self.copy.run(f"printf 'assistant\\n' | {tokenize}")
        newline = opening.strip().split(",")[-1]
        ids = ["1", *message.split(","), "2", newline, "1", *opening.split(",")]
        line = r"\s+".join(map(str.strip, ids))
        _, told = self.copy.run("printf 'Hello!\\nDo you have a dog?\\n/undo\\nDo you have a cat?\\n' | "
                                "./stage chat --model models/chat --seed 1 --verbose")
        answer = re.search(r"\[(\d+) tokens,", told)[1]
        first, second, third = re.findall(r"prompt (\d+) tokens", told)[:3]
        for name in course.HANDOUTS.values():
            text = next((ROOT / "stages").glob(f"*-chat/{name}")).read_text()
            counts = [first, answer, str(int(first) + int(answer)), second]
            prompts = [f"`prompt {n} tokens`" for n in (first, second, third)]
            if not (re.search(line, text) and all(re.search(rf"\b{n}\b", text) for n in counts)
                    and all(prompt in text for prompt in prompts)):
                self.problems.append(f"stage 8, {name}: expected by hand the ids {ids}, {counts} and {prompts}")

    def check_real_model(self):
        """A student's own code for eight stages can chat with a pulled model."""
        model = "tests/data/gguf/whole.gguf"  # a tiny, quantised model with a vocabulary and a template
        talk = f"printf 'the cat?\\nand the dog?\\n' | ./stage chat --model {model} --temperature 0 -n 8"
        _, ours = self.copy.run(f"{talk} --textbook 2>/dev/null")
        code, answers = self.copy.run(f"{talk} --mine 0-8 2>told")
        _, told = self.copy.run("cat told; rm told")
        line = r"\[2 answers: \d+ tokens, \d+ tokens/s; .*whole\.gguf"
        promised = [line, r"^message_tokens: yours, called \d+ times", r"^chat_turn: yours, called 2 times",
                    r"^matmul_transb: yours, called ", r"the stages about speed: 9 SIMD, 10 Quantisation$"]
        missing = [text for text in promised if not re.search(text, told, re.M)]
        if code != 0 or not answers.strip() or answers != ours or missing:
            self.problems.append(f"chat --mine 0-8 --model {model}: exit {code}, answers\n{answers}\n"
                                 f"where ours are\n{ours}\ntold\n{told}\nwithout {missing}")

    def check_card(self):
        """With all stages written, the card counts them, has a speed and a story, and is also a picture."""
        code, said = self.copy.run("./stage card --name Ann")
        _, picture = self.copy.run("cat build/course/card.svg")
        promised = [f"points in {len(course.stages())} stages", r"in 1 day",
                    r"\d+ tokens per second, one thread, at equal text", r"^  Once upon a time", r"stages/final/README\.md"]
        missing = [text for text in promised if not re.search(text, said, re.M)]
        if code != 0 or missing or "<title>Stagecraft · Ann wrote" not in picture:
            self.problems.append(f"card: exit {code}, said\n{said}\nwithout {missing}; the picture\n{picture[:500]}")

    def walk(self):
        known = course.stages()
        written = []
        self.check_table(written, known)
        for stage in known:
            self.walk_handouts(stage)
            written.append(stage)
            self.check_table(written, known)
        self.check_chat_by_hand()
        self.check_real_model()
        self.check_card()


def main():
    update = "--update" in sys.argv
    copy = Copy(pathlib.Path(sys.argv[1]) / "course_copy")
    code, printed = copy.run("./stage build --only gate")
    if code != 0:
        print(f"the copy at {copy.folder} cannot be built:\n{printed}")
        return 1
    walk = Walk(copy, update)
    walk.walk()
    print("\n".join(walk.problems) or f"walked through {len(course.stages())} stages in two languages")
    return 1 if walk.problems else 0


if __name__ == "__main__":
    sys.exit(main())
