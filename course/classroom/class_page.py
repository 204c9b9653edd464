"""The page of a class, for the teacher only: one file without scripts or external content. It shows ids, no names;
everything that students wrote is escaped."""
import collections
import html
import statistics

from classroom import changes
from shared import course
from classroom import feedback
from classroom import marks
from classroom.lateness import when
from grading import official_tree
from grading import report

BINS = 10
SHOWN = 12  # mistakes; the others are folded
MOST_LETTERS = 300  # of the reason for a refusal: it may contain a student's names
ORDER = ("passed", "begun", "wrong", "uncompiled", "unwritten", "ungraded")
KIND = {"slow": "passed", "unjudged": "ungraded", "unmeasured": "ungraded", "crashed": "wrong", "hung": "wrong",
        "refused": "uncompiled"}  # a few colours are enough
# Paths in a square of 12, so that no font needs these signs.
SIGNS = {
    "passed": '<path d="M2 6.5 5 9.5 10 3"/>',
    "begun": '<path d="M2 9h.1M6 9h.1M10 9h.1"/>',
    "wrong": '<path d="M3 3 9 9M9 3 3 9"/>',
    "uncompiled": '<path d="M6 2v5M6 9.6v.1"/>',
    "unwritten": '<path d="M4 6h4"/>',
    "ungraded": '<path d="M4 4.2a2 2 0 1 1 2.8 1.9c-.6.3-.8.6-.8 1.3M6 9.7v.1"/>',
    "late": '<circle cx="6" cy="6" r="4.6"/><path d="M6 3.2V6l2 1.4"/>',
    "override": '<path d="M2 10l.6-2.6L8.2 1.8l2 2-5.6 5.6z"/>',
}
STYLE = """
:root { color-scheme: light dark; --back: #fff; --ink: #1c1e21; --soft: #5f6670; --line: #d9dce1;
  --passed: #247a4b; --begun: #956d00; --wrong: #c23c27; --uncompiled: #7a4fb5; --unwritten: #b9bec6;
  --ungraded: #5f6670; }
@media (prefers-color-scheme: dark) { :root { --back: #15171a; --ink: #e6e8eb; --soft: #9aa1ab;
  --line: #33383f; --passed: #4fb57f; --begun: #d9b24a; --wrong: #e5725e; --uncompiled: #a582d8;
  --unwritten: #4a5058; --ungraded: #9aa1ab; } }
body { margin: 2rem auto; max-width: 62rem; padding: 0 1rem; background: var(--back); color: var(--ink);
  font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.5rem; margin: 0; } h2 { font-size: 1.15rem; margin: 2.2rem 0 .6rem; }
p { margin: .3rem 0; } .soft, small { color: var(--soft); } ol, ul { margin: 0; padding-left: 1.4rem; }
li { margin: .35rem 0; } table { border-collapse: collapse; width: 100%; }
th { text-align: left; font-weight: 600; } th, td { padding: .2rem .5rem; border-bottom: 1px solid var(--line);
  vertical-align: top; } .n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.tiles { display: flex; flex-wrap: wrap; gap: .6rem 2.2rem; margin: 1rem 0; }
.tiles b { display: block; font-size: 1.5rem; font-variant-numeric: tabular-nums; }
.chart { width: 100%; max-width: 40rem; height: auto; display: block; }
.sign { width: .85em; height: .85em; vertical-align: -.08em; margin-left: .2em; fill: none; stroke: currentColor;
  stroke-width: 1.7; stroke-linecap: round; stroke-linejoin: round; } .none { display: none; }
.key span { white-space: nowrap; } .key .sign { margin: 0 .3rem 0 .9rem; } .warning { border-left: 4px solid var(--wrong); padding-left: .7rem; }
.bar { display: flex; height: 1rem; min-width: 14rem; } .bar i { display: block; }
.key i { display: inline-block; width: .8rem; height: .8rem; margin: 0 .3rem 0 .9rem; }
.passed { background: var(--passed); } .begun { background: var(--begun); } .wrong { background: var(--wrong); }
.uncompiled { background: var(--uncompiled); } .unwritten { background: var(--unwritten); }
.ungraded { background: repeating-linear-gradient(45deg, var(--ungraded) 0 3px, var(--back) 3px 6px); }
.t-passed { color: var(--passed); } .t-begun { color: var(--begun); } .t-wrong { color: var(--wrong); }
.t-uncompiled { color: var(--uncompiled); } .t-unwritten, .t-ungraded, .t-late, .t-override { color: var(--soft); }
.ids { overflow-wrap: anywhere; } a { color: inherit; }
@media print { body { margin: 0; max-width: none; font-size: 10pt; } h2 { break-after: avoid; }
  tr, li, .chart { break-inside: avoid; } * { print-color-adjust: exact; -webkit-print-color-adjust: exact; } }
"""


def text(value):
    return html.escape(report.plain(str(value)))


def say(key, *values):
    return text(course.say(key, *values))


def linked(ids):
    """A line of ids, each a link to the student's feedback."""
    return ", ".join(f'<a href="feedback/{text(id)}.md">{text(id)}</a>' for id in ids)


def kind(status):
    status = KIND.get(status, status)
    return status if status in ORDER else "wrong"


def sign(name, label):
    """label: already escaped."""
    return f'<svg class="sign t-{name}" role="img"><title>{label}</title><use href="#{name}"/></svg>'


def signs():
    """The definitions of all signs, which sign() refers to."""
    symbols = "".join(f'<symbol id="{name}" viewBox="0 0 12 12">{path}</symbol>' for name, path in SIGNS.items())
    yield f'<svg class="none">{symbols}</svg>'


# ---- parts --------------------------------------------------------------------------------------


def total(records):
    """The points that a student can have; more for those who began an optional stage."""
    points = [record.points for record in records]
    return "\N{EN DASH}".join(map(str, dict.fromkeys([min(points), max(points)])))


def tiles(records):
    graded = [record.mark for record in records if record.mark is not None]
    figures = [("class_students", len(records)), ("class_n_graded", len(graded))]
    if len(graded) < len(records):
        figures.append(("state_ungraded", len(records) - len(graded)))
    if graded:
        figures += [("class_mean", f"{statistics.mean(graded):.1f}"),
                    ("class_median", marks.number(statistics.median(graded))), ("where_total", total(records))]
    figures.append(("class_n_late", sum(any(one.days for one in record.stages) for record in records)))
    cells = "".join(f"<div><b>{text(value)}</b>{linked_to_troubles(key)}</div>" for key, value in figures)
    yield f'<div class="tiles">{cells}</div>'


def linked_to_troubles(key):
    return f'<a href="#troubles">{say(key)}</a>' if key in ("state_ungraded", "class_n_late") else say(key)


def distribution(records, points):
    """A bar chart: how many students have how many points."""
    counts = [0] * BINS
    for record in records:
        if record.mark is not None and points:
            counts[min(int(record.mark * BINS / points), BINS - 1)] += 1
    top = max(counts)
    if not top:
        return
    yield f"<h2>{say('class_distribution')}</h2>"
    yield f'<svg class="chart" viewBox="0 0 640 190" role="img" aria-label="{say("class_distribution")}">'
    for at, count in enumerate(counts):
        height = 140 * count / top
        yield (f'<rect x="{at * 64 + 4}" y="{160 - height:.1f}" width="56" height="{height:.1f}" '
               'fill="var(--passed)"/>'
               f'<text x="{at * 64 + 32}" y="{152 - height:.1f}" font-size="14" text-anchor="middle" '
               f'fill="var(--ink)">{count or ""}</text>'
               f'<text x="{at * 64 + 32}" y="178" font-size="12" text-anchor="middle" fill="var(--soft)">'
               f"{round(at * points / BINS)}\N{EN DASH}{round((at + 1) * points / BINS)}</text>")
    yield "</svg>"


def common_mistakes(records, stages):
    """The mistakes, by how many students make them: what to teach tomorrow."""
    who = collections.defaultdict(set)
    for record in records:
        for entry in record.result["stages"] if record.result else ():
            names = {group["mistake"] for group in entry["groups"] if group["mistake"]}
            if entry["failed"] and entry["status"] != "refused":
                for name in names or {entry["status"]}:
                    who[entry["id"], name, bool(names)].add(record.id)
    known = {stage.id: course.mistakes(stage) for stage in stages}
    yield f"<h2>{say('class_teach')}</h2>"
    if not who:
        yield f"<p>{say('class_no_mistakes')}</p>"
        return
    yield "<ol>"
    by_number = sorted(who.items(), key=lambda one: (not one[0][2], -len(one[1]), one[0]))  # known mistakes first
    for at, ((stage, name, is_known), ids) in enumerate(by_number):
        if at == SHOWN:
            more = say("class_more_mistakes", len(by_number) - SHOWN)
            yield f'</ol><details><summary>{more}</summary><ol start="{SHOWN + 1}">'
        sentence = (known[stage].get(name, {}).get(course.language(), name) if is_known
                    else course.say("class_unknown_mistake") if name == "wrong" else course.say(f"state_{name}"))
        yield (f"<li><b>{len(ids)}</b> · {say('where_stage')} {stage} · {text(sentence)}<br>"
               f'<small class="ids">{linked(sorted(ids))}</small></li>')
    yield "</ol></details>" if len(by_number) > SHOWN else "</ol>"


def progress(records, stages):
    """Per stage: how many students are in each state, and who fails since when."""
    yield f"<h2>{say('class_stages')}</h2>"
    key = "".join(f'<i class="{name}"></i>{say(f"state_{name}")}'
                  for name in ORDER)
    yield f'<p class="key soft">{key}</p>'
    yield (f"<table><tr><th></th><th>{say('where_stage')}</th><th>{say('class_where')}</th>"
           f"<th>{say('class_stuck')}</th></tr>")
    for at, stage in enumerate(stages):
        counts, stuck = collections.Counter(), []
        for record in records:
            entry = record.result["stages"][at] if record.result else None
            counts[kind(entry["status"]) if entry else "ungraded"] += 1
            if entry and entry["failed"]:
                stuck.append((record.started[stage.id], record.id))
        bars = "".join(f'<i class="{name}" style="width:{100 * counts[name] / len(records):.2f}%" '
                       f'title="{say(f"state_{name}")}: {counts[name]}"></i>' for name in ORDER if counts[name])
        since = ", ".join(f"{linked([id])}{f' ({at:%m-%d})' if at else ''}"
                          for at, id in sorted(stuck, key=lambda one: (str(one[0]), one[1])))
        yield (f'<tr><td class="n">{stage.id}</td><td>{text(stage.title[course.language()])}<br>'
               f'<small>{counts["passed"]} / {len(records) - counts["ungraded"]}</small></td>'
               f'<td><div class="bar">{bars}</div></td><td class="ids"><small>{since}</small></td></tr>')
    yield "</table>"


def alike(found):
    if not found:
        return
    yield f"<h2>{say('class_alike')}</h2><p class=\"soft\">{say('class_alike_says')}</p><ul>"
    for _, name, share, ids in found:
        yield f"<li><code>{text(name)}</code> · {100 * share:.0f}% · {linked(ids)}</li>"
    yield "</ul>"


def like_ours(found):
    if not found:
        return
    yield f"<h2 id=\"ours\">{say('class_like_ours')}</h2><p class=\"soft\">{say('class_like_ours_says')}</p><ul>"
    for _, name, share, ids, path in found:
        yield f"<li><code>{text(name)}</code> · {100 * share:.0f}% · {linked(ids)} · <code>{text(path)}</code></li>"
    yield "</ul>"


def lateness(late, covered, stages):
    """How many days late these stages are; late days may cover some of them."""
    if covered:
        return course.say("class_late_stages_covered", feedback.days(late), covered, marks.named(stages))
    return course.say("class_late_stages", feedback.days(late), marks.named(stages))


def trouble(record):
    """(urgency, 0 first; lines that say what it is), or None."""
    lines = []
    if record.ungraded:
        lines.append((0, course.say("class_ungraded", record.ungraded)))
    if record.problem and record.newest:
        lines.append((1, course.say("class_not_pulled", record.problem)))
    for entry in record.result["stages"] if record.result else ():
        if entry["status"] == "refused":
            said = entry["message"].partition("\n")[0][:MOST_LETTERS]
            lines.append((2, course.say("class_refused_stage", entry["id"], said)))
    for one in record.stages:
        if one.override and one.graded is not None and one.graded > max(one.override.points, one.corrected or 0):
            lines.append((2, course.say("class_better_than_corrected", one.stage.id, marks.number(one.graded),
                                        marks.number(one.override.points))))
    late = collections.defaultdict(list)
    for one in record.stages:
        if one.days:
            late[one.late, one.covered].append(one.stage)
    lines += [(3, lateness(*days, stages)) for days, stages in sorted(late.items(), reverse=True)]
    return (min(rank for rank, _ in lines), [line for _, line in lines]) if lines else None


def troubles(records):
    """The students that the teacher has to write to: one entry each, the most urgent first."""
    found = [(*trouble(record), record.id) for record in records if trouble(record)]
    if found:
        yield f"<h2 id=\"troubles\">{say('class_troubles')}</h2><ul>"
        for _, lines, id in sorted(found, key=lambda one: one[0]):  # equals in the roster's order
            yield f"<li>{linked([id])}: {'<br>'.join(map(text, lines))}</li>"
        yield "</ul>"


def changed(records):
    """The latest changes of marks, and the reasons."""
    found = changes.latest(records)
    if not found:
        return
    at, news, rows = found
    yield f"<h2 id=\"changes\">{say('class_changes', at[:10])}</h2>"
    if news:
        yield f"<p class=\"soft\">CHANGELOG.md:</p><ul>{''.join(f'<li>{text(line[2:])}</li>' for line in news)}</ul>"
    yield "<ul>"
    for stage, before, after, why, ids in rows:
        yield (f"<li><b>{len(ids)}</b> · {say('class_changed_stage', stage, before, after, why)}<br>"
               f'<small class="ids">{linked(ids)}</small></li>')
    yield "</ul>"


def stage_cell(one):
    """The cell of one stage of one student in the table of the class."""
    label = f"{one.stage.id}: {say(f'state_{one.status}')}"
    shown = "" if one.status == "unwritten" and not one.override else marks.number(one.mark)
    more = ""
    if one.days:
        more += sign("late", text(lateness(one.late, one.covered, [one.stage])))
    if one.override:
        more += sign("override", text(feedback.corrected(one)))
    return f'<td class="n t-{kind(one.status)}">{shown}{sign(kind(one.status), label)}{more}</td>'


def everyone(records, stages):
    yield f"<h2 id=\"everyone\">{say('class_everyone')}</h2><table><tr><th></th><th class=\"n\">{say('where_points')}</th>"
    yield "".join(f'<th class="n">{stage.id}</th>' for stage in stages)
    yield f"<th class=\"n\">{say('class_last_seen')} (UTC)</th></tr>"
    for record in records:
        shared = f" <small>{say('class_shared', ', '.join(record.shared_with))}</small>" if record.shared_with else ""
        mark = f"<b>{marks.number(record.mark)}</b>" if record.mark is not None else f"<i>{say('state_ungraded')}</i>"
        last = f"{record.newest.at:%Y-%m-%d %H:%M}" if record.newest else "-"
        yield (f'<tr><td class="ids">{linked([record.id])}{shared}</td><td class="n">{mark}</td>'
               f'{"".join(map(stage_cell, record.stages))}<td class="n"><small>{last}</small></td></tr>')
    words = {**{name: f"state_{name}" for name in ORDER}, "late": "class_n_late", "override": "class_key_corrected"}
    key = " ".join(f"<span>{sign(name, say(words[name]))}{say(words[name])}</span>" for name in SIGNS)
    yield f'</table><p class="key soft">{key}</p>'


def not_confined(records):
    """A line that says so if the code was not confined; this depends on the machine, so it holds for all students."""
    result = next((record.result for record in records if record.result and not record.result["confined"]), None)
    if result:
        yield f"<p class=\"warning\">{say('grade_not_confined', result['not_confined_because'])}</p>"


def ranked(places, with_ids):
    """The fastest programs under their nicknames."""
    if not places:
        return
    yield f"<h2 id=\"ranking\">{say('class_ranking')}</h2><p class=\"soft\">{say('class_ranking_says')}</p><ol>"
    for place in places:
        who = f" <small>{linked([place.id])}</small>" if with_ids else ""
        yield f"<li><b>{text(place.nickname)}</b> · {say('class_speed', place.speed)}{who}</li>"
    yield "</ol>"


def head(run, title):
    """The beginning of each page."""
    yield f'<!doctype html>\n<html lang="{course.language()}"><head><meta charset="utf-8">'
    yield ("<meta http-equiv=\"Content-Security-Policy\" "
           "content=\"default-src 'none'; style-src 'unsafe-inline'\">")
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield f"<title>{text(title)}</title><style>{STYLE}</style></head><body>"
    yield f"<h1>{text(title)}</h1>"
    yield f'<p class="soft">{say("class_by", when(run.at), report.version(official_tree.version()))}</p>'


def page(run, found_alike, found_ours=(), places=()):
    """The lines of the page. run: a Run of ./stage class grade. found_alike, found_ours: from likeness.look_at_these
    and look_at_ours. places: from ranking.places."""
    records, stages = run.records, run.stages
    points = max(record.points for record in records)
    yield from head(run, course.say("class_title", len(records)))
    for part in (signs(), not_confined(records), tiles(records), distribution(records, points),
                 common_mistakes(records, stages), progress(records, stages), like_ours(found_ours), alike(found_alike),
                 ranked(places, with_ids=True), troubles(records), changed(records), everyone(records, stages)):
        yield from part
    yield "</body></html>"


def ranking_page(run, places):
    """The ranking as a page for students: nicknames, no ids."""
    yield from head(run, course.say("class_ranking"))
    yield from ranked(places, with_ids=False)
    yield "</body></html>"
