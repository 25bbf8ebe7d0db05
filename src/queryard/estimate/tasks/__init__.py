"""Predictors of task times: POSUM's three with their variants, and a regression."""

from collections.abc import Callable, Mapping

from queryard.core.errors import QueryardError, unknown_name

from .basic import Basic
from .detailed import Detailed
from .model import Predictor, Seen, TaskFeatures, class_of
from .regression import Regression
from .standard import Standard

PREDICTORS: Mapping[str, Callable[[], Predictor]] = {
    "basic": Basic,
    "standard": Standard,
    "standard-printed": lambda: Standard(maps="mean"),
    "standard-split": lambda: Standard(share="split"),
    "detailed": Detailed,
    "detailed-unplaced": lambda: Detailed(places=False),
    "regression": Regression,
}


def make_predictor(name: str) -> Predictor:
    """A predictor by its name, that has seen nothing yet."""
    if name not in PREDICTORS:
        raise QueryardError(unknown_name("predictor", name, PREDICTORS))
    return PREDICTORS[name]()


__all__ = ["PREDICTORS", "Predictor", "Seen", "TaskFeatures", "class_of", "make_predictor"]
