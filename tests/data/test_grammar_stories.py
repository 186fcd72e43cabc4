"""In a long sample the course's language has its computed entropy, and the properties in its description."""

from __future__ import annotations

import bz2
import hashlib
import math
import random
import re

import pytest

from lmcourse.data.grammar import story_grammar
from lmcourse.data.grammar.roles import word_roles
from lmcourse.data.grammar.stories import HEROES, TOPICS

STORIES = 3000


@pytest.fixture(scope="module")
def stories() -> list[str]:
    source = random.Random(0)
    return [story_grammar().generate(source) for _ in range(STORIES)]


def standard_error(values: list[float]) -> float:
    mean = math.fsum(values) / len(values)
    return math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1) / len(values))


def test_a_long_sample_has_the_computed_entropy(stories: list[str]) -> None:
    grammar = story_grammar()
    surprise = [-grammar.log_probability(story) for story in stories]
    assert abs(math.fsum(surprise) / STORIES - grammar.entropy) < 5 * standard_error(surprise)
    # The difference between a stream's mean and the rate: each text's excess nats, whose mean is zero.
    beyond = [nats - grammar.entropy_per_byte * len(story) for nats, story in zip(surprise, stories, strict=True)]
    assert abs(math.fsum(beyond) / STORIES) < 5 * standard_error(beyond)
    assert standard_error(beyond) < 0.02 * grammar.entropy, "the sample is too small to say anything"


def test_a_long_sample_has_the_computed_sentence_counts(stories: list[str]) -> None:
    counts = [float(story.count(".")) for story in stories]
    expected = story_grammar().expected(lambda rule: rule.text.count("."))
    assert abs(math.fsum(counts) / STORIES - expected) < 5 * standard_error(counts)
    assert expected == pytest.approx(4 * (1 + 1 / 0.2)), "4 paragraphs: an opening, 4 sentences, an end"


def test_a_compressor_does_not_get_below_the_entropy(stories: list[str]) -> None:
    """A compressor is a model of what comes next, and n bytes of it are 8 n ln 2 nats of loss."""
    text = "".join(stories).encode()
    nats = 8 * math.log(2) * len(bz2.compress(text)) / len(text)
    assert story_grammar().entropy_per_byte < nats < 3 * story_grammar().entropy_per_byte


def test_the_same_seed_gives_the_same_stories_everywhere() -> None:
    source = random.Random(1)
    text = "".join(story_grammar().generate(source) for _ in range(100))
    assert hashlib.sha256(text.encode()).hexdigest()[:16] == "d2c73dff0e837674"


def test_a_paragraph_keeps_its_hero_and_its_topic(stories: list[str]) -> None:
    own = {
        word: name
        for name, topic in TOPICS.items()
        for word in (*topic.nouns, *topic.intransitive_verbs, *topic.transitive_verbs)
    }
    for paragraph in "".join(stories[:500]).splitlines():
        if paragraph:
            hero, place = re.match(r"(\w+) is ([a-z ]+)\.", paragraph).groups()
            assert hero in HEROES
            assert paragraph.endswith(f" So {hero} goes home.")
            (topic,) = (name for name, words in TOPICS.items() if words.place == place)
            words = " ".join(re.findall(r"(?:One|Many) [^.]*", paragraph)).lower().split()
            topics = {own.get(word, own.get(word.removesuffix("s"))) for word in words if word not in FRAME}
            assert topics <= {topic}


FRAME = {"one", "many", "that"}


def agrees(sentence: str) -> bool:
    """Return True if all verbs agree with their subjects; uses a stack of subjects, not the grammar."""
    verbs = {verb for topic in TOPICS.values() for verb in (*topic.intransitive_verbs, *topic.transitive_verbs)}
    waiting: list[str] = []
    words = sentence.lower().split()
    for number, noun_or_verb in zip(["", *words], words, strict=False):
        if number in ("one", "many"):
            if noun_or_verb.endswith("s") != (number == "many"):
                return False
            waiting.append(number)
        elif {noun_or_verb, noun_or_verb.removesuffix("s")} & verbs:
            singular = noun_or_verb not in verbs
            if singular != (waiting.pop() == "one"):
                return False
    return True


def test_verbs_agree_with_their_subjects(stories: list[str]) -> None:
    assert agrees("Many owls that one bear that many hunters see fears sleep")
    assert not agrees("Many owls that one bear fears sleeps")
    sentences = re.findall(r"(?:One|Many) [^.]*", "".join(stories))
    assert all(agrees(sentence) for sentence in sentences)
    assert max(sentence.count("that") for sentence in sentences) >= 4, "clauses one in another"


def test_sums_are_true_and_brackets_closed(stories: list[str]) -> None:
    sums = re.findall(r"Now (\d) is ([^.]*)\.", "".join(stories))
    assert len(sums) > 1000
    assert all(re.fullmatch(r"[\d+() ]+", right) and int(left) == eval(right) for left, right in sums)
    assert max(right.count("(") for _, right in sums) >= 4


def test_exactly_the_nouns_and_verbs_have_roles(stories: list[str]) -> None:
    used = set(
        re.findall(r"\b[a-z]+", re.sub(r" So \w+ goes home| (is|are) (at|in|among) the \w+", "", "".join(stories)))
    )
    assert used - {"is", "that", "one", "many"} == set(word_roles())
    assert word_roles()["bear"] == ("wood", "noun")
    assert word_roles()["fears"] == ("wood", "meets")
    assert word_roles()["sleep"] == ("wood", "act")
    for text in stories[:20]:
        for number, noun in re.findall(r"\b([Oo]ne|[Mm]any) (\w+)", text):
            assert word_roles()[noun][1] == ("noun" if number.lower() == "one" else "nouns")
