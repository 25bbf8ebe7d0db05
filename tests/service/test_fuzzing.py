"""The fuzzers' own checks find what they are there to find."""

from __future__ import annotations

from contextlib import suppress
from itertools import count

import pytest

from service import fuzzing
from service.fuzzing import TooSlow, fuzz


def messages():
    return (b"message %d" % number for number in count())


def test_a_codec_that_answers_and_keeps_nothing_passes():
    fuzz(messages(), 10_000, bytes.decode).check_codec()


def test_a_message_that_never_ends_is_stopped_and_named(monkeypatch):
    monkeypatch.setattr(fuzzing, "MESSAGE_S", 0.1)

    def answer(data):
        while data == b"message 3":
            with suppress(Exception):  # as a codec that takes every error for the client's
                sum(range(1_000))

    with pytest.raises(TooSlow) as raised:
        fuzz(messages(), 10, answer)
    assert raised.value.__notes__ == [f"the message: {b'message 3'.hex()}"]


def test_messages_that_are_kept_are_found():
    kept = []
    with pytest.raises(AssertionError, match="more_objects"):
        fuzz(messages(), 4_000, kept.append).check_codec()


def test_large_blocks_that_are_kept_are_found():
    kept = []
    with pytest.raises(AssertionError, match="more_bytes"):
        fuzz(messages(), 100, lambda data: kept.append(data * 100_000)).check_codec()


def test_an_error_of_the_codec_itself_is_raised_with_its_message():
    with pytest.raises(KeyError) as raised:
        fuzz(messages(), 1, lambda data: {}[data])
    assert raised.value.__notes__ == [f"the message: {b'message 0'.hex()}"]
