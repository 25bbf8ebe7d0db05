"""Random examples, drawn once for all profiles: to draw takes longer than what is tested."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st


def for_each(
    names: list[str], few: int, many: int, **strategies: st.SearchStrategy[Any]
) -> Callable[[Callable[..., None]], Callable[[str, int], None]]:
    """Test each of these names on the same examples; the one that fails is printed as drawn.

    Each name is tested on few examples, and in the long form of the test on many.
    """

    @cache
    def examples(count: int) -> list[dict[str, Any]]:
        drawn = []

        @settings(
            max_examples=count,
            deadline=None,
            derandomize=True,
            # Nothing fails while drawing, and shrinking would take minutes.
            phases=(Phase.generate,),
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
        )
        @given(st.fixed_dictionaries(strategies))
        def draw(example: dict[str, Any]) -> None:
            drawn.append(example)

        draw()
        return drawn

    short = [pytest.param(name, few, id=name) for name in names]
    long = [pytest.param(name, many, id=f"{name}-long", marks=pytest.mark.long) for name in names]

    def decorate(test: Callable[..., None]) -> Callable[[str, int], None]:
        @pytest.mark.parametrize(("name", "count"), [*short, *long])
        def on_all(name: str, count: int) -> None:
            for example in examples(count):
                try:
                    test(name, **example)
                except Exception as error:
                    error.add_note(f"the example: {example!r}")
                    raise

        on_all.__name__ = test.__name__
        on_all.__doc__ = test.__doc__
        return on_all

    return decorate
