"""SCRAM-SHA-256: the example of RFC 7677, and what must not pass."""

from __future__ import annotations

import base64
import hashlib
import hmac
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queryard.service.postgres.errors import FatalError
from queryard.service.postgres.scram import Exchange, first_words, mock_verifier
from queryard.service.tokens import Verifier


def client_final(password: str, first: str, challenge: str, binding: str = "biws") -> str:
    """What an honest client answers."""
    said = dict(part.split("=", 1) for part in challenge.split(","))
    salted = hashlib.pbkdf2_hmac(
        "sha256", password.encode(), base64.b64decode(said["s"]), int(said["i"])
    )
    key = hmac.digest(salted, b"Client Key", "sha256")
    unsigned = f"c={binding},r={said['r']}"
    signed = f"{first},{challenge},{unsigned}".encode()
    mask = hmac.digest(hashlib.sha256(key).digest(), signed, "sha256")
    proof = bytes(a ^ b for a, b in zip(key, mask, strict=True))
    return f"{unsigned},p={base64.b64encode(proof).decode()}"


def test_the_example_of_the_standard():
    salt = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
    verifier = Verifier.of("pencil", salt, 4096)
    exchange = Exchange(verifier, "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0")
    challenge = exchange.challenge("n,,n=user,r=rOprNGfwEbeRWgbNEkqO")
    assert challenge == (
        "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
    )
    proof = exchange.verify(
        "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
        "p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    )
    assert proof == "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


@pytest.mark.parametrize("first", ["n=,r=abc", "n=ann,r=abc"])  # libpq leaves the name empty
def test_right_and_wrong_passwords(first):
    verifier = Verifier.of("secret", os.urandom(16), 4096)
    for password, passes in (("secret", True), ("other", False), ("", False)):
        exchange = Exchange(verifier)
        challenge = exchange.challenge(f"n,,{first}")
        assert (exchange.verify(client_final(password, first, challenge)) is not None) == passes


def test_users_that_do_not_exist_look_like_others():
    exchange = Exchange(mock_verifier("eve"))
    challenge = exchange.challenge("n,,n=,r=abc")
    again = Exchange(mock_verifier("eve")).challenge("n,,n=,r=abc")
    assert challenge.partition(",")[2] == again.partition(",")[2]  # the salt stays
    assert exchange.verify(client_final("secret", "n=,r=abc", challenge)) is None


@pytest.mark.parametrize(
    "words", ["", "n", "n,,", "x,,n=,r=a", "p=tls-unique,,n=,r=a", "n,a=b,n=,r=a", "n,,m=x,n=,r=a"]
)
def test_first_words_that_are_wrong(words):
    with pytest.raises(FatalError):
        Exchange(mock_verifier("eve")).challenge(words)


def test_a_proof_of_another_exchange_does_not_pass():
    verifier = Verifier.of("secret", os.urandom(16), 4096)
    first = Exchange(verifier)
    proof = client_final("secret", "n=,r=abc", first.challenge("n,,n=,r=abc"))
    second = Exchange(verifier)
    second.challenge("n,,n=,r=abc")
    with pytest.raises(FatalError, match="nonce"):
        second.verify(proof)
    third = Exchange(verifier)
    changed = client_final("secret", "n=,r=abc", third.challenge("n,,n=,r=abc"), binding="eSws")
    with pytest.raises(FatalError, match="heading"):
        third.verify(changed)


@given(st.binary(max_size=60))
def test_any_bytes_are_an_error_of_the_client(body):
    exchange = Exchange(mock_verifier("eve"))
    with pytest.raises(FatalError):
        exchange.challenge(first_words(body))
    exchange = Exchange(mock_verifier("eve"))
    exchange.challenge("n,,n=,r=abc")
    with pytest.raises(FatalError):
        exchange.verify(body.decode("latin-1"))
