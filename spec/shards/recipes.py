"""The shards and data sets that build_shards.py makes, with what a reader says of each.

What is refused differs in one thing from its control, which is one of those that are taken.
"""

from __future__ import annotations

from build_shards import Recipe
from data_sets import data_sets
from refused import refused_shards, unverified_shards
from valid import sparse_shards, valid_shards


def all_recipes() -> list[Recipe]:
    makers = (valid_shards, refused_shards, unverified_shards, data_sets, sparse_shards)
    made = [recipe for maker in makers for recipe in maker()]
    names = [recipe.name for recipe in made]
    assert len(set(names)) == len(names), "a name of two recipes"
    assert {recipe.control for recipe in made} <= {"-", *names}, "a control that is not there"
    return made
