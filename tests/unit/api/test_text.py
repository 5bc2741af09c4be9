"""Texts from anywhere, made fit for the wire."""

import orjson
import pytest

from scheduler.api.wording.text import encodable, to_json


@pytest.mark.parametrize(
    ("text", "fit"),
    [
        pytest.param("plain", "plain", id="ASCII"),
        pytest.param("größer als 5 €, 😀", "größer als 5 €, 😀", id="any script"),
        pytest.param("a\ud800b\udfffc", "a\ufffdb\ufffdc", id="lone surrogates"),
        pytest.param("\ud83d\ude00", "\ufffd\ufffd", id="a pair of surrogates is no character either"),
        pytest.param("", "", id="empty"),
    ],
)
def test_what_utf8_cannot_carry_is_replaced(text: str, fit: str) -> None:
    assert encodable(text) == fit
    assert orjson.loads(to_json({"a": [text, (text,)], text: 1})) == {"a": [fit, [fit]], fit: 1}


def test_what_is_no_json_is_refused() -> None:
    with pytest.raises(TypeError):
        to_json({"a": object()})
