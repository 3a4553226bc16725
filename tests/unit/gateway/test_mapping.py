"""Mapping templates: what the helpers give, and that bodies are never templates."""

import json
from typing import Any

import pytest

from local.gateway.mapping import MappingError, render

CONTEXT: dict[str, Any] = {"connectionId": "c1", "authorizer": {"principalId": "ada"}, "n": 3, "yes": True}
HOSTILE = [
    "$context.connectionId ${x} $!y",
    "#set($a = 1) #if(true) ## c #* d *# #end #stop #evaluate('x') #parse('/etc/passwd')",
    "quotes \" ' and \\ back\\\\slash",
    "line\r\n\ttab\x00\u2028",
    "😀" * 32_000,
    "",
]


def rendered(template: str, body: str = "{}", **variables: str) -> str:
    return render(template, body=body, context=CONTEXT, stage_variables=variables)


@pytest.mark.parametrize("body", HOSTILE, ids=lambda body: repr(body[:12]))
def test_bodies_are_values(body: str) -> None:
    assert rendered("[$input.body]", body) == f"[{body}]"
    encoded = rendered('{"b": "$util.base64Encode($input.body)"}', body)
    assert rendered("$util.base64Decode($input.body)", json.loads(encoded)["b"]) == body
    wrapped = json.dumps({"a": {"b": [body]}})
    assert json.loads(rendered('{"x": $input.json("$.a.b[0]")}', wrapped)) == {"x": body}
    assert rendered("$input.path('$.a').b[0]", wrapped) == body


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("$context.connectionId/$context.n", "c1/3"),
        ("$context.authorizer.principalId", "ada"),
        ("[$context.nothing][$context.authorizer.more.and.more][$!context.nothing]", "[][][]"),
        ("$context.yes", "true"),
        ("$stageVariables.colour;$stageVariables.other;", "blue;;"),
        ("$input.json('$')", '{"a":[1,{"b c":"x"}],"t":true,"z":null}'),
        ("$input.json('$.a[1][\"b c\"]')", '"x"'),
        ("$input.json('$.none.at.all')", "null"),
        ("$input.path('$.t')", "true"),
        ("$input.path('$.a').size()", "2"),
        ("#if($input.path('$.a')[0] == 1)yes#{else}no#end", "yes"),
        ("#foreach($x in $input.path('$.a'))$foreach.index #end", "0 1 "),
        ("#set($b = $util.parseJson('{\"k\": [5]}'))$b.k[0]", "5"),
        ("$util.urlEncode('a b&c')$util.urlDecode('a+b')", "a+b%26ca b"),
        ("$util.escapeJavaScript('a\"b')", 'a\\"b'),
    ],
)
def test_helpers(template: str, expected: str) -> None:
    body = '{"a": [1, {"b c": "x"}], "t": true, "z": null}'
    assert rendered(template, body, colour="blue") == expected


@pytest.mark.parametrize(
    ("template", "body"),
    [
        ("#if(true)", "{}"),
        ("$input.json('$..a')", "{}"),
        ("$input.json('$.a')", "not json"),
        ("$input.json('$.a')", "[" * 100_000),
        ("$util.base64Decode('abc')", "{}"),
    ],
)
def test_failures_are_mapping_errors(template: str, body: str) -> None:
    with pytest.raises(MappingError):
        rendered(template, body)
