"""`python -m research`, called in this process."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from research.command import main


@dataclass
class Ended:
    code: int
    out: str
    err: str


@pytest.fixture
def call(capfdbinary: pytest.CaptureFixture[bytes]):
    """Call the command."""

    def run(*args: object) -> Ended:
        with pytest.raises(SystemExit) as left:
            main([str(arg) for arg in args])
        captured = capfdbinary.readouterr()
        return Ended(int(left.value.code or 0), captured.out.decode(), captured.err.decode())

    return run
