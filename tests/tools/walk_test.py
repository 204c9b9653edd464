"""Walks the whole course as a student does, in a copy of the repository: walk_test.py BUILD

For every k, with our answers in the files of the stages up to k and starters above, exactly the stages
above k are not written yet. On the way the commands of every handout are run, the first one before its
stage is written and the others after, and print what the handout says they print ("..." stands for
anything). --update writes into the handouts what they should say, but for answers with "...".
"""
import pathlib
import re
import sys

from repository_copy import Copy, ROOT, course

COMMAND = re.compile(r"^\$ (\./stage .*)$")
INLINE = re.compile(r"`(\./stage [^`]+)`")


def blocks(text):
    """(start, end) of every code block with commands in it."""
    for found in re.finditer(r"^```\n(\$ \./stage .*?)^```$", text, re.M | re.S):
        yield found.span(1)


def session(block):
    """[command, what the handout says it prints] of a block, in order."""
    steps = []
    for line in block.splitlines():
        found = COMMAND.match(line)
        if found:
            steps.append([found[1], []])
        else:
            steps[-1][1].append(line)
    return [(command, "\n".join(lines).strip()) for command, lines in steps]


def says(expected, printed):
    """Is that what was printed? "..." stands for anything, on a line of its own for any lines."""
    pattern = re.escape(expected.strip()).replace(re.escape("..."), ".*")
    return re.fullmatch(pattern, printed.strip(), re.S) is not None


class Walk:
    def __init__(self, copy, update):
        self.copy = copy
        self.update = update
        self.problems = []

    def try_command(self, path, command, expected, language, exit_code):
        """Runs one command of a handout; what the handout is to say about it."""
        code, printed = self.copy.run(command.split("  #")[0], language)
        printed = re.sub(r"^stage: building\n", "", printed, flags=re.M).strip()
        if code == exit_code and self.update and "..." not in expected:
            return printed
        if code != exit_code or not says(expected, printed):
            self.problems.append(f"{path}: {command}: expected exit {exit_code} and\n{expected}\n"
                                 f"found exit {code} and\n{printed}\n")
        return expected

    def walk_handout(self, stage, language):
        """All commands of a handout. The first one asks about a starter; then the stage is written."""
        path = stage.folder / course.HANDOUTS[language]
        text = path.read_text()
        new = text
        unwritten = 1
        for start, end in blocks(text):
            said = []
            for command, expected in session(text[start:end]):
                found = self.try_command(path, command, expected, language, unwritten)
                said.append(f"$ {command}\n{found}\n")
                self.copy.write_stage(stage)
                unwritten = 0
            new = new.replace(text[start:end], "\n".join(said))
        if unwritten:
            self.problems.append(f"{path}: expected commands ('$ ./stage ...') and what they print")
        if language == "en":  # those between the words are the same in every language
            for command in INLINE.findall(text):
                self.try_command(path, " ".join(command.split()), "...", language, 0)
        if self.update and new != text:
            path.write_text(new)

    def check_table(self, written, known):
        """./stage alone: exactly the stages after the last written one are not written yet."""
        _, table = self.copy.run("./stage 2>/dev/null")
        for stage in known:
            row = next((line for line in table.splitlines()
                        if re.match(rf" +{stage.id}  {re.escape(stage.title['en'])} ", line)), "")
            state = "done" if stage in written else "not written yet"
            if not row.endswith(state):
                self.problems.append(f"with the stages up to {written[-1].id if written else None} "
                                     f"written: expected '{state}' of stage {stage.id}, found '{row}'")

    def check_chat_by_hand(self):
        """The ids and counts that stage 8's handout works out by hand are those of models/chat."""
        tokenize = "./stage tokenize --plain --model models/chat"
        _, message = self.copy.run(f"printf 'user\\nHello!' | {tokenize}")
        _, opening = self.copy.run(f"printf 'assistant\\n' | {tokenize}")
        ids = ["1", *message.split(","), "2", "201", "1", *opening.split(",")]
        line = r"\s+".join(map(str.strip, ids))
        _, told = self.copy.run("printf 'Hello!\\nDo you have a dog?\\n' | "
                                "./stage chat --model models/chat --temperature 0 --verbose")
        answer, first, second = re.search(r"\[(\d+) tokens,.*?prompt (\d+) tokens.*?prompt (\d+) tokens",
                                          told, re.S).groups()
        for name in course.HANDOUTS.values():
            text = next((ROOT / "stages").glob(f"*-chat/{name}")).read_text()
            counts = [first, answer, str(int(first) + int(answer)), second]
            if not re.search(line, text) or not all(re.search(rf"\b{n}\b", text) for n in counts):
                self.problems.append(f"stage 8, {name}: expected by hand the ids {ids} and {counts}")

    def check_real_model(self):
        """Eight stages of a student's own code hold a conversation with a model that was pulled."""
        model = "tests/data/gguf/whole.gguf"  # quantised, with a vocabulary and a template, and tiny
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

    def walk(self):
        known = course.stages()
        written = []
        self.check_table(written, known)
        for stage in known:
            for language in reversed(course.HANDOUTS):
                self.copy.hand_out(stage)
                self.walk_handout(stage, language)
            written.append(stage)
            self.check_table(written, known)
        self.check_chat_by_hand()
        self.check_real_model()


def main():
    update = "--update" in sys.argv
    copy = Copy(pathlib.Path(sys.argv[1]) / "course_copy")
    code, printed = copy.run("./stage build gate")
    if code != 0:
        print(f"the copy at {copy.folder} cannot be built:\n{printed}")
        return 1
    walk = Walk(copy, update)
    walk.walk()
    print("\n".join(walk.problems) or f"walked through {len(course.stages())} stages in two languages")
    return 1 if walk.problems else 0


if __name__ == "__main__":
    sys.exit(main())
