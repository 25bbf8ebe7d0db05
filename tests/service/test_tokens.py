"""Tokens: made once, kept as hashes, checked by secret and by SCRAM, revoked at once."""

from __future__ import annotations

import hashlib
import hmac
import os
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from queryard.core.errors import QueryardError
from queryard.service.principal import Principal
from queryard.service.tokens import TokenStore


@pytest.fixture
def store(tmp_path: Path) -> TokenStore:
    return TokenStore(tmp_path / "kept" / "tokens.json")


def test_a_secret_is_known_by_its_hash_only(store: TokenStore):
    secret = store.add("ann", "sales/emea", "admin")
    assert secret.startswith("qy_")
    assert len(secret) >= 43
    (info,) = store.list()
    assert store.check(secret) == Principal("ann", "sales/emea", "admin", info.id)
    assert store.check(secret + "x") is None
    assert store.check("") is None
    assert store.check("\udcff") is None
    assert secret not in store.path.read_text()
    assert secret[3:] not in store.path.read_text()


def test_the_file_is_its_users_own(store: TokenStore):
    store.add("ann")
    assert store.path.stat().st_mode & 0o777 == 0o600
    assert store.path.parent.stat().st_mode & 0o777 == 0o700
    assert sorted(file.name for file in store.path.parent.iterdir()) == [
        "tokens.json",
        "tokens.json.lock",
    ]


def test_a_file_that_others_may_read_is_refused_with_the_remedy(store: TokenStore):
    secret = store.add("ann")
    store.path.chmod(0o640)
    with pytest.raises(QueryardError, match=r"mode 640.*chmod 600"):
        store.check(secret)
    store.path.chmod(0o600)
    assert store.check(secret) is not None


def test_a_verifier_accepts_the_secret_as_password_by_scram(store: TokenStore):
    secret = store.add("ann")
    verifier = store.verifier("ann")
    assert verifier is not None
    salted = hashlib.pbkdf2_hmac("sha256", secret.encode(), verifier.salt, verifier.iterations)
    client_key = hmac.digest(salted, b"Client Key", "sha256")
    signature = hmac.digest(verifier.stored_key, b"messages", "sha256")
    proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
    shown = bytes(a ^ b for a, b in zip(proof, signature, strict=True))
    assert hashlib.sha256(shown).digest() == verifier.stored_key
    assert verifier.server_key == hmac.digest(salted, b"Server Key", "sha256")
    assert store.verifier("bob") is None


def test_what_another_process_adds_or_revokes_counts_at_the_next_request(store: TokenStore):
    server = TokenStore(store.path)
    assert server.list() == []
    secret = store.add("ann")
    first = server.check(secret)
    assert first is not None
    assert first == Principal("ann", "default", id=first.id)
    assert server.holds(first)
    store.revoke("ann")
    assert server.check(secret) is None
    assert server.principal("ann") is None
    again = store.add("ann")
    assert server.check(secret) is None
    assert server.check(again) is not None
    assert first != server.principal("ann")
    assert not server.holds(first)
    store.path.unlink()
    assert server.check(again) is None


def test_a_token_expires(store: TokenStore):
    secret = store.add("ann", expires=timedelta(hours=1))
    [info] = store.list()
    assert info.expires_at is not None
    assert not info.expired
    assert store.check(secret) is not None
    past = (datetime.now(UTC) - timedelta(seconds=1)).isoformat()
    text = store.path.read_text().replace(info.expires_at.isoformat(), past)
    store.path.write_text(text)
    assert store.check(secret) is None
    assert store.verifier("ann") is None
    assert store.list()[0].expired
    with pytest.raises(QueryardError, match="has passed"):
        store.add("bob", expires=datetime(2020, 1, 1, tzinfo=UTC))


def test_tokens_of_many_writers_at_once_are_all_kept(store: TokenStore):
    def add(number: int) -> None:
        TokenStore(store.path).add(f"client-{number}")

    threads = [threading.Thread(target=add, args=(number,)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(store.list()) == 12


def test_wrong_tokens_are_refused_with_the_reason(store: TokenStore):
    store.add("ann")
    with pytest.raises(QueryardError, match="exists already"):
        store.add("ann")
    with pytest.raises(QueryardError, match="unknown token 'anm'; did you mean 'ann'"):
        store.revoke("anm")
    with pytest.raises(QueryardError, match="a name has up to 63"):
        store.add("ann smith")
    with pytest.raises(QueryardError, match="unknown role 'root'"):
        store.add("bob", role="root")  # type: ignore[arg-type]
    with pytest.raises(QueryardError, match="tenant"):
        store.add("bob", "sales//x")
    assert [info.name for info in store.list()] == ["ann"]


def test_a_file_that_is_damaged_says_so(store: TokenStore):
    store.add("ann")
    store.path.write_text("{")
    with pytest.raises(QueryardError, match="is no file of tokens"):
        store.check("qy_x")
    store.path.write_text('{"version": 9, "tokens": []}')
    with pytest.raises(QueryardError, match="version 9"):
        TokenStore(store.path).check("qy_x")
    assert os.listdir(store.path.parent)
