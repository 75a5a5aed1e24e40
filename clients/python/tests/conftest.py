import os
import uuid

import pytest

import vernier_hpo


@pytest.fixture(scope="session")
def client():
    """The service that VERNIER_SERVER and VERNIER_TOKEN, or VERNIER_HOME, name."""
    if not (os.environ.get("VERNIER_SERVER") or os.environ.get("VERNIER_HOME")):
        pytest.skip("NOT RUN: needs a service: start one with `vernier up`, and set VERNIER_HOME")
    return vernier_hpo.Client()


@pytest.fixture
def name():
    return "py-" + uuid.uuid4().hex[:10]
