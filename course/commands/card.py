"""./stage card: what you made, to keep and to show: points, days, tokens per second and a story, as text and SVG."""
import html
import os
import pathlib
import re
import subprocess
import sys
import tempfile

from mine import gain, real_program
from shared import course
from shared.parser import Parser
from testing import progress

PROMPT = "Once upon a time"
SEED = 1
COLUMNS = 72
CARD = course.ROOT / "build" / "course" / "card.svg"
MODEL = "models/story"
COMMON = ["story", PROMPT, "--threads", "1", "--model", MODEL]
GREEDY = [*COMMON, "--temperature", "0", "-n", str(64)]


def text_of(program, words):
    """What a program prints. program: a path, absolute or relative to course.BUILD."""
    done = subprocess.run([str(course.BUILD / program), *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, errors="replace", cwd=course.ROOT)
    if done.returncode != 0:
        raise course.Problem(done.stderr.strip() or course.say("gain_failed", done.returncode))
    return done.stdout


def ids_of(program, words, folder):
    """The ids of the tokens that a program generates."""
    path = pathlib.Path(folder) / "ids"
    text_of(program, [words[0], "--save-ids", str(path), *words[1:]])
    return real_program.read_ids(path)


def score(known):
    """Tokens per second of the fastest of the student's programs whose text equals ours. A stage that rounds may change
    the model's choice of a token; then the program without that stage counts."""
    best, ours = 0.0, None
    with tempfile.TemporaryDirectory() as folder:
        for chosen in ([stage for stage in known if not stage.rounds], known):
            with real_program.built(chosen) as program:  # builds ours, too
                ours = ours or ids_of("src/stagecraft", [GREEDY[0], "--textbook", *GREEDY[1:]], folder)
                if ids_of(program, GREEDY, folder) == ours:
                    best = max(best, gain.tokens_per_second(program, GREEDY))
    return best


def whole_sentences(text):
    """A text that was cut at a number of tokens, without its last incomplete sentence."""
    found = re.match(r'.*[.!?]"?', text, re.DOTALL)
    return found[0] if found else text


def story(known):
    """A story from the program in which all these stages are the student's."""
    words = [*COMMON, "--temperature", "0.8", "--seed", str(SEED), "-n", "160"]
    with real_program.built(known) as program:
        text = text_of(program, words)
    paragraphs = [" ".join(line.split()) for line in whole_sentences(text).splitlines() if line.strip()]
    return [piece for line in paragraphs for piece in course.wrapped(line, COLUMNS)]


def lines_of(name, results, speed, days):
    """The card without its story: a title and the lines below it."""
    earned, points = sum(result.earned for result in results), sum(result.points for result in results)
    yield course.say("card_title", name) if name else course.say("card_title_plain")
    yield course.say("card_points", earned, points, len(results))
    if days:
        yield course.say("card_days" if days > 1 else "card_day", days)
    yield course.say("card_speed", speed) if speed else course.say("card_no_speed")


def svg(head, tale):
    """The card as SVG, with its own colours, so that it looks the same on a light page and on a dark one."""
    step, left, top = 22, 32, 48
    rows, y = [], top
    for at, line in enumerate(head):
        size, colour, weight = (22, "#ffffff", 700) if at == 0 else (15, "#d0d7de", 400)
        rows.append(f'<text x="{left}" y="{y}" font-size="{size}" font-weight="{weight}" fill="{colour}">'
                    f"{html.escape(line)}</text>")
        y += step + (8 if at == 0 else 0)
    y += 12
    for line in tale:
        rows.append(f'<text x="{left}" y="{y}" font-size="14" font-family="Georgia, serif" fill="#f6e7b4">'
                    f"{html.escape(line)}</text>")
        y += step
    rows.append(f'<text x="{left}" y="{y + 10}" font-size="13" fill="#9aa4af">'
                f"{html.escape(course.say('card_own'))}</text>")
    height = y + 36
    spoken = html.escape(" ".join([*head, *tale]))
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="680" height="{height}" viewBox="0 0 680 {height}" '
            f'role="img" font-family="system-ui, sans-serif">\n<title>{html.escape(head[0])}</title>\n'
            f"<desc>{spoken}</desc>\n"
            f'<rect width="680" height="{height}" rx="14" fill="#14202e"/>\n' + "\n".join(rows) + "\n</svg>\n")


def run():
    parser = Parser("card")
    parser.add_argument("--name", default="")
    options = parser.parse_args()
    known = [stage for stage in course.stages() if not stage.is_optional]
    results = [progress.result_of(stage) for stage in known]
    left = [result.stage.id for result in results if not result.is_right]
    if left:
        raise course.Problem(course.say("card_not_yet", course.listed(map(str, left))))
    more = [progress.result_of(stage) for stage in course.stages() if stage.is_optional and stage.is_started]
    results += [result for result in more if result.is_right]
    os.chdir(course.ROOT)
    with course.doing(course.say("doing_card")):
        speed = score(known)
        tale = story(known)
    head = list(lines_of(options.name, results, speed, progress.days([result.stage for result in results])))
    print("\n".join([*head, "", *(f"  {line}" for line in tale), "", course.say("card_own")]))
    CARD.parent.mkdir(parents=True, exist_ok=True)
    CARD.write_text(svg(head, tale), encoding="utf-8")
    print(course.say("card_written", CARD.relative_to(course.ROOT)))
    final = course.ROOT / "stages" / "final" / course.HANDOUTS[course.language()]
    print(course.say("card_next", final.relative_to(course.ROOT)))
    return 0


if __name__ == "__main__":
    sys.exit(course.main(run))
