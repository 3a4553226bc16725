"""A Bedrock knowledge base: shapes by botocore's own model of the service, failures over real HTTP."""

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.stub import ANY, Stubber

from superbizagent.adapters.knowledge.bedrock import BedrockKnowledgeIndex
from superbizagent.domain.codes import Unit
from superbizagent.domain.evidence import Evidence, LookupKnowledge
from superbizagent.errors import EvidenceError, EvidenceTimeout, EvidenceUnavailable
from tests.http_stub import Received, Reply, http_stub

BASE = "KB12345678"
CANARY = "arn:aws:iam::123456789012:role/canary"


def client(endpoint: str = "http://127.0.0.1:9", read_timeout: float = 5.0) -> Any:
    return boto3.session.Session().client(
        "bedrock-agent-runtime",
        region_name="eu-west-1",
        aws_access_key_id="test",
        aws_secret_access_key="test",
        endpoint_url=endpoint,
        config=Config(connect_timeout=1, read_timeout=read_timeout, retries={"total_max_attempts": 1}),
    )


@pytest.fixture(scope="module")
def shared_client() -> Any:
    """Making one takes longer than most tests."""
    return client()


@pytest.fixture
def stubber(shared_client: Any) -> Iterator[Stubber]:
    with Stubber(shared_client) as stubber:
        yield stubber


def redact(text: str) -> str:
    return text.replace("hunter2", "[SECRET]")


def result(text: str, uri: str = "s3://runbooks/payments/gateway-timeout.md", **metadata: Any) -> dict[str, Any]:
    return {
        "content": {"type": "TEXT", "text": text},
        "location": {"type": "S3", "s3Location": {"uri": uri}},
        "metadata": {"x-amz-bedrock-kb-chunk-id": "1%3A0%3Aabc", "x-amz-bedrock-kb-source-uri": uri, **metadata},
        "score": 0.71,
    }


async def look_up(stubber: Stubber, query: str = "gateway timeouts", limit: int = 5) -> Evidence:
    return await BedrockKnowledgeIndex(BASE, redact, stubber.client).lookup(LookupKnowledge(query=query, limit=limit))


def answer(stubber: Stubber, *results: dict[str, Any], **more: Any) -> None:
    stubber.add_response("retrieve", {"retrievalResults": list(results), **more})


@pytest.mark.spec("KNOW-5")
async def test_what_is_asked_and_what_comes_back(stubber: Stubber) -> None:
    expected = {
        "knowledgeBaseId": BASE,
        "retrievalQuery": {"text": "gateway timeouts"},
        "retrievalConfiguration": {"vectorSearchConfiguration": {"numberOfResults": 3}},
    }
    passage = result("Fail over to the\nsecond provider.", title="Payment  gateway")
    stubber.add_response("retrieve", {"retrievalResults": [passage]}, expected)

    evidence = await look_up(stubber, limit=3)

    [document] = evidence.documents
    assert (document.title, document.source) == ("Payment gateway", "s3://runbooks/payments/gateway-timeout.md")
    assert document.document_id.isalnum()
    assert evidence.lines == (
        f"document {document.document_id}: Payment gateway (s3://runbooks/payments/gateway-timeout.md)",
        "Fail over to the",
        "second provider.",
    )
    coverage = evidence.coverage
    assert (coverage.unit, coverage.scanned, coverage.matched, coverage.shown) == (Unit.PASSAGES, None, 1, 1)
    assert coverage.filtered
    assert coverage.complete


@pytest.mark.spec("KNOW-5")
@pytest.mark.parametrize(
    ("location", "source", "title"),
    [
        (
            {"type": "S3", "s3Location": {"uri": "s3://b/on-call/Disk_full.md"}},
            "s3://b/on-call/Disk_full.md",
            "Disk full",
        ),
        (
            {"type": "WEB", "webLocation": {"url": "https://w.test/a%20b.html?x=1"}},
            "https://w.test/a%20b.html?x=1",
            "a b",
        ),
        (
            {"type": "CONFLUENCE", "confluenceLocation": {"url": "https://c.test/"}},
            "https://c.test/",
            "https://c.test/",
        ),
        ({"type": "CUSTOM", "customDocumentLocation": {"id": "runbook 7"}}, "runbook 7", "runbook 7"),
        (
            {"type": "KENDRA", "kendraDocumentLocation": {"uri": "https://k.test/doc.pdf"}},
            "https://k.test/doc.pdf",
            "doc",
        ),
        ({"type": "S3"}, "knowledge base", "knowledge base"),
    ],
)
async def test_every_kind_of_place_names_a_source(
    stubber: Stubber, location: dict[str, Any], source: str, title: str
) -> None:
    answer(stubber, {"content": {"text": "t"}, "location": location})
    [document] = (await look_up(stubber)).documents
    assert (document.source, document.title, document.heading_path) == (source, title, ())


@pytest.mark.spec("SEC-3")
async def test_no_secret_of_a_question_is_sent(stubber: Stubber) -> None:
    sent = {"knowledgeBaseId": BASE, "retrievalQuery": {"text": "password [SECRET]"}, "retrievalConfiguration": ANY}
    stubber.add_response("retrieve", {"retrievalResults": []}, sent)
    assert (await look_up(stubber, "password hunter2")).documents == ()


async def test_a_page_is_named_and_ids_are_stable(stubber: Stubber) -> None:
    paged = result("One.")
    paged["metadata"]["x-amz-bedrock-kb-document-page-number"] = 3.0
    for _ in range(2):
        answer(stubber, paged)
    [first], [second] = (await look_up(stubber)).documents, (await look_up(stubber, "other words")).documents
    assert first == second
    assert first.heading_path == ("page 3",)


async def test_rows_and_recordings_have_text_and_pictures_have_none(stubber: Stubber) -> None:
    row = [{"columnName": "owner", "columnValue": "team a"}, {"columnName": "tier", "columnValue": "1"}]
    answer(
        stubber,
        {"content": {"type": "ROW", "row": row}},
        {"content": {"type": "AUDIO", "audio": {"s3Uri": "s3://b/a.mp3", "transcription": "Said this."}}},
        {"content": {"type": "IMAGE", "byteContent": "data:image/png;base64,AAAA"}},
        {"content": {"type": "TEXT", "text": " \n "}},
        result("Twice."),
        result("Twice."),
    )
    evidence = await look_up(stubber)
    assert [line for line in evidence.lines if not line.startswith("document ")] == [
        "owner: team a",
        "tier: 1",
        "Said this.",
        "Twice.",
    ]
    assert len({document.document_id for document in evidence.documents}) == 3
    assert evidence.coverage.notes == ("Passages without text, or found twice, are left out: 3.",)


async def test_more_results_and_a_guardrail_are_told(stubber: Stubber) -> None:
    answer(stubber, result("One."), nextToken="more", guardrailAction="INTERVENED")
    coverage = (await look_up(stubber)).coverage
    assert coverage.truncated
    assert not coverage.complete
    assert "guardrail" in coverage.notes[0]


@pytest.mark.spec("KNOW-1")
async def test_long_passages_are_shown_around_the_hit_and_bounded(stubber: Stubber) -> None:
    filler = "\n".join(f"- item {number} of a long list with nothing in it" for number in range(300))
    many = [
        result(
            f"{filler}\n- the flux capacitor\n{filler}", uri=f"s3://b/{at}.md", **{"x-amz-bedrock-kb-chunk-id": str(at)}
        )
        for at in range(12)
    ]
    answer(stubber, *many)
    evidence = await look_up(stubber, "flux capacitor", limit=10)
    assert len(evidence.documents) == evidence.lines.count("- the flux capacitor") == 10
    assert len("\n".join(evidence.lines).encode()) <= 7_000
    assert (evidence.coverage.matched, evidence.coverage.truncated) == (12, True)


@pytest.mark.spec("KNOW-4")
async def test_nothing_found_is_no_evidence(stubber: Stubber) -> None:
    answer(stubber)
    evidence = await look_up(stubber)
    assert (evidence.lines, evidence.documents, evidence.coverage.matched) == ((), (), 0)


@pytest.mark.spec("KNOW-4", "KNOW-5")
@pytest.mark.parametrize("query", ["how do I", "?!…", "🙂", "\x00\x01"])
async def test_a_query_without_a_word_is_not_sent(stubber: Stubber, query: str) -> None:
    # The stub has no answer: a call would fail.
    assert (await look_up(stubber, query)).documents == ()


@pytest.mark.spec("KNOW-5")
async def test_a_pasted_log_is_cut_to_what_the_service_takes(stubber: Stubber) -> None:
    stubber.add_response(
        "retrieve",
        {"retrievalResults": []},
        {"knowledgeBaseId": BASE, "retrievalQuery": ANY, "retrievalConfiguration": ANY},
    )
    assert (await look_up(stubber, f"gateway {'x ' * 3_900}timeouts")).documents == ()


@pytest.mark.spec("LIFE-5")
@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("AccessDeniedException", "bedrock:Retrieve"),
        ("ResourceNotFoundException", "does not exist"),
        ("ValidationException", "fewer, plainer words"),
        ("ThrottlingException", "busy"),
        ("ServiceQuotaExceededException", "busy"),
        ("InternalServerException", "could not be searched"),
        ("ExpiredTokenException", "could not be searched"),
        ("", "could not be searched"),
    ],
)
async def test_refusals_are_told_in_our_words(stubber: Stubber, code: str, says: str) -> None:
    stubber.add_client_error("retrieve", code, f"User {CANARY} is not authorized", http_status_code=400)
    with pytest.raises(EvidenceUnavailable, match=says) as caught:
        await look_up(stubber)
    assert "canary" not in caught.value.hint


@pytest.mark.parametrize(
    "reply",
    [
        Reply(b"<html>", status=502, content_type="text/html"),
        Reply(b"\xff\xfe", status=500),
        Reply(b"not JSON", status=200),
        Reply({"retrievalResults": None}),
        Reply({}),
    ],
)
async def test_an_answer_that_is_none_is_an_error_or_nothing_found(reply: Reply) -> None:
    async with http_stub(lambda _: reply) as stub:
        index = BedrockKnowledgeIndex(BASE, redact, client(stub.url))
        try:
            evidence = await index.lookup(LookupKnowledge(query="gateway"))
        except EvidenceError:
            return
        assert evidence.documents == ()


async def test_a_service_that_is_not_there_or_silent() -> None:
    with pytest.raises(EvidenceUnavailable):
        await BedrockKnowledgeIndex(BASE, redact, client()).lookup(LookupKnowledge(query="gateway"))

    async def silent(_: Received) -> Reply:
        await asyncio.sleep(30)
        return Reply()

    async with http_stub(silent) as stub:
        index = BedrockKnowledgeIndex(BASE, redact, client(stub.url, read_timeout=0.2))
        with pytest.raises(EvidenceTimeout):
            await index.lookup(LookupKnowledge(query="gateway"))


@pytest.mark.spec("CANCEL-2")
async def test_cancelling_ends_the_wait() -> None:
    asked, go_on = asyncio.Event(), threading.Event()

    async def held(_: Received) -> Reply:
        asked.set()
        await asyncio.to_thread(go_on.wait, 10)
        return Reply({"retrievalResults": []})

    async with http_stub(held) as stub:
        index = BedrockKnowledgeIndex(BASE, redact, client(stub.url))
        lookup = asyncio.create_task(index.lookup(LookupKnowledge(query="gateway")))
        await asked.wait()
        lookup.cancel()
        with pytest.raises(asyncio.CancelledError):
            await lookup
        go_on.set()


async def test_without_credentials_the_base_is_unavailable(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_REGION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.delenv("AWS_DEFAULT_REGION", raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    with pytest.raises(EvidenceUnavailable):
        await BedrockKnowledgeIndex(BASE, redact).lookup(LookupKnowledge(query="gateway"))
