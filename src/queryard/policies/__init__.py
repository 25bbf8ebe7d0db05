"""The published policies, as compositions of small parts."""

from .catalogue import ProfileInfo, about, catalogue, resolve_profile
from .compose import compose, for_arrivals
from .effects import idle_in_sessions
from .profile_files import load_profiles
from .tenancy import for_tenants

__all__ = [
    "ProfileInfo",
    "about",
    "catalogue",
    "compose",
    "for_arrivals",
    "for_tenants",
    "idle_in_sessions",
    "load_profiles",
    "resolve_profile",
]
