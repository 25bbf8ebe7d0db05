"""The published policies, as compositions of small parts."""

from .catalogue import ProfileInfo, catalogue, resolve_profile
from .compose import compose
from .profile_files import load_profiles

__all__ = ["ProfileInfo", "catalogue", "compose", "load_profiles", "resolve_profile"]
