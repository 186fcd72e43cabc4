"""What Moodle and Canvas give for download: whose files they are, which is graded, and archives that mean harm."""

from __future__ import annotations

import json
import os
import stat
import struct
import zipfile
from pathlib import Path

import nbformat
import pytest

from lmcourse.errors import CourseError
from lmcourse.grading.intake import archives
from lmcourse.grading.intake.archives import unpacked
from lmcourse.grading.intake.downloads import download_in
from lmcourse.grading.intake.files import UnreadableError, read_file
from lmcourse.grading.intake.submissions import Assignment, Submission, find_submissions
from lmcourse.units import MIB
from tests.grading.strange import sound
from tests.grading.tiny_course import ASSIGNMENT, NAME, tiny_notebook

SOUND = json.dumps(sound())
OTHER = json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": []})


@pytest.fixture
def known(tmp_path: Path) -> dict[str, Assignment]:
    source = tmp_path / "course" / "solutions" / ASSIGNMENT / NAME
    source.parent.mkdir(parents=True)
    nbformat.write(tiny_notebook(), source)
    return {ASSIGNMENT: Assignment(ASSIGNMENT, source)}


def downloaded(folder: Path, *names: str, text: str = SOUND) -> Path:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text if path.suffix == ".ipynb" else "")
    return folder


def found(folder: Path, known: dict[str, Assignment]) -> dict[str, Submission]:
    submissions = find_submissions([folder], known)
    assert len({each.student for each in submissions}) == len(submissions)
    return {each.student: each for each in submissions}


def test_moodles_folders(tmp_path: Path, known: dict[str, Assignment]) -> None:
    folder = downloaded(
        tmp_path / "in",
        f"Ada Lovelace_1000001_assignsubmission_file_/{NAME}",
        "Zoë ONeill-Żak_1000002_assignsubmission_file/my work.ipynb",  # newer ones: no underscore at the end
        "Zoë ONeill-Żak_1000002_assignsubmission_onlinetext_/onlinetext.html",
        f"Lovelace, Byron_1000003_assignsubmission_file_/deep/{NAME}",
        f"Jan Novák_1000004_assignsubmission_file_/{NAME}",
        f"Jan Novák_1000005_assignsubmission_file_/{NAME}",
        "Ed_1000006_assignsubmission_onlinetext_/onlinetext.html",
        "Flo_1000007_assignsubmission_file_/work.zip",
        "__MACOSX/x.ipynb",
        "notes.txt",
    )
    submissions = found(folder, known)
    with_notebook = {student for student, each in submissions.items() if each.notebook}
    assert with_notebook == {
        *("Ada Lovelace", "Zoë ONeill-Żak", "Lovelace, Byron"),
        *("Jan Novák 1000004", "Jan Novák 1000005"),
    }
    assert submissions["Ed"].problem == f"No notebook was handed in: {NAME} is missing."
    assert submissions["Flo"].problem.startswith("work.zip is an archive")
    assert {each.assignment for each in submissions.values()} == {known[ASSIGNMENT]}
    download = download_in(folder)
    assert download is not None
    assert download.unknown == ("notes.txt",)
    assert download_in(downloaded(tmp_path / "outer", f"in/Ada_1_assignsubmission_file_/{NAME}")) is not None


def test_moodles_files_and_a_name_that_looks_like_somebody_elses(tmp_path: Path, known: dict[str, Assignment]) -> None:
    folder = downloaded(
        tmp_path / "in",
        f"Ada_1_assignsubmission_file_{NAME}",
        "Eve_2_assignsubmission_file_Ada_1_assignsubmission_file_x.ipynb",
    )
    submissions = found(folder, known)
    assert {student: each.notebook and each.notebook.name[:3] for student, each in submissions.items()} == {
        "Ada": "Ada",
        "Eve": "Eve",
    }


def test_canvas_files(tmp_path: Path, known: dict[str, Assignment]) -> None:
    folder = downloaded(
        tmp_path / "in",
        f"lovelaceada_LATE_12345_67890_{NAME}",
        f"müllerjosé_12346_67891_{NAME}",
        "müllerjosé_12346_100000_tiny-1.ipynb",
        f"novakjan_12347_67892_{NAME}",
        f"novakjan_12348_67893_{NAME}",
        "oneillzoe_12349_67894_text.html",
    )
    downloaded(folder, "müllerjosé_12346_100001_other.ipynb", text=OTHER)
    submissions = found(folder, known)
    assert [*submissions] == [
        *("lovelaceada_12345", "müllerjosé_12346", "novakjan_12347", "novakjan_12348", "oneillzoe_12349"),
    ]
    # The newest of those that belong to the assignment, by Canvas's number of the file.
    newest = submissions["müllerjosé_12346"].notebook
    assert newest is not None
    assert newest.name == "müllerjosé_12346_100000_tiny-1.ipynb"
    assert submissions["oneillzoe_12349"].problem.startswith("No notebook was handed in")
    download = download_in(folder)
    assert download is not None
    assert [person.name for person in download.people if person.late] == ["lovelaceada"]


def test_the_newest_of_moodles_notebooks_that_fits_is_taken(tmp_path: Path, known: dict[str, Assignment]) -> None:
    folder = tmp_path / "in"
    own = "Ada_1_assignsubmission_file_"
    downloaded(folder, f"{own}/a.ipynb", f"{own}/b.ipynb")
    downloaded(folder, f"{own}/c.ipynb", text=OTHER)
    for age, name in enumerate(("b", "a", "c")):
        os.utime(folder / own / f"{name}.ipynb", (1e9 + age, 1e9 + age))
    notebook = found(folder, known)["Ada"].notebook
    assert notebook is not None
    assert notebook.name == "a.ipynb"


def test_a_download_of_something_else_and_the_same_person_twice(tmp_path: Path, known: dict[str, Assignment]) -> None:
    other = downloaded(tmp_path / "other", "Ada_1_assignsubmission_file_/x.ipynb", text=OTHER)
    with pytest.raises(CourseError, match="No notebook of this download belongs to an assignment"):
        find_submissions([other], known)
    folders = [downloaded(tmp_path / group, f"Ada_1_assignsubmission_file_/{NAME}") for group in ("a", "b")]
    with pytest.raises(CourseError, match="Ada is in two of these folders"):
        find_submissions(folders, known)


def test_a_link_in_a_download_is_followed_nowhere(tmp_path: Path, known: dict[str, Assignment]) -> None:
    folder = downloaded(tmp_path / "in", f"Ada_1_assignsubmission_file_/{NAME}")
    (folder / "Eve_2_assignsubmission_file_").symlink_to(folder / "Ada_1_assignsubmission_file_")
    (folder / "Fay_3_assignsubmission_file_").mkdir()
    (folder / "Fay_3_assignsubmission_file_" / NAME).symlink_to("../Ada_1_assignsubmission_file_/" + NAME)
    submissions = found(folder, known)
    assert "is a link" in submissions["Eve"].problem
    assert "is a link" in submissions["Fay"].problem


def member(name: str, mode: int = stat.S_IFREG) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name, (2026, 3, 1, 12, 0, 0))
    info.external_attr = (mode | 0o644) << 16
    info.compress_type = zipfile.ZIP_DEFLATED
    return info


def test_a_zip_is_read_as_it_came_and_what_means_harm_is_left_out(tmp_path: Path, known: dict[str, Assignment]) -> None:
    archive = tmp_path / "course-08.zip"
    ada = "Ada_1_assignsubmission_file_"
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr(member(f"{ada}/{NAME}"), SOUND)
        file.writestr(member(f"{ada}/large.csv"), b"0" * 1_000)
        for name in ("../evil.ipynb", "/evil.ipynb", "a/../../evil.ipynb", "a\\evil.ipynb", "C:evil.ipynb"):
            file.writestr(member(name), SOUND)
        file.writestr(member("/".join(["d"] * 40) + "/evil.ipynb"), SOUND)
        file.writestr(member(f"Eve_2_assignsubmission_file_/{NAME}", stat.S_IFLNK), f"../{ada}/{NAME}")
        file.writestr(member(f"Fay_3_assignsubmission_file_/{NAME}"), b"0" * 2 * MIB)
        file.writestr(member("Gus_4_assignsubmission_file_/" + "x" * 300 + ".ipynb"), SOUND)
        with pytest.warns(UserWarning, match="Duplicate name"):
            file.writestr(member(f"{ada}/{NAME}"), OTHER)
    with unpacked([archive]) as sources:
        (folder,) = sources.paths
        submissions = found(folder, known)
        assert submissions["Ada"].notebook is not None
        assert read_file(submissions["Ada"].notebook).decode() == SOUND
        assert (folder / ada / "large.csv").stat().st_size == 0
        files = [path.relative_to(folder) for path in folder.rglob("*") if path.is_file()]
        assert sorted(map(str, files)) == [f"{ada}/large.csv", f"{ada}/{NAME}"]
    assert not folder.exists()
    assert [*tmp_path.rglob("evil*")] == []
    told = "\n".join(sources.left_out)
    assert told.count("leads out of the archive") == 6
    assert told.count("is no ordinary file but a link") == 1
    assert told.count("is packed more than 100-fold") == 1
    assert told.count("is damaged, or has a name") == 1
    assert told.count("is there twice") == 1


def test_a_notebook_that_is_too_large_is_not_unpacked_and_its_owner_is_told(tmp_path: Path) -> None:
    archive = tmp_path / "x.zip"
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr(member(f"Ada_1_assignsubmission_file_/{NAME}"), os.urandom(200_000))
    data = bytearray(archive.read_bytes())
    place = data.index(b"PK\x01\x02") + 20  # sizes, packed and not, in the directory
    data[place : place + 8] = struct.pack("<II", 2_000_000_000, 2_000_000_000)
    archive.write_bytes(data)
    with unpacked([archive]) as sources:
        large = sources.paths[0] / "Ada_1_assignsubmission_file_" / NAME
        assert large.stat().st_blocks == 0
        with pytest.raises(UnreadableError, match="is larger than 50 MB"):
            read_file(large)


@pytest.mark.parametrize(
    ("limit", "told"), [("MAX_MEMBERS", "more than 1 files"), ("MAX_TOTAL_BYTES", "unpacks to more than 0 GiB")]
)
def test_an_archive_of_too_much_is_refused(
    limit: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = tmp_path / "x.zip"
    with zipfile.ZipFile(archive, "w") as file:
        for number in range(2):
            file.writestr(member(f"Ada_{number}_assignsubmission_file_/{NAME}"), SOUND)
    monkeypatch.setattr(archives, limit, 1)
    with pytest.raises(CourseError, match=told), unpacked([archive]):
        pass


@pytest.mark.parametrize("data", [b"", b"no zip", b"PK\x03\x04" + b"\0" * 40])
def test_what_is_no_archive_is_told(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "x.zip").write_bytes(data)
    with pytest.raises(CourseError, match=r"x\.zip is damaged, or no zip at all"), unpacked([tmp_path / "x.zip"]):
        pass
