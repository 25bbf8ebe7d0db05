"""Settings of a server from TOML, with errors that name the line."""

from __future__ import annotations

import re
from pathlib import Path

import duckdb
import pytest

from queryard.core.errors import QueryardError
from queryard.engine.sealing.access import Access
from queryard.service.config import Address, ServiceConfig, ServiceLimits, Tls
from queryard.service.config_file import (
    LIMIT_KEYS,
    SERVICE_KEYS,
    ConfigFile,
    InvalidConfig,
    read_config,
)
from queryard.service.outputs import risky_outputs
from queryard.service.sources import Sources, doubtful_grants
from queryard.sql.catalog import open_catalog


def _read(tmp_path: Path, text: str) -> ConfigFile:
    file = tmp_path / "yard.toml"
    file.write_text(text)
    return read_config(file, tmp_path / "tokens.json")


def test_a_file_without_settings_gives_the_defaults(tmp_path: Path):
    found = _read(tmp_path, '[tables]\norders = "orders.csv"')
    assert found.service == ServiceConfig(tokens=tmp_path / "tokens.json")
    assert found.names_tables
    assert found.session == {}


def test_every_setting_is_read(tmp_path: Path):
    found = _read(
        tmp_path,
        """
[session]
slots = 2
[service]
http = "0.0.0.0"
postgres = 6000
quack = 6001
tls = { cert = "server.pem", key = "/etc/server.key" }
insecure = true
grace = "1 min"
tokens = "secret/tokens.json"
redact = true
log = "json"
[service.limits]
request = "1 MB"
statements_per_s = 5
open_results = 6
connections = 7
connections_per_token = 3
result = "2 GB"
copy = "3 GB"
result_ttl = "2 min"
idle = "1 h"
lock = "8 s"
transaction = "9 s"
stall = 4
login = "5 s"
[tenants.sales]
weight = 3
tables = ["sales.*", "calendar"]
write = ["shop"]
output = "exports"
[tenants.sales.tenants.emea]
tables = ["sales.emea"]
[tenants.web]
guarantee = 0.25
""",
    )
    sales = Access(
        frozenset({"sales.*", "calendar"}), True, frozenset({"shop"}), tmp_path / "exports"
    )
    emea = Access(frozenset({"sales.emea"}), True)
    service = found.service
    assert service == ServiceConfig(
        http=Address("0.0.0.0", 8080),
        postgres=Address("127.0.0.1", 6000),
        quack=Address("127.0.0.1", 6001),
        tls=Tls(tmp_path / "server.pem", Path("/etc/server.key")),
        insecure=True,
        grace_s=60.0,
        tokens=tmp_path / "secret/tokens.json",
        redact=True,
        log="json",
        limits=ServiceLimits(
            request_bytes=1_000_000,
            statements_per_s=5.0,
            open_results=6,
            connections=7,
            connections_per_token=3,
            result_bytes=2_000_000_000,
            copy_bytes=3_000_000_000,
            result_ttl_s=120.0,
            idle_s=3600.0,
            stall_s=4.0,
            lock_s=8.0,
            transaction_s=9.0,
            login_s=5.0,
        ),
        grants={"sales": sales, "sales/emea": emea},
    )
    assert service.access("sales/apac/x") == sales
    assert service.access("sales/emea/x") == emea
    assert service.access("web") == service.access("other") == Access(sealed=True)
    assert not found.names_tables
    assert set(found.session) == {"session", "tenants", "service"}


def test_every_key_is_documented():
    page = Path(__file__).parents[2].joinpath("docs/service.md").read_text()
    for key in (*SERVICE_KEYS, *LIMIT_KEYS, "tables", "write", "output"):
        assert f"`{key}`" in page, key


def test_every_remedy_names_a_limit_that_the_file_has():
    sources = Path(__file__).parents[2].joinpath("src/queryard/service")
    found = set()
    for source in sorted(sources.rglob("*.py")):
        text = re.sub(r'"\s*\n\s*f?"', "", source.read_text())  # texts of several lines
        found |= set(re.findall(r"(\S+) in \[service\.limits\]", text))
    keys = {word.strip("`") for word in found}
    assert {"request", "result"} <= keys <= set(LIMIT_KEYS)


def test_grants_of_what_is_not_there_are_told(tmp_path: Path):
    with duckdb.connect(str(tmp_path / "shop.duckdb")):
        pass
    (tmp_path / "orders.csv").write_text("n\n1\n")
    (tmp_path / "there").mkdir()
    found = _read(
        tmp_path,
        """
[tenants.sales]
tables = ["ORDERS", "shop.*",
          "order", "bill?"]
write = ["shop", "shops"]
output = "there"
[tenants.sales.tenants.emea]
output = "gone"
""",
    )
    said = doubtful_grants(open_catalog(tmp_path), found.grants)
    file = tmp_path / "yard.toml"
    assert said == [
        f"{file}, line 4: tenants.sales.tables: there is no table 'order' now; did you mean "
        "'orders'?",
        f"{file}, line 4: tenants.sales.tables: there is no table 'bill?' now",
        f"{file}, line 5: tenants.sales.write: there is no database 'shops' now; did you mean "
        "'shop'?",
        f"{file}, line 8: tenants.sales/emea.output: there is no folder {tmp_path / 'gone'}; make "
        "it, or COPY … TO fails",
    ]


@pytest.mark.parametrize(
    ("output", "said"),
    [
        (".", "what Queryard keeps of the data|tokens"),
        ("..", "contains .*, the folder of tokens"),
        (".queryard/exports", "lies in a folder .queryard"),
        ("link", "contains .*, the folder of tokens"),
        ("past", "contains .*past, the folder of the history"),
        ("spilled", "contains .*spilled, the folder of rows and segments"),
    ],
)
def test_an_output_with_files_of_the_server_is_refused(tmp_path: Path, output: str, said: str):
    (tmp_path / "link").symlink_to(tmp_path)
    file = tmp_path / "yard.toml"
    file.write_text(f'[tenants.web]\noutput = "{output}"\n')
    session = {"history": tmp_path / "past" / "h.sqlite", "temp": tmp_path / "spilled"}
    sources = Sources(config=file, session=session)
    with pytest.raises(InvalidConfig, match=said) as refused:
        sources.read()
    assert str(refused.value).startswith(f"{file}, line 2: tenants.web.output: {tmp_path}")
    assert "name a folder of its own" in str(refused.value)
    file.write_text('[service]\ntokens = "tokens.json"\n[tenants.web]\noutput = "exports"\n')
    assert sources.read().service.access("web").output == tmp_path / "exports"


def test_an_output_with_files_of_tables_is_doubtful(tmp_path: Path):
    for name in ("data", "exports"):
        (tmp_path / name).mkdir()
    (tmp_path / "data" / "orders.csv").write_text("n\n1\n")
    with duckdb.connect(str(tmp_path / "data" / "shop.duckdb")):
        pass
    text = '[tenants.web]\noutput = "data"\n[tenants.sales]\noutput = "exports"\n'
    found = _read(tmp_path, text)
    (said,) = risky_outputs(open_catalog(tmp_path / "data"), found.grants)
    assert "line 2: tenants.web.output" in said
    assert "holds files of orders, shop, which COPY … TO may replace; name a folder" in said


def test_no_address_turns_a_listener_off(tmp_path: Path):
    assert _read(tmp_path, "[service]\npostgres = false").service.postgres is None
    assert _read(tmp_path, "[service]\nquack = false").service.quack is None


def test_quack_is_spoken_at_the_address_of_http_or_at_one_of_its_own(tmp_path: Path):
    assert _read(tmp_path, '[service]\nquack = "http"').service.quack == "http"
    own = _read(tmp_path, '[service]\nquack = "0.0.0.0"').service
    assert own.quack == Address("0.0.0.0", 9494)
    with pytest.raises(QueryardError, match=r"quack: 0.0.0.0:9494 can be reached"):
        own.check()
    ServiceConfig(http=None, postgres=None, quack=Address("127.0.0.1", 9494)).check()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('\n[service]\nhtpp = "x"', "line 3: service: unknown key 'htpp'; did you mean 'http'"),
        ("[service.limits]\nopen = 1", "line 2: service.limits: unknown limit 'open'"),
        (
            "[service.limits]\nconnections = 0",
            "line 2: service.limits.connections: must be a whole",
        ),
        ('[service]\ngrace = "soon"', "line 2: service.grace: .*'soon'"),
        ('[service]\nhttp = "h:99999"', "line 2: service.http: address: a port is a number"),
        ("[service]\nhttp = true", "line 2: service.http: address: must be an address"),
        ('[service]\ntls = { cert = "x" }', "line 2: service.tls: key is missing"),
        ('[service]\ntls = { cert = "x", kye = "y" }', "line 2: service.tls: unknown key 'kye'"),
        ("[service]\nredact = 1", "line 2: service.redact: must be true or false"),
        ('[service]\nlog = "xml"', "line 2: service.log: must be"),
        ("service = 3", "line 1: service: must be a table"),
        ("[servise]", "line 1: unknown key 'servise'; did you mean 'service'"),
        ("[session]\n\nslot = 2", "line 3: session: unknown key 'slot'"),
        ("[limits]\nwaitng = 2", "line 2: limits: unknown limit 'waitng'"),
        ("[tenants.web]\nwait = 2", "line 2: tenants.web: unknown key 'wait'"),
        ('[tenants.web]\ntables = "x"', "line 2: tenants.web.tables: must be a list of names"),
        ("[tenants.a.tenants.b]\nwrite = [1]", "line 2: tenants.a.tenants.b.write: must be a list"),
        ("[tenants.web]\noutput = 3", "line 2: tenants.web.output: must be a path"),
        ("[tenants.web.limits]\nx = 3", "line 2: tenants.web.limits: unknown limit 'x'"),
        ("[service", "not valid TOML"),
    ],
)
def test_a_mistake_is_named_with_its_line(tmp_path: Path, text: str, problem: str):
    with pytest.raises(QueryardError, match=problem):
        _read(tmp_path, text)


def test_a_file_that_is_not_there_is_named(tmp_path: Path):
    with pytest.raises(QueryardError, match=r"nowhere\.toml: cannot be read"):
        read_config(tmp_path / "nowhere.toml", tmp_path)


def test_addresses_of_other_machines_need_tls(tmp_path: Path):
    ServiceConfig().check()
    open_to_all = ServiceConfig(http=Address("0.0.0.0", 8080))
    with pytest.raises(QueryardError, match=r"http: 0.0.0.0:8080 can be reached .*--insecure"):
        open_to_all.check()
    with pytest.raises(QueryardError, match=r"postgres: example\.org:5433"):
        ServiceConfig(postgres=Address.parse("example.org", "postgres", 5433)).check()
    ServiceConfig(http=Address("0.0.0.0", 8080), insecure=True).check()
    ServiceConfig(http=Address("::", 8080), tls=Tls(tmp_path, tmp_path)).check()
    with pytest.raises(QueryardError, match="all listeners are off"):
        ServiceConfig(http=None, postgres=None).check()
