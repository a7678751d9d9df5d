"""A grammar of small stories, so that a model can learn with no file at hand: the same seed gives the same stories.

A story keeps to what it has said: who is there, what is lost and what colour it has, "he" or "she". A model that has
learned only which words are frequent gets these wrong; one that looks back gets them right.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

MANY = 4000  # stories where nobody says how many: 1.5 MB

CHILDREN = {
    "girl": ("Lily", "Mia", "Anna", "Sara", "Ruth", "Zoe", "Nina", "Ivy"),
    "boy": ("Tom", "Ben", "Max", "Sam", "Leo", "Finn", "Jack", "Omar"),
}
PRONOUNS = {"girl": ("she", "her", "her"), "boy": ("he", "him", "his")}

RULES: Mapping[str, Sequence[str]] = {
    "story": (
        "{opening} {outing} {loss} {search} {found} {end}",
        "{opening} {outing} {meeting} {play} {end}",
        "{opening} {wish} {meeting} {gift} {end}",
        "{opening} {outing} {meeting} {loss} {help} {found} {end}",
    ),
    "opening": (
        "Once upon a time, there was a {mood} {kind} named {hero}. {He} had a {colour} {thing}.",
        "{hero} was a {mood} {kind}. {He} loved {his} {colour} {thing} very much.",
        "One {weather} day, a {kind} named {hero} woke up early. {His} {colour} {thing} was next to the bed.",
    ),
    "outing": (
        "One day, {hero} went to the {place} with {his} {family}. {He} took the {thing} with {him}.",
        "In the morning, {he} took the {colour} {thing} to the {place}.",
        '"Can we go to the {place}?" {hero} asked. "Yes," said {his} {family}, and off they went.',
    ),
    "meeting": (
        "That day {he} met a {size} {animal} named {friend}. {friend} was very {feeling}.",
        'A {size} {animal} came by. "Hello, my name is {friend}," said the {animal}. "I am {hero}," said {hero}.',
    ),
    "play": (
        "{hero} and {friend} played with the {colour} {thing} until it was dark.",
        'They {verb} and they {deed}. "You are a good friend, {friend}," said {hero}.',
        "First they {verb}. Then they {deed}. The {animal} laughed, and {hero} laughed too.",
    ),
    "wish": (
        "But {he} was {feeling}, because {he} had no one to play with.",
        '"I want a friend," {he} said to {his} {family}. "Then be kind to all you meet," said {his} {family}.',
    ),
    "gift": (
        "{hero} gave {friend} {his} {colour} {thing}. The {animal} was so happy that it {verb}.",
        'The {animal} looked at the {thing}. "Do you like it? It is yours," said {hero}, and {friend} {verb}.',
    ),
    "loss": (
        "But then the {thing} was gone! {hero} was very {feeling}.",
        "The wind took the {colour} {thing} away. {He} began to cry.",
        '{He} put the {thing} down to play. When {he} came back, it was not there. "Oh no!" said {hero}.',
    ),
    "search": (
        "{He} looked {where}, and {he} looked {elsewhere}, but there was no {thing}.",
        '{His} {family} said, "Don\'t be {feeling}, {hero}. Let us look {where}."',
    ),
    "help": (
        '"I will help you," said {friend}. The {animal} looked {where}.',
        'The {size} {animal} asked, "What is it like?" "It is {colour}," said {hero}.',
    ),
    "found": (
        "At last {he} saw something {colour} {spot}. It was the {thing}!",
        'Then {hero} looked {spot}. "Here it is, my {colour} {thing}!" {he} said.',
    ),
    "end": (
        "{hero} went home with a smile. The end.",
        "{He} hugged {his} {family} and was happy again.",
        "From that day on, {hero} took good care of the {colour} {thing}.",
        "That night, {hero} told {his} {family} all about it, and slept well.",
    ),
    "mood": ("little", "happy", "kind", "brave", "shy", "clever"),
    "colour": ("red", "blue", "green", "yellow", "pink", "white", "brown"),
    "thing": ("ball", "kite", "hat", "boat", "book", "doll", "bell", "cup", "truck", "drum"),
    "place": ("park", "beach", "forest", "garden", "lake", "farm", "market", "hill"),
    "family": ("mom", "dad", "grandma", "grandpa", "sister", "brother"),
    "animal": ("dog", "cat", "bird", "frog", "rabbit", "bear", "duck", "fox", "mouse"),
    "friend": ("Spot", "Fluffy", "Coco", "Bobo", "Pip", "Daisy", "Momo", "Rex"),
    "size": ("big", "small", "tiny", "fat", "grey", "young"),
    "feeling": ("sad", "lonely", "tired", "worried", "cold"),
    "weather": ("sunny", "rainy", "windy", "cold", "warm"),
    "verb": ("jumped up and down", "danced", "sang a song", "ran in circles", "clapped"),
    "deed": ("built a house of sand", "ate some cake", "counted the clouds", "climbed a tree", "told jokes"),
    "where": ("under the bench", "behind the tree", "in the grass", "near the gate"),
    "elsewhere": ("on the roof", "in a big box", "near the water", "between the flowers"),
    "spot": ("on a branch", "next to a stone", "in a hole", "in the mud"),
}


def stories(count: int = MANY, seed: int = 0) -> list[str]:
    """So many different stories. The first ones are the same however many are asked for."""
    return list(islice(_different(random.Random(seed)), count))


def _different(draw: random.Random) -> Iterator[str]:
    told: set[str] = set()
    while True:
        story = _story(draw)
        if story not in told:
            told.add(story)
            yield story


def _story(draw: random.Random) -> str:
    kind = draw.choice(sorted(CHILDREN))
    he, him, his = PRONOUNS[kind]
    said = {"kind": kind, "hero": draw.choice(CHILDREN[kind]), "he": he, "him": him, "his": his}
    said |= {"He": he.capitalize(), "His": his.capitalize()}
    return _expand("story", said, draw)


def _expand(name: str, said: dict[str, str], draw: random.Random) -> str:
    """What a name stands for; a word once chosen stays the same for the whole story."""
    if name not in said:
        said[name] = re.sub(r"\{(\w+)\}", lambda found: _expand(found[1], said, draw), draw.choice(RULES[name]))
    return said[name]
