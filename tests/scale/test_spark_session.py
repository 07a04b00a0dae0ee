"""A session of our own on one machine."""

from __future__ import annotations

import pytest

from sfumato.data.settings import EngineOptions
from sfumato.data.spark import open_session, stop

pytestmark = pytest.mark.scale


def test_other_memory_is_given_when_other_options_are_asked_for() -> None:
    try:
        for memory, expected in (("1GB", 1024), ("2GB", 2048)):
            session = open_session(EngineOptions.checked(master="local[1]", memory_limit=memory))
            most = session._jvm.java.lang.Runtime.getRuntime().maxMemory() / 2**20
            assert session.sql("SELECT 1").collect()[0][0] == 1
            assert 0.9 * expected <= most <= expected
    finally:
        stop()
    stop()  # nothing is left to stop
