"""Device profiles: what edgekit knows about a machine before it runs there, and what it can find out about this one."""

from edgekit.target.isa import native_isa
from edgekit.target.loading import list_profiles, load_profile
from edgekit.target.profile import Figure, Profile

__all__ = ["Figure", "Profile", "list_profiles", "load_profile", "native_isa"]
