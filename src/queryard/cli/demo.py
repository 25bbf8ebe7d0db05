"""`queryard serve --demo`: its data, its tokens, and its users, from the start to the end."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from queryard.core.errors import QueryardError

from .query_progress import sharing

if TYPE_CHECKING:
    from queryard.service.demo import Load
    from queryard.service.serving import Addresses
    from queryard.service.tokens import TokenStore


@dataclass(frozen=True, slots=True)
class Demo:
    """What a demonstration is served with. Its tokens are gone when it ends."""

    catalog: Path
    slots: int
    grace: str
    load: Load
    _place: tempfile.TemporaryDirectory[str]

    @classmethod
    def prepared(
        cls, data: str | None, config: Path | None, http: str | None, cert: Path | None
    ) -> Demo:
        """Make the data, unless it is there; its users need plain HTTP on this machine."""
        from queryard.engine.instances.budget import slot_range
        from queryard.service.demo import GRACE_S, MOST_SLOTS, Load, prepare

        wrong = {
            "--config": config is not None,
            "--tls-cert": cert is not None,
            "--http off": http == "off",
        }
        for option, given in wrong.items():
            if given:
                raise QueryardError(
                    f"--demo and {option}: a demonstration has settings of its own, and its users "
                    "ask over plain HTTP; leave one of the two out"
                )
        with sharing("making tables") as bar:
            catalog = prepare(None if data is None else Path(data).expanduser(), bar)
        slots = min(MOST_SLOTS, slot_range(None)[1])
        place = tempfile.TemporaryDirectory(prefix="queryard-demo-")
        return cls(catalog, slots, f"{GRACE_S:g} s", Load(), place)

    @property
    def tokens(self) -> Path:
        """A file of tokens for this time only."""
        return Path(self._place.name) / "tokens.json"

    def begin(self, addresses: Addresses, store: TokenStore) -> None:
        """Let the users ask."""
        assert addresses.url is not None
        self.load.start(addresses.url, store)

    def end(self) -> None:
        self.load.stop()
        self._place.cleanup()
