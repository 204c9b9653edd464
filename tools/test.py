"""./stage test: is my code right, and if not, why?"""
import argparse
import sys

import course


def tell(result, en):
    """The verdict on one stage, for a person."""
    stage = result.stage
    title = stage.title["en" if en else "zh"]
    print(f"{'stage' if en else '阶段'} {stage.id} · {title}: {result.earned} "
          f"{'of' if en else '/'} {stage.points} {'points' if en else '分'}")
    if result.compile_error:
        print(("  it does not compile:\n" if en else "  不能编译：\n") + indent(result.compile_error))
        return
    words = {"passed": ("right", "正确"), "wrong": ("wrong", "不对"),
             "unwritten": ("not written yet", "还没有写")}
    for group in result.groups:
        word = words[group.status][0 if en else 1]
        print(f"  {group.name:<24} {group.earned:>3}/{group.points:<3} {word}")
        for failure in group.failures[:1]:  # one thing at a time
            print(indent(failure))
        if group.mistake_says:
            print(indent(group.mistake_says))
        if len(group.failures) > 1:
            more = len(group.failures) - 1
            print(f"    (and {more} more)" if en else f"    （还有 {more} 个）")


def indent(text):
    return "\n".join("    " + line for line in text.splitlines())


def next_step(result, en):
    stage = result.stage
    files = ", ".join(f"stages/{stage.number}-{stage.slug}/{unit['file']}" for unit in stage.units)
    if result.status == "passed":
        return (f"hear it: ./stage story --mine {stage.id}" if en
                else f"听听看：./stage story --mine {stage.id}")
    if result.status == "unwritten":
        return (f"write it in {files}; the handout is beside it" if en
                else f"请在 {files} 里写；讲义就在旁边")
    return f"edit {files}, then ./stage test {stage.id}" if en else f"修改 {files}，再运行 ./stage test {stage.id}"


def run():
    parser = argparse.ArgumentParser(prog="./stage test",
                                     description="Runs the gates of your stages.",
                                     epilog="e.g. ./stage test 3; without a stage: the next unfinished one")
    parser.add_argument("stages", nargs="?", help="3, 1-4, or all")
    options = parser.parse_args()
    known = course.stages()
    en = course.language() == "en"
    if options.stages:
        results = [course.test_stage(stage, explain=True) for stage in course.parse_selection(options.stages, known)]
    else:
        results = [next_unfinished(known)]
    for result in results:
        tell(result, en)
    print(next_step(results[-1], en))
    return 0 if all(result.status == "passed" for result in results) else 1


def next_unfinished(known):
    for stage in known:
        result = course.test_stage(stage, explain=True)
        if result.status != "passed":
            return result
    return result


if __name__ == "__main__":
    sys.exit(course.main(run))
