"""Which policy a host follows, since when and why; and the portfolio that chooses it."""
