"""What is taken from a site's pages is what no reader needs, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from lmcourse.site.icons import with_drawn_icons
from lmcourse.site.lighter import SEARCH, make_lighter, used_rules, without_plain_spans, without_search

WORDS = {"a", "b", "exercise", "show"}


@pytest.mark.parametrize(
    "css",
    [
        "p{color:red}",
        ".a.b > p{color:red}",
        ".a:not(.unknown){color:red}",
        ":is(.a,.unknown) p{color:red}",
        ".bs-tooltip-auto{color:red}",
        r".a\:b{color:red}",
        '[data-x=".unknown{"]{color:red}',
        '@charset "UTF-8";p{content:"}"}',
        "@media (width>=1px){.a{color:red}}",
        "@keyframes turn{from{opacity:0}to{opacity:1}}",
        "@font-face{font-family:x;src:url(x.woff2)}",
        "p{background:url(data:image/svg+xml;utf8,x)}",
    ],
)
def test_what_may_apply_stays_as_it_is(css: str) -> None:
    assert used_rules(css, WORDS).strip() == css


@pytest.mark.parametrize(
    ("css", "left"),
    [
        (".unknown{color:red}p{x:y}", "p{x:y}"),
        (".a,.unknown,.b{color:red}", ".a,.b{color:red}"),
        (".a .unknown{color:red}", ""),
        ("@media print{.unknown{x:y}.a{x:y}}", "@media print{.a{x:y}}"),
        ("@media print{.unknown{x:y}}p{x:y}", "p{x:y}"),
        ("/* a remark */p{x:y}", "p{x:y}"),
        ("/*! MIT, by .unknown, 2024 */p{x:y}", "p{x:y}\n/*! MIT, by .unknown, 2024 */"),
    ],
)
def test_what_wants_a_class_that_is_nowhere_goes(css: str, left: str) -> None:
    assert used_rules(css, WORDS).strip() == left


def test_searching_is_left_to_the_page_for_it(tmp_path: Path) -> None:
    scripts = tmp_path / "_static" / "scripts"
    scripts.mkdir(parents=True)
    (tmp_path / "_static" / "styles").mkdir()
    (tmp_path / "_static" / "styles" / "pydata-sphinx-theme.css").touch()
    (tmp_path / "_static" / "vendor" / "fontawesome").mkdir(parents=True)
    (scripts / "fontawesome.js").touch()
    (scripts / "site.js.map").touch()
    page = "".join(f'<script src="{script}"></script>\n' for script in ("site.js", *SEARCH))
    for name in ("index.html", "search.html"):
        (tmp_path / name).write_text(page, encoding="utf-8")
    make_lighter(tmp_path)
    assert (tmp_path / "search.html").read_text(encoding="utf-8") == page
    assert (tmp_path / "index.html").read_text(encoding="utf-8").split() == ["<script", 'src="site.js"></script>']
    assert without_search(page).split() == ["<script", 'src="site.js"></script>']
    assert not [*tmp_path.rglob("*.map")]


def test_code_keeps_the_spans_that_have_a_colour() -> None:
    code = '<span class="k">def</span><span class="w"> </span><span class="nf">f</span><span class="p">(</span>'
    page = without_plain_spans(f'<span class="p-4">{code}<span class="n">x</span></span>')
    assert page == '<span class="p-4"><span class="k">def</span> <span class="nf">f</span>(x</span>'


def test_icons_in_use_are_drawn_by_the_style_sheet() -> None:
    script = (
        '{sun:[512,512,[1],"f185","M1z"]};{sun:[576,512,[9728],"f185","M2z"],"house":[576,512,["home"],"f015","M3z"]}'
    )
    face = "@font-face{font-family:Font Awesome\\ 7 Free;src:url(x.woff2)}"
    css = with_drawn_icons(f"p{{x:y}}{face}@font-face{{font-family:x}}", {"fa-sun", "fa-home", "fa-fw"}, script)
    assert css.startswith("p{x:y}@font-face{font-family:x}.fa-solid::before{")
    assert "M2z" in css.partition(".fa-sun{")[2], "the solid one"
    assert ".fa-home{--icon:" in css
    assert css.count("--icon:") == 2
