"""What a student's repository has to hand in, brought here without running or following anything of it."""
import hashlib
import json
import os
import pathlib

import course
import submission

MOST_ENTRIES = 200_000  # in a repository on this machine
LEADING = {"objects/info/alternates", "objects/info/http-alternates", "commondir"}  # to other repositories


def refuse_links(folder):
    """A git folder of someone else's on this machine: what it leads to elsewhere would be read with the
    teacher's rights, and shown in feedback."""
    left = MOST_ENTRIES
    for place, folders, files in os.walk(folder):
        left -= len(folders) + len(files)
        if left < 0:
            raise course.Problem(course.say("class_many_files", MOST_ENTRIES))
        for name in (*folders, *files):
            path = pathlib.Path(place, name)
            inside = path.relative_to(folder).as_posix()
            if path.is_symlink() or inside in LEADING:
                raise course.Problem(course.say("class_leads_elsewhere", inside))


def git_folder(place):
    """The git folder at a path, or None: then its files are handed in as they are."""
    place = pathlib.Path(place)
    if place.is_symlink() or not place.is_dir():
        raise course.Problem(course.say("grade_no_folder", place))
    inner = place / ".git"
    if inner.is_symlink() or inner.is_file():
        raise course.Problem(course.say("class_leads_elsewhere", ".git"))
    if inner.is_dir():
        return inner
    return place if (place / "objects").is_dir() and (place / "HEAD").is_file() else None


def name_of(handed_in):
    """For files that no commit names: by what is in them."""
    text = hashlib.sha1(json.dumps(sorted(handed_in.refused.items())).encode())
    for name, data in sorted(handed_in.files.items()):
        text.update(f"{name}\0{course.blob_hash(data)}\0".encode())
    return f"files-{text.hexdigest()}"


def pull(student, stages, last):
    """The submission of a student's repository; None if it is still at `last`."""
    place = student.place
    if not submission.URL.match(place):
        folder = git_folder(place)
        if folder is None:
            handed_in = submission.from_folder(place, stages)
            handed_in.sha = name_of(handed_in)
            return None if handed_in.sha == last else handed_in
        refuse_links(folder)
        place = str(folder)
    head = submission.head_of(place)
    if head is None:
        raise course.Problem(course.say("grade_no_clone", student.place))
    if not head:
        raise course.Problem(course.say("grade_no_commit", student.place))
    if head == last:
        return None
    with submission.fetched(place) as clone:
        return submission.from_git(clone, stages, student.place)
