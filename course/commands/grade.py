"""./stage grade: the points of one repository, stage by stage, as a teacher or a forge finds them.

Tests, tools and engine are those of the tree that contains this file; of the repository, only the files that
stages/stages.json names are read.
"""
import json
import os
import pathlib
import sys

from shared import course
from shared.parser import JOBS, Parser, SEEDS
from classroom import repositories
from grading import grader
from grading import report
from grading import submission
from grading import workplace
import strict_json


def other_branch():
    """(the branch that a forge runs this for, the default branch) if they differ, else None."""
    at = os.environ
    branch, default = at.get("CI_COMMIT_BRANCH"), at.get("CI_DEFAULT_BRANCH")  # of GitLab
    if at.get("GITHUB_REF_TYPE") == "branch":  # of GitHub and Gitea
        try:
            event = strict_json.parse(pathlib.Path(at["GITHUB_EVENT_PATH"]).read_text(encoding="utf-8"))
            branch, default = at["GITHUB_REF_NAME"], event["repository"]["default_branch"]
        except (OSError, ValueError, KeyError, TypeError):
            return None
    return (branch, default) if branch and default and branch != default else None


def run():
    parser = Parser("grade")
    parser.add_argument("--repo", metavar="PATH-OR-URL")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE")
    parser.add_argument("--seed", type=SEEDS)
    parser.add_argument("--jobs", type=JOBS)
    parser.add_argument("--language", choices=course.HANDOUTS)
    parser.add_argument("--summary", type=pathlib.Path, metavar="FILE")
    parser.add_argument("--annotations", action="store_true")
    options = parser.parse_args()
    for path in filter(None, (options.json, options.summary)):
        if not path.absolute().parent.is_dir():
            raise course.Problem(course.say("no_folder", path))
    handed_in = (repositories.collect(options.repo, course.stages()) if options.repo
                 else submission.from_folder(course.ROOT, course.stages()))
    language = options.language or (handed_in.language if options.repo else None)  # the language that its owner reads
    if language:
        os.environ["STAGECRAFT_LANG"] = language  # also for the gate
    workplace.clean_up()
    with course.doing(course.say("doing_grade", handed_in.source)):
        result = grader.grade(handed_in, options.seed, options.jobs)
    if options.json:
        options.json.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    notes = [report.plain(course.say("grade_other_branch", *names)) for names in filter(None, [other_branch()])]
    if options.summary:
        with options.summary.open("a", encoding="utf-8") as summary:
            lines = [*(f"**{report.in_markdown(note)}**\n" for note in notes), *report.markdown(result)]
            summary.write("\n".join(lines) + "\n")
    lines = notes + [line for part in report.text(result) for line in part.splitlines()]
    if options.annotations:
        lines = [*report.without_commands(lines), *report.annotations(result)]
    course.tell("\n".join(lines))
    return 1 if result["failed"] else 0


if __name__ == "__main__":
    sys.exit(course.main(run))
