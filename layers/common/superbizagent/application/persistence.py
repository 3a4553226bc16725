"""What a run makes of a store that fails (LIFE-4)."""

import contextlib
import logging
from collections.abc import Iterator

from superbizagent.application.defects import place_of
from superbizagent.domain.run_context import RunContext
from superbizagent.domain.steps import NotStored
from superbizagent.errors import InternalFailure, RunPersistenceFailed, StoreError, SuperBizAgentError

_log = logging.getLogger(__name__)


@contextlib.contextmanager
def persisting(context: RunContext) -> Iterator[None]:
    """Whatever the store could not do is one public failure, wherever in the run it happens (LIFE-4)."""
    try:
        yield
    except StoreError as error:
        context.tell(NotStored(error.code))
        raise RunPersistenceFailed from error
    except SuperBizAgentError:
        raise
    except Exception as error:
        # No store may raise anything else; if one does, its words stay here (LIFE-5).
        _log.error("store failed", extra={"defect": place_of(error)})
        context.tell(NotStored(InternalFailure.code))
        raise RunPersistenceFailed from error
