"""Old names, until every importer has the new ones."""

from core.systems.base.options import TOP_K as TOP_K
from core.systems.base.options import Options as Options
from core.systems.base.system import *  # noqa: F403
