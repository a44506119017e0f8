# SPDX-License-Identifier: Apache-2.0
"""The databases of the sql package, for tests that run with SQLite and with PostgreSQL."""
import pytest

import postgres_server
import services

HAS = {"sqlite": services.has("sqlite"), "postgres": services.has("postgres") and postgres_server.is_usable()}


@pytest.fixture(scope="module")
def cluster():
    server = postgres_server.Postgres()
    yield server
    server.stop()


@pytest.fixture(params=list(HAS))
def backend(request):
    if not HAS[request.param]:
        pytest.skip(f"this build has no {request.param}, or its server is not there")
    return request.param


def section(folder, backend, request, tables):
    """Returns a configuration section with a new database, whose first migration is the SQL text `tables`."""
    (folder / "data").mkdir(exist_ok=True)
    (folder / "migrations").mkdir(exist_ok=True)
    (folder / "migrations" / "1-tables.sql").write_text(tables)
    where = "File data/a.db" if backend == "sqlite" else f"Server {request.getfixturevalue('cluster').database()}"
    return f"[{backend.upper()}]\n    {where}\n    Migrations migrations\n"
